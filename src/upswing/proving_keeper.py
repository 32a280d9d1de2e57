"""What stays of a validation? Its cells while it runs; then its report, three times, and no cells.

    cells, redacted ─▶ report, redacted ─▶ artifact ─▶ row and decision, in one transaction ─▶ no cells

Killed anywhere on this way, it is gone through again with the same end.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol
from uuid import UUID

import msgspec

from upswing.adapters.sql.validations import Validations
from upswing.adapters.validation import FileCells
from upswing.contracts.validation import Cell, ValidationReport
from upswing.errors import Transient, UpswingError
from upswing.ports import Decision
from upswing.proving_claims import Claims, Lost
from upswing.redact import Redactor
from upswing.validate.metrics import ValidateMetrics
from upswing.validate.player_service import Sleep
from upswing.validate.render import as_markdown
from upswing.validate.replay import inputs_of, replay
from upswing.validate.verdict import Policy

log = logging.getLogger(__name__)
STAGE, KIND = "validate", "validation"
_LONGEST_WAIT = 60.0


class KeepsFiles(Protocol):
    """Where artifacts stay; `adapters.objects`."""

    async def attach(self, folder: Path, prefix: str) -> str: ...


class Keeper:
    """Keeps cells and reports."""

    def __init__(
        self,
        folder: Path,
        rows: Validations,
        objects: KeepsFiles,
        redactor: Redactor,
        metrics: ValidateMetrics | None,
        *,
        claims: Claims,
        clock: Callable[[], datetime],
        new_id: Callable[[], UUID],
        sleep: Sleep,
    ) -> None:
        self._folder, self._rows, self._objects, self._claims = folder, rows, objects, claims
        self._redactor, self._metrics = redactor, metrics
        self._clock, self._new_id, self._sleep = clock, new_id, sleep
        self.cells = _Clean(FileCells(folder), redactor)

    async def show(self) -> None:
        """The scores of the newest reports, to whoever watches the metrics."""
        if self._metrics:
            for row in reversed(await self._rows.newest()):
                if row.report:
                    self._metrics.scores(row.report)

    async def keep(self, report: ValidationReport, policy: Policy) -> ValidationReport:
        """The report as it is kept; a store that is away is waited for. `Lost`: it is another's now."""
        report = cleaned(report, self._redactor)
        kept = await self._waited_for(report, self._decision(report, policy))
        await self.cells.drop(report.run_id)
        if self._metrics:
            self._metrics.scores(kept)
            self._metrics.ended(kept.word)
        return kept

    async def _waited_for(self, report: ValidationReport, decision: Decision) -> ValidationReport:
        wait = 1.0
        while True:
            try:
                return await self._finished(report, decision)
            except Lost:
                raise
            except Transient as error:
                log.warning("%s", error, extra={"action": "keep_validation"})
                await self._sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT)

    async def _finished(self, report: ValidationReport, decision: Decision) -> ValidationReport:
        """Whoever was silent for too long writes nothing: what another process reports counts."""
        run_id, holder = report.run_id, self._claims.holder
        if await self._claims.take(run_id):
            artifact = await self._artifact(report)
            if await self._rows.finish(report, artifact, decision, self._clock(), holder):
                return report
        row = await self._rows.get(run_id)
        if row is None or row.report is None:
            raise Lost(f"Another process does the validation {run_id} now.")
        return row.report

    async def fail(self, run_id: str, error: Exception) -> None:
        """There is no report, and why."""
        ours = isinstance(error, UpswingError)
        log.warning("%s: %s", run_id, error, exc_info=not ours, extra={"action": "validate"})
        sentence = str(error) if ours else "Something of ours broke; the log says what."
        clean = self._redactor.text(sentence).value
        failed = await self._rows.fail(run_id, clean, self._clock(), self._claims.holder)
        if failed and self._metrics:
            self._metrics.ended("failed")

    def _decision(self, report: ValidationReport, policy: Policy) -> Decision:
        inputs = inputs_of(report, policy)
        outcome, sentence = replay(inputs)
        return Decision(str(self._new_id()), STAGE, KIND, sentence, inputs, outcome, self._clock())

    async def _artifact(self, report: ValidationReport) -> str:
        folder = self._folder / "reports" / report.run_id
        await asyncio.to_thread(_write, folder, report)
        artifact = await self._objects.attach(folder, f"validations/{report.run_id}")
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        return artifact


class _Clean:
    """Cells that are redacted before they are written."""

    def __init__(self, cells: FileCells, redactor: Redactor) -> None:
        self._cells, self._redactor = cells, redactor
        self.of_run, self.drop = cells.of_run, cells.drop

    async def keep(self, run_id: str, cells: Sequence[Cell]) -> None:
        clean = [
            msgspec.structs.replace(cell, sentence=self._redactor.text(cell.sentence).value)
            for cell in cells
        ]
        await self._cells.keep(run_id, clean)


def cleaned(report: ValidationReport, redactor: Redactor) -> ValidationReport:
    """Without what must not be stored: a report quotes what a model said."""
    fallen = [
        msgspec.structs.replace(each, sentence=redactor.text(each.sentence).value)
        for each in report.fallen
    ]
    notes = [redactor.text(note).value for note in report.notes]
    return msgspec.structs.replace(report, fallen=tuple(fallen), notes=tuple(notes))


def _write(folder: Path, report: ValidationReport) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / "report.json").write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    (folder / "report.md").write_text(as_markdown(report))
