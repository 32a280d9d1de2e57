"""How does TensorBoard see a job? Event files, one scalar per measure and step."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from torch.utils.tensorboard import SummaryWriter

from upswing.train.core.report import CheckpointSaved, StepReport

SCALAR_TAGS = {
    "loss": "train/loss",
    "reward_mean": "reward/mean",
    "reward_std": "reward/std",
    "entropy": "policy/entropy",
    "kl": "policy/kl",
    "clipped": "policy/clipped_share",
    "grad_norm": "train/grad_norm",
    "learning_rate": "train/learning_rate",
    "epoch": "train/epoch",
    "tokens": "train/tokens",
    "seconds": "time/step_seconds",
}
HOLDOUT_TAG = "reward/holdout"


class TensorBoardWriter:
    """The event files of one job."""

    def __init__(self, writer: SummaryWriter) -> None:
        self._writer = writer

    def write_step(self, report: StepReport) -> None:
        for field, value in msgspec.structs.asdict(report).items():
            if field in SCALAR_TAGS:
                self._write_scalar(SCALAR_TAGS[field], value, report.step)

    def write_checkpoint(self, report: CheckpointSaved) -> None:
        if report.holdout is not None:
            self._write_scalar(HOLDOUT_TAG, report.holdout, report.step)

    def flush(self) -> None:
        self._writer.flush()

    def _write_scalar(self, tag: str, value: float, step: int) -> None:
        self._writer.add_scalar(tag, value, step)


@contextlib.contextmanager
def open_tensorboard(folder: Path, first_step: int = 0) -> Iterator[TensorBoardWriter]:
    """Write into this folder. What an attempt before wrote of `first_step` and later is void."""
    purge = first_step if first_step > 0 else None
    writer = SummaryWriter(str(folder), purge_step=purge)
    try:
        yield TensorBoardWriter(writer)
    finally:
        writer.close()


def write_events(curves: Iterable[StepReport], folder: Path) -> None:
    """The whole log of a job, instead of what an attempt before left in the folder."""
    for old in folder.glob("events.out.tfevents.*"):
        old.unlink()
    with open_tensorboard(folder) as written:
        for each in curves:
            written.write_step(each)
