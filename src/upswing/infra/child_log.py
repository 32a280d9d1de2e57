"""What does a child process say? Its lines, however long, and in our log at the level that they have in its own."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator

from upswing.logs import record_of_json

_MAX_LINE_BYTES = 64 * 1024
_LEVELS = logging.getLevelNamesMapping()
_LINE = re.compile(
    r"\d{4}-\d\d-\d\d [\d:,]+ (DEBUG|INFO|WARNING|ERROR|CRITICAL) +(\S+) (.*)", re.DOTALL
)


async def read_lines(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    """Line by line, however long; a pipe that nobody empties would stop the child."""
    rest = b""
    while chunk := await stream.read(_MAX_LINE_BYTES):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line[:_MAX_LINE_BYTES].decode(errors="replace").rstrip()
        rest = rest[:_MAX_LINE_BYTES]
    if rest:
        yield rest.decode(errors="replace").rstrip()


def log_child_line(line: str) -> bool:
    """Say a line of a child's log in ours; False when it is no line of a log."""
    if (record := record_of_json(line)) is not None:
        logging.getLogger(record.name).handle(record)
        return True
    found = _LINE.fullmatch(line)
    if found is None:
        return False
    logging.getLogger(found[2]).log(_LEVELS[found[1]], "%s", found[3])
    return True
