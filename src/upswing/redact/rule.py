"""What does a rule look like, and which patterns of a user are refused?

A rule is data. Its `anchors` say where it is worth looking (both engines only nominate
places), its `pattern` is then matched exactly there, and `validator` or `judge` has the
last word. A rule without anchors, as users write them, is searched for in the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from re import _constants as c  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

LEFT = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf]))"
"""The left border of a token: no letter or digit, or an escaped line break as in `\\nghp_`."""

_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_MAX_WIDTH = 4096
_MAX_WAYS = 20_000


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place worth looking at: `literal` and then `follow`, or the shape `follow` alone."""

    literal: str = ""
    follow: str = ""
    """Regular expression, in the common subset of `re` and hyperscan."""
    width: int = 0
    """Characters that literal and follow take together; 0 when that varies."""
    reach: int = 0
    """When the width varies: how far before the end the literal may begin."""
    caseless: bool = False
    edged: bool = True
    """For shapes: whether a letter or digit directly before rules the place out."""
    core: str = ""
    """For shapes of a fixed width: how `follow` ends, where its beginning stands everywhere in a text, so that looking
    for the end first costs less."""
    before: str = ""
    """For late anchors: what stands before the literal, matched against the reversed text there."""
    late: bool = False
    """Whether `follow` is looked at only where the literal stands: for long lists of words."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of thing that must not be stored.

    >>> Rule("employee-id", r"EMP-[0-9]{6}", literals=("EMP-",)).kind
    'employee-id'
    >>> Rule("slow", r"(a+)+b")
    Traceback (most recent call last):
        ...
    ValueError: rule 'slow': an unbounded repeat (*, + or {n,}) can take quadratic time; \
give it an upper bound, such as {1,64}
    """

    name: str
    pattern: str
    kind: str = ""
    """The word in the placeholder `<kind-1>`; the rule's name unless given."""
    literals: tuple[str, ...] = ()
    """For rules without anchors: the text is searched only if it holds one of these."""
    anchors: tuple[Anchor, ...] = ()
    validator: Callable[[str], bool] | None = None
    """Is this value real (checksum, entropy)? Gets the value alone."""
    judge: Callable[[re.Match[str]], bool] | None = None
    """The same question where the surroundings matter."""
    spans: Callable[[str, int, int, int], tuple[list[tuple[int, int]], int]] | None = None
    """Where the values stand, when one place announces several: the rows of a column. Gets the
    text, the place, and the borders of the piece; says also how far it has read."""
    back: str = ""
    """What belongs to the value before the anchor: matched against the reversed text there."""
    back_limit: int = 80
    flags: int = 0
    split: bool = False
    """Whether a value cut in two by the border of a turn is looked for."""
    priority: int = 50
    """Where two rules overlap the higher one names the placeholder."""
    about: str = ""
    example: str = ""
    """A text in which this rule, and no other, names the finding."""
    trusted: bool = False
    """Set on the built-in rules: their patterns are measured by the benchmark instead."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", self.kind or self.name)
        for word in (self.name, self.kind):
            if not _NAME.fullmatch(word):
                raise ValueError(f"rule {word!r}: a name is lower-case words joined by hyphens")
        if not self.trusted:
            refuse_dangerous(self.name, self.pattern, self.flags)


def refuse_dangerous(name: str, pattern: str, flags: int) -> None:
    """Raise ValueError, with the reason, for a pattern that is invalid or could take too long."""
    try:
        re.compile(pattern, flags)
        tree = parser.parse(pattern, flags)
    except (re.error, OverflowError, RecursionError) as wrong:
        raise ValueError(f"rule {name!r}: the pattern is not valid: {wrong}") from None
    ways, unbounded = _count_match_ways(tree)
    if unbounded:
        raise ValueError(
            f"rule {name!r}: an unbounded repeat (*, + or {{n,}}) can take quadratic time; "
            "give it an upper bound, such as {1,64}"
        )
    shortest, longest = tree.getwidth()
    if shortest == 0:
        raise ValueError(f"rule {name!r}: the pattern matches the empty text")
    if longest > _MAX_WIDTH:
        raise ValueError(f"rule {name!r}: a match could be longer than {_MAX_WIDTH} characters")
    if ways > _MAX_WAYS:
        raise ValueError(
            f"rule {name!r}: the pattern can match one place in more than {_MAX_WAYS} ways; "
            "use fewer variable repeats, or smaller ones"
        )


def _count_match_ways(tree: Any) -> tuple[float, bool]:
    """In how many ways can this match at one place, and does it repeat without bound?"""
    ways, unbounded = 1.0, False
    for op, arg in tree:
        parts: list[tuple[float, bool]] = []
        repeats = 1
        if op in (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT):
            low, high, body = arg
            unbounded = unbounded or high is c.MAXREPEAT
            inner, _ = part = _count_match_ways(body)
            parts.append((1.0, part[1]))
            repeats = 1 if high is c.MAXREPEAT else high - low + 1
            ways *= min(inner, 2.0) ** min(high, 64) if inner > 1 else 1
        elif op is c.BRANCH:
            branches = [_count_match_ways(branch) for branch in arg[1]]
            parts.append((sum(w for w, _ in branches), any(u for _, u in branches)))
        elif op in (c.SUBPATTERN, c.ATOMIC_GROUP, c.ASSERT, c.ASSERT_NOT):
            parts.append(_count_match_ways(arg if op is c.ATOMIC_GROUP else arg[-1]))
        ways *= repeats
        for inner, endless in parts:
            ways *= inner
            unbounded = unbounded or endless
    return ways, unbounded
