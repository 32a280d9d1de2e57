"""A word speaks of a person's number or date: which number near it is meant?

Behind the word, or before it, on the same line and in the same sentence: *born in Leeds on …*,
*am … geboren*, *you can reach me after six at …*.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from .layer import Span

_AHEAD, _BACK, _WIDEST = 48, 34, 48
_GAP = r"(?:[^\n\x00.!?;0-9]|\.(?=[ :\-)]|[A-Z])|\([^()\n]{1,20}\)){0,"
Check = Callable[[str, str], bool]


@lru_cache(maxsize=32)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def value_near_names(
    names: str, value: str, check: Check, *, back: bool = True
) -> Callable[[str, int, int, int], tuple[list[Span], int]]:
    """What stands near one of `names` and has the form `value`; `check` gets the name and the value."""
    behind = rf"(?P<k>{names}){_GAP}{_AHEAD}}}?(?<![A-Za-z0-9])(?P<v>{value})"
    before = rf"(?<![A-Za-z0-9.])(?P<v>{value})(?:[^\n\x00.!?;0-9]|\.(?=[ ][a-z])){{0,{_BACK}}}\Z"

    def find_value(
        text: str, position: int, search_start: int, search_end: int
    ) -> tuple[list[Span], int]:
        match = _compile_pattern(behind).match(text, position, min(search_end, position + 160))
        if match and check(match.group("k"), match.group("v")):
            return [match.span("v")], match.end()
        name = _compile_pattern(names).match(text, position, search_end)
        if not back or name is None:
            return [], position + 1
        low = max(search_start, position - _BACK - _WIDEST)
        low = max(low, text.rfind("\n", low, position) + 1)
        earlier = _compile_pattern(before).search(text[low:position])
        if earlier and check(name.group(), earlier.group("v")):
            return [(low + earlier.start("v"), low + earlier.end("v"))], name.end()
        return [], position + 1

    return find_value
