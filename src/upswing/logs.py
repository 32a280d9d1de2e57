"""What may the log say? One line per event, with its `action`, and nothing private in it."""

from __future__ import annotations

import logging
import sys
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


def set_up_logging(
    redactor: Redactor, level: int = logging.INFO, out: TextIO | None = None
) -> None:
    """Log to standard error, or to an open file."""
    handler = logging.StreamHandler(out or sys.stderr)
    handler.setFormatter(CleanFormatter(redactor))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for chatty in ("nats", "uvicorn.error"):
        logging.getLogger(chatty).setLevel(logging.CRITICAL)
    for chatty in ("httpx", "httpx2", "openai"):  # a line for every request of a client
        logging.getLogger(chatty).setLevel(logging.WARNING)
