"""What of the tokens drawn so far can be shown already? Whole characters, and no half of a stop text.

A token may be a part of a character, and a space may belong to the token behind it; so text is what
the tokens spell together, and the end of it waits as long as it may change:

    drawn    "Hi" │ " f0 9f" │ "98 80" │ " ST" │ "OP" │ …
    shown    "Hi" │          │ " 😀"   │       │ the end: the stop text "STOP" is not shown
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Decode = Callable[[Sequence[int]], str]
_REPLACED = "�"
_LONGEST = 4
"""Bytes of a character: so many replacements at the end may yet become one."""


class Detokenizer:
    """The text of one answer."""

    def __init__(self, decode: Decode, stop_texts: Sequence[str] = ()) -> None:
        self._decode, self._stops = decode, tuple(stop_texts)
        self._ids: list[int] = []
        self._before, self._settled = 0, 0
        """Where the tokens begin that are decoded again, and where those end whose text is shown."""
        self._shown = 0
        """Characters of what those tokens spell that are no longer held back."""
        self._held = ""
        self.stopped = False
        """A stop text has come."""

    def add(self, token: int) -> str:
        """What can be shown now that this token is drawn.

        >>> spelling = Detokenizer(lambda ids: "".join("abSTOPx"[n] for n in ids), ["STOP"])
        >>> [spelling.add(n) for n in (0, 2, 1, 2, 3, 4, 5)], spelling.stopped
        (['a', '', 'Sb', '', '', '', ''], True)
        """
        self._ids.append(token)
        return self._cut_at_stop(self._new_text(last=False))

    def finish(self) -> str:
        """What is left to be shown when no more tokens come."""
        if self.stopped:
            return ""
        text = self._cut_at_stop(self._new_text(last=True))
        if not self.stopped:
            text, self._held = text + self._held, ""
        return text

    def _new_text(self, *, last: bool) -> str:
        text = self._decode(self._ids[self._before :])
        run = len(text) - len(text.rstrip(_REPLACED))
        ready = len(text) - (0 if last else min(run, _LONGEST))
        fresh = text[self._shown : ready]
        if fresh and not run:
            self._before, self._settled = self._settled, len(self._ids)
            self._shown = len(self._decode(self._ids[self._before :]))
        else:
            self._shown = max(self._shown, ready)
        return fresh

    def _cut_at_stop(self, text: str) -> str:
        """The part of the text that can no longer turn out to be a stop text."""
        if not self._stops:
            return text
        whole = self._held + text
        found = [at for stop in self._stops if (at := whole.find(stop)) >= 0]
        if found:
            self.stopped, self._held = True, ""
            return whole[: min(found)]
        kept = max(stop_overlap(whole, stop) for stop in self._stops)
        self._held = whole[len(whole) - kept :]
        return whole[: len(whole) - kept]


def stop_overlap(text: str, stop: str) -> int:
    """How much of the end of the text is a beginning of the stop text.

    >>> stop_overlap("go ST", "STOP"), stop_overlap("go", "STOP")
    (2, 0)
    """
    longest = min(len(text), len(stop) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(stop[:size])), 0)
