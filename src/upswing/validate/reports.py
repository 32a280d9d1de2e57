"""What stays of a validation? Its sample scores while it runs; then its report, three times, and no sample scores.

    sample scores, redacted ─▶ report, redacted ─▶ artifact ─▶ row and decision, in one transaction ─▶ no sample scores

Killed anywhere on this way, it is gone through again with the same end.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path
from uuid import UUID

import msgspec

from upswing.contracts.validation import SampleScore, ValidationReport
from upswing.errors import Transient, UpswingError
from upswing.infra.backoff import Backoff
from upswing.records import Decision
from upswing.redact import Redactor
from upswing.validate.core.render import as_markdown
from upswing.validate.core.replay import encode_inputs, replay_verdict
from upswing.validate.core.verdict import ValidationPolicy
from upswing.validate.leases import LeaseLost, RunLease
from upswing.validate.metrics import ValidateMetrics
from upswing.validate.player import Sleep
from upswing.validate.repository import Validations
from upswing.validate.sample_score_store import FileSampleScores

log = logging.getLogger(__name__)
STAGE, KIND = "validate", "validation"
_RETRIES = Backoff(1.0, 60.0)
"""Seconds until a report is written again."""
AttachFiles = Callable[[Path, str], Awaitable[str]]
"""Stores a folder of files under a prefix of the artifact store; their address."""


class ReportStore:
    """Keeps sample scores and reports."""

    def __init__(
        self,
        folder: Path,
        rows: Validations,
        attach_files: AttachFiles,
        redactor: Redactor,
        metrics: ValidateMetrics | None,
        *,
        lease: RunLease,
        clock: Callable[[], datetime],
        new_id: Callable[[], UUID],
        sleep: Sleep,
    ) -> None:
        self._folder, self._rows, self._lease = folder, rows, lease
        self._attach_files = attach_files
        self._redactor, self._metrics = redactor, metrics
        self._clock, self._new_id, self._sleep = clock, new_id, sleep
        self.sample_scores = _RedactingSampleScores(FileSampleScores(folder), redactor)

    async def publish_scores(self) -> None:
        """The scores of the newest reports, to whoever watches the metrics."""
        if self._metrics:
            for row in reversed(await self._rows.newest()):
                if row.report:
                    self._metrics.record_scores(row.report)

    async def save(self, report: ValidationReport, policy: ValidationPolicy) -> ValidationReport:
        """The report as it is kept; a store that is away is waited for. `LeaseLost`: it is another's now."""
        report = redact_report(report, self._redactor)
        kept = await self._save_with_retry(report, self._decision(report, policy))
        await self.sample_scores.delete(report.run_id)
        if self._metrics:
            self._metrics.record_scores(kept)
            self._metrics.count_ended(kept.verdict)
        return kept

    async def _save_with_retry(
        self, report: ValidationReport, decision: Decision
    ) -> ValidationReport:
        failures = 0
        while True:
            try:
                return await self._save_once(report, decision)
            except LeaseLost:
                raise
            except Transient as error:
                log.warning("%s", error, extra={"action": "keep_validation"})
                failures += 1
                await self._sleep(_RETRIES.seconds(failures))

    async def _save_once(self, report: ValidationReport, decision: Decision) -> ValidationReport:
        """Whoever was silent for too long writes nothing: what another process reports counts."""
        run_id, holder = report.run_id, self._lease.holder
        if await self._lease.acquire(run_id):
            artifact = await self._write_artifact(report)
            if await self._rows.finish(report, artifact, decision, self._clock(), holder):
                return report
        row = await self._rows.get(run_id)
        if row is None or row.report is None:
            raise LeaseLost(f"Another process does the validation {run_id} now.")
        return row.report

    async def save_failure(self, run_id: str, error: Exception) -> None:
        """There is no report, and why."""
        ours = isinstance(error, UpswingError)
        log.warning("%s: %s", run_id, error, exc_info=not ours, extra={"action": "validate"})
        sentence = str(error) if ours else "Something of ours broke; the log says what."
        clean = self._redactor.text(sentence).value
        failed = await self._rows.fail(run_id, clean, self._clock(), self._lease.holder)
        if failed and self._metrics:
            self._metrics.count_ended("failed")

    def _decision(self, report: ValidationReport, policy: ValidationPolicy) -> Decision:
        inputs = encode_inputs(report, policy)
        outcome, sentence = replay_verdict(inputs)
        return Decision(
            str(self._new_id()),
            STAGE,
            KIND,
            sentence,
            inputs,
            outcome,
            self._clock(),
            about=report.candidate,
        )

    async def _write_artifact(self, report: ValidationReport) -> str:
        folder = self._folder / "reports" / report.run_id
        await asyncio.to_thread(_write_files, folder, report)
        artifact = await self._attach_files(folder, f"validations/{report.run_id}")
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        return artifact


class _RedactingSampleScores:
    """Sample scores that are redacted before they are written."""

    def __init__(self, sample_scores: FileSampleScores, redactor: Redactor) -> None:
        self._sample_scores, self._redactor = sample_scores, redactor
        self.load, self.delete = sample_scores.load, sample_scores.delete

    async def append(self, run_id: str, sample_scores: Sequence[SampleScore]) -> None:
        clean = [
            msgspec.structs.replace(
                sample_score, sentence=self._redactor.text(sample_score.sentence).value
            )
            for sample_score in sample_scores
        ]
        await self._sample_scores.append(run_id, clean)


def redact_report(report: ValidationReport, redactor: Redactor) -> ValidationReport:
    """Without what must not be stored: a report quotes what a model said."""
    regressed = [
        msgspec.structs.replace(each, sentence=redactor.text(each.sentence).value)
        for each in report.fallen
    ]
    notes = [redactor.text(note).value for note in report.notes]
    return msgspec.structs.replace(report, fallen=tuple(regressed), notes=tuple(notes))


def _write_files(folder: Path, report: ValidationReport) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / "report.json").write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    (folder / "report.md").write_text(as_markdown(report))
