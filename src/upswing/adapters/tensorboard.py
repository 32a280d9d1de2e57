"""How does TensorBoard see a job? Event files, one scalar per measure and step."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from torch.utils.tensorboard import SummaryWriter

from upswing.train.report import Saved, Stepped

TAGS = {
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
HOLDOUT = "reward/holdout"


class Board:
    """The event files of one job."""

    def __init__(self, writer: SummaryWriter) -> None:
        self._writer = writer

    def step(self, told: Stepped) -> None:
        for field, value in msgspec.structs.asdict(told).items():
            if field in TAGS:
                self._scalar(TAGS[field], value, told.step)

    def saved(self, told: Saved) -> None:
        if told.holdout is not None:
            self._scalar(HOLDOUT, told.holdout, told.step)

    def flush(self) -> None:
        self._writer.flush()

    def _scalar(self, tag: str, value: float, step: int) -> None:
        self._writer.add_scalar(tag, value, step)


@contextlib.contextmanager
def board(folder: Path, first_step: int = 0) -> Iterator[Board]:
    """Write into this folder. What an attempt before wrote of `first_step` and later is void."""
    purge = first_step if first_step > 0 else None
    writer = SummaryWriter(str(folder), purge_step=purge)
    try:
        yield Board(writer)
    finally:
        writer.close()


def write_events(curves: Iterable[Stepped], folder: Path) -> None:
    """The whole log of a job, instead of what an attempt before left in the folder."""
    for old in folder.glob("events.out.tfevents.*"):
        old.unlink()
    with board(folder) as written:
        for each in curves:
            written.step(each)
