"""How did a job go, step by step? Its curves while it runs, when it has failed, and as its model's artifact.

| the job        | its steps stand in                              |
|----------------|-------------------------------------------------|
| runs, or failed | its own folder, `steps.jsonl`                   |
| completed      | the artifacts beside its model's checkpoint      |

Of long jobs some steps are left out, evenly, and never the last one.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from upswing.contracts.typed import json_decoder
from upswing.errors import Misuse, Transient
from upswing.infra.thinning import evenly
from upswing.train.checkpoints.storage import CheckpointStore
from upswing.train.core.report import StepReport
from upswing.train.learn.evaluation import PolicyEvaluation

MOST_BYTES = 16 * 1024 * 1024
"""Of a file of steps: some 60,000 of them. Of a longer one the end is read."""
T = TypeVar("T", StepReport, PolicyEvaluation)


@dataclass(frozen=True, slots=True)
class JobCurves:
    """What the steps of a job reported."""

    steps: int = 0
    """How many there were, as far as they were read."""
    shown: list[StepReport] = field(default_factory=list)
    evaluations: list[PolicyEvaluation] = field(default_factory=list)
    cut: bool = False
    """The beginning of a very long job was not read."""

    @property
    def thinned(self) -> bool:
        return self.cut or len(self.shown) < self.steps


class JobCurveReader:
    """Reads files; never writes."""

    def __init__(self, jobs_folder: Path, checkpoint_store: CheckpointStore) -> None:
        self._folder, self._store = jobs_folder, checkpoint_store

    async def read(self, job_id: str, card: str | None, points: int) -> JobCurves:
        """The curves; `card` is where the card of the job's model lies, if there is one."""
        steps, cut = await self._lines(job_id, card, "steps.jsonl")
        evaluations, _ = await self._lines(job_id, card, "evaluations.jsonl")
        reports = list({each.step: each for each in _decode(steps, StepReport)}.values())
        values = _decode(evaluations, PolicyEvaluation)
        return JobCurves(len(reports), evenly(reports, points), evenly(values, points), cut)

    async def _lines(self, job_id: str, card: str | None, name: str) -> tuple[bytes, bool]:
        path = self._folder / f"job-{job_id}" / name
        found = await asyncio.to_thread(_read_end, path)
        if found is not None:
            return found
        if not card:
            return b"", False
        try:
            beside = f"{card.rpartition('/')[0]}/{name}"
            return await self._store.read_artifact(beside, MOST_BYTES) or b"", False
        except (
            Misuse,
            Transient,
        ):  # a model that is kept elsewhere, or whose place is away just now
            return b"", False


def _read_end(path: Path) -> tuple[bytes, bool] | None:
    """The end of a file, and whether more stands before it; None: it is not there."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            start = max(0, size - MOST_BYTES)
            file.seek(start)
            raw = file.read(MOST_BYTES)
    except OSError:
        return None
    return (raw.partition(b"\n")[2], True) if start else (raw, False)


def _decode(lines: bytes, kind: type[T]) -> list[T]:
    """The lines that are whole: the last one may be on its way."""
    read = json_decoder(kind)
    found = []
    for line in lines.splitlines():
        try:
            found.append(read.decode(line))
        except msgspec.MsgspecError:
            continue
    return found
