"""What does a caller do when redaction itself breaks? It stores nothing."""

from __future__ import annotations


class RedactionFailed(Exception):
    """The redactor broke down on this input, so none of it may be stored.

    The message names the exception's type only: its text could quote the input.
    """


class Overflow(Exception):
    """A text holds more candidates than an honest one would; `leaves` are to be dropped whole."""

    def __init__(self, leaves: tuple[int, ...]) -> None:
        super().__init__(len(leaves))
        self.leaves = leaves
