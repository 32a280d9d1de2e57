"""What may text of others do to a terminal? Nothing: control characters are shown, not obeyed.

Names, tasks and details come from agents. An escape sequence in one of them could rename a window, hide a line
or write to the clipboard of whoever reads it. So every stream of the command line and every line of the log goes
through here; whoever draws on purpose asks for the `unwrapped_stdout` itself.
"""

from __future__ import annotations

import sys
from typing import Any, TextIO

from upswing.logs import printable


def printable_tree(value: Any) -> Any:
    """The same for all text in what a loop answered."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable_tree(key): printable_tree(each) for key, each in value.items()}
    return [printable_tree(each) for each in value] if isinstance(value, list) else value


class PrintableStream:
    """A text stream on which nobody's text controls the terminal."""

    def __init__(self, stream: TextIO) -> None:
        self.terminal = stream

    def write(self, text: str) -> int:
        return self.terminal.write(printable(text))

    def writelines(self, lines: list[str]) -> None:
        self.terminal.writelines(map(printable, lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.terminal, name)


def unwrapped_stdout() -> TextIO:
    """Standard output itself, for whoever draws on it."""
    found: TextIO = getattr(sys.stdout, "terminal", sys.stdout)
    return found
