"""What may the log say? One line per event, with its `action`, and nothing private in it."""

from __future__ import annotations

import logging
import sys
from collections import OrderedDict
from dataclasses import dataclass
from typing import TextIO

from upswing.redact import RedactionFailed, Redactor


class CleanFormatter(logging.Formatter):
    """Formats a record, then redacts the line: a log is a disk like any other."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s %(message)s")
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        if action := getattr(record, "action", None):
            line = f"{line} action={action}"
        try:
            return str(self._redactor.text(line).value)
        except RedactionFailed:
            return (
                f"{record.levelname} {record.name}: a line that could not be redacted was left out"
            )


_FIRST_WAIT, _LONGEST_WAIT = 60.0, 3600.0
"""Seconds until a line that comes over and over is said again, doubled each time."""
_REMEMBERED = 512
"""Different lines; the one that came longest ago is forgotten."""
EVENTS = frozenset({"gateway_restart", "model_server_restart", "nats_restart"})
"""Actions of which each is a change, even if its line is the same."""


@dataclass(slots=True)
class _Line:
    said: float
    seen: float
    wait: float = _FIRST_WAIT
    more: int = 0


class Repeats(logging.Filter):
    """One line for each change: the same line over and over is counted, and said ever more rarely."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: OrderedDict[tuple[str, int, str, str], _Line] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record, "action", None) in EVENTS:
            return True
        error = str(record.exc_info[1]) if record.exc_info else ""
        key, now = (record.name, record.levelno, record.getMessage(), error), record.created
        line = self._lines.get(key)
        if line is None or now - line.seen >= max(line.wait, _FIRST_WAIT):
            self._lines[key] = _Line(now, now)
            self._lines.move_to_end(key)
            if len(self._lines) > _REMEMBERED:
                self._lines.popitem(last=False)
            return True
        line.seen = now
        if now - line.said < line.wait:
            line.more += 1
            return False
        times = f"{line.more:,} times more" if line.more > 1 else "once more"
        if line.more:
            record.msg, record.args = f"{key[2]} ({times} since)", ()
        line.said, line.wait, line.more = now, min(2 * line.wait, _LONGEST_WAIT), 0
        return True


def set_up_logging(
    redactor: Redactor, level: int = logging.INFO, out: TextIO | None = None
) -> None:
    """Log to standard error, or to an open file."""
    handler = logging.StreamHandler(out or sys.stderr)
    handler.setFormatter(CleanFormatter(redactor))
    handler.addFilter(Repeats())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for chatty in ("nats", "uvicorn.error"):
        logging.getLogger(chatty).setLevel(logging.CRITICAL)
    for chatty in ("httpx", "httpx2", "openai"):  # a line for every request of a client
        logging.getLogger(chatty).setLevel(logging.WARNING)
