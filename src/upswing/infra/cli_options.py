"""Is this what an option takes? Numbers with bounds, which say themselves what they are."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from math import isfinite
from pathlib import Path


@dataclass(frozen=True, slots=True)
class IntegerOption:
    """A whole number between bounds, which are allowed.

    >>> IntegerOption(1)("0")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: give a whole number from 1 on, not '0'
    """

    least: int
    most: int | None = None

    def __call__(self, text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = self.least - 1
        if value < self.least or (self.most is not None and value > self.most):
            raise argparse.ArgumentTypeError(f"give a whole number {self.bounds}, not {text!r}")
        return value

    @property
    def bounds(self) -> str:
        least, most = self.least, self.most
        return f"from {least} on" if most is None else f"from {least} to {most}"


@dataclass(frozen=True, slots=True)
class FloatOption:
    """A number between bounds; the lower one is allowed unless `above`.

    >>> FloatOption(0, above=True)("nan")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: give a number above 0, not 'nan'
    >>> FloatOption(0, 1)("1.5")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: give a number from 0 to 1, not '1.5'
    """

    least: float
    most: float | None = None
    above: bool = False

    def __call__(self, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        low = value > self.least if self.above else value >= self.least
        if not isfinite(value) or not low or (self.most is not None and value > self.most):
            raise argparse.ArgumentTypeError(f"give a number {self.bounds}, not {text!r}")
        return value

    @property
    def bounds(self) -> str:
        if self.most is None:
            return f"above {self.least:g}" if self.above else f"from {self.least:g} on"
        first = f"above {self.least:g} and up to" if self.above else f"from {self.least:g} to"
        return f"{first} {self.most:g}"


def add_log_options(parser: argparse.ArgumentParser, where: str = "standard error") -> None:
    """The same for everything that runs for long."""
    parser.add_argument(
        "--log-file",
        type=Path,
        metavar="PATH",
        help=f"write the log there, six files of 64 MB at most (default: {where})",
    )
    parser.add_argument(
        "--log-format",
        choices=("text", "json"),
        help="lines for people, or one JSON object each (default: $UPSWING_LOG_FORMAT, else text)",
    )


PORT = IntegerOption(0, 65535)
SEED = IntegerOption(-(2**63), 2**63 - 1)
