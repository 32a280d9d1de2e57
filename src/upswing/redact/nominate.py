"""Where is it worth looking? Two engines, one answer.

Both engines return the same places: where an anchor of a rule stands, and where text may hide
in another form. They decide nothing; `scan` matches each rule exactly at its places.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Protocol

from .disguise import CHEAP, Begun, prefix_marks
from .disguise import MARKS as DISGUISES
from .rule import LEFT, Anchor, Rule

try:
    import hyperscan
except ImportError:  # pragma: no cover - the wheel exists for most platforms
    hyperscan = None  # type: ignore[assignment]

_FIRST, _SECOND = "CDI-Za-f", "AC-HQS-Xgi-nwyz0-3"
_THIRD, _ANY = "ABEFIJMNQRUVYZcdghklopstwx014589", r"A-Za-z0-9+/_\-"
_GROUP = f"[{_FIRST}][{_SECOND}][{_THIRD}][{_ANY}]"
"""Four characters of base64 that decode to three printable ones: one group in eleven by chance."""

_STRANGE = (  # not the dashes, quotes and dots of ordinary prose
    "(?:00[aA][dD]|0[345][0-9a-fA-F]{2}|1[16-9dD][0-9a-fA-F]{2}"
    "|20(?:0[b-fB-F]|1[0-2]|2[4a-eA-E]|4[34]|[67][0-9a-fA-F])|21[0-8][0-9a-fA-F]|221[25]|2236"
    "|24[6-9a-fA-F][0-9a-fA-F]|[aA]4[c-fC-F][0-9a-fA-F]|[fF][eEfF][0-9a-fA-F]{2})"
)
MARKS: tuple[tuple[str, str, str], ...] = (
    # name, pattern, and what must follow so that a long run is reported once, at its end
    ("base64", f"(?:{_GROUP}){{3}}", f"(?:[^{_FIRST}]|[{_FIRST}][^{_SECOND}]|[{_FIRST}][{_SECOND}][^{_THIRD}]|[{_FIRST}][{_SECOND}][{_THIRD}][^{_ANY}])"),
    ("base64", "(?:[I-Za-f][AQgw][AB][A-Za-z0-9+/]A[C-H][AEIMQUYcgkosw048]A){2}", ""),  # UTF-16
    ("hex", "(?:[2-7][0-9a-fA-F]){8}", "(?:[^2-7]|[2-7][^0-9a-fA-F])"),
    ("hex-spaced", r"(?:[2-7][0-9a-fA-F](?:[ :\-]|, ?0x| 0x)){7}[2-7][0-9a-fA-F]", ""),
    ("units", "%[2-7][0-9a-fA-F]", ""),
    ("units", r"\\u00[2-7][0-9a-fA-F]", ""),
    ("units", rf"\\u{_STRANGE}[A-Za-z0-9_\-]", ""),  # look-alikes and invisible ones, where they
    ("units", rf"[G-Zg-z_\-]\\u{_STRANGE}", ""),  # stand beside ASCII: prose in other scripts does not
    ("units", r"\\x[2-7][0-9a-fA-F]", ""),
    ("units", r"\\U000000[2-7][0-9a-fA-F]", ""),
    ("units", r"\\u\{[2-7][0-9a-fA-F]\}", ""),
    ("units", r"\\[01][0-7][0-7]", ""),
    ("units", r"\\/", ""),
    ("units", "&#[xX]?[0-9a-fA-F]{2,6};", ""),
    ("units", "&(?:commat|period|colon|equals|lowbar|hyphen|amp|sol|quot);", ""),
    ("units", r"""["'][ ]?\+[ ]?["']""", ""),
    ("units", r"""[^\\][A-Za-z0-9_+/=\-]["'][ ]?\+?[ ]?\n[ ]{0,16}\+?[ ]?["'][A-Za-z0-9_+/=\-]""", ""),
    ("units", r"\x1b\[[0-9;]{0,8}[mK]", ""),
)  # fmt: skip
_EDGE = r"(?:^|[^A-Za-z0-9]|\\[nrtbf])"
_TOGETHER = 40
"""Anchors that share an expression; more make it too large to compile."""
_ALONE = 4
"""Letters of a word that is looked for only where no letter follows: `pin`, not `pine`."""
_PADDING = b"\n\n\n\n"


class TooMany(Exception):
    """More places than an honest text has; some of them."""

    def __init__(self, places: list[int]) -> None:
        super().__init__(len(places))
        self.places = places


@dataclass(slots=True)
class Nominations:
    places: list[tuple[int, int]] = field(default_factory=list)
    """(position, index of the rule), sorted."""
    marks: dict[str, list[int]] = field(default_factory=dict)
    """Name of a decoder: positions inside what it may decode, sorted."""


class Engine(Protocol):
    def __init__(self, rules: tuple[Rule, ...]) -> None: ...

    def nominate(self, data: bytes) -> Nominations: ...


def most_places(size: int) -> int:
    """How many places, runs or findings may a text of this size have? Honest ones have a tenth."""
    return 2048 + size // 256


def most_marks(size: int) -> int:
    """How many escapes? They are cheap, and honest texts may consist of them."""
    return 8192 + size // 96


def _collect(rules: tuple[Rule, ...]) -> list[tuple[int, Anchor]]:
    return [(i, anchor) for i, rule in enumerate(rules) for anchor in rule.anchors]


def begun_of(rules: tuple[Rule, ...]) -> tuple[Begun, ...]:
    """How the prefixes that the rules know begin in a disguise."""
    prefixes = {
        a.literal
        for rule in rules
        if rule.split
        for a in rule.anchors
        if a.literal and not a.caseless
    }
    return prefix_marks(prefixes)


class _Words:
    """Anchors of one expression: from the end of its match back to the literals in it."""

    def __init__(self, group: list[tuple[int, Anchor]]) -> None:
        self.width = group[0][1].width
        self.rule = group[0][0]
        self._reach = max(anchor.reach for _, anchor in group)
        literals = {anchor.literal.lower().encode() for _, anchor in group}
        longest = sorted(literals, key=len, reverse=True)
        self._longest = longest
        self._rules = {
            word: [rule for rule, a in group if word.startswith(a.literal.lower().encode())]
            for word in literals
        }

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        return re.compile(b"(?=(" + b"|".join(map(re.escape, self._longest)) + b"))")

    def places(self, low: bytes, end: int) -> Iterator[tuple[int, int]]:
        for match in self._pattern.finditer(low, max(0, end - self._reach), end):
            for rule in self._rules[match.group(1)]:
                yield match.start(), rule


class _Begun:
    """The beginning of a disguise: told by its literal, and read where it stands."""

    def __init__(self, begun: Begun) -> None:
        self.name, self.literal = begun.name, begun.literal.encode()
        self.expression = begun.edge + re.escape(begun.literal)
        self._edge = begun.edge
        self._after, self._before = _pattern(begun.after), _before(begun.before)
        self._width = begun.width

    def mark(self, data: bytes, end: int) -> int | None:
        """A place inside the disguise, if there is one whose literal ends here."""
        start = end - len(self.literal)
        if self._edge and start > 0 and data[start - 1 : start].isalnum():
            return None
        after = self._after.match(data, end) or (not self._width and end == len(data))
        if not after or (self._before is not None and not _precedes(self._before, data, start)):
            return None
        return end + self._width - 1 if self._width else start


@lru_cache(maxsize=256)
def _pattern(expression: str) -> re.Pattern[bytes]:
    return re.compile(expression.encode())


class PythonEngine:
    """`bytes.find` for literals, `re` for shapes: works everywhere."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._literals: list[tuple[int, Anchor, re.Pattern[bytes]]] = []
        self._shapes: list[tuple[int, re.Pattern[bytes]]] = []
        for rule, anchor in _collect(rules):
            if anchor.literal:
                flags = re.IGNORECASE if anchor.caseless else 0
                self._literals.append((rule, anchor, re.compile(anchor.follow.encode(), flags)))
            else:
                edge = LEFT if anchor.edged else ""
                self._shapes.append((rule, re.compile((edge + anchor.follow).encode())))
        any_shape = b"|".join(shape.pattern for _, shape in self._shapes) or b"(?!)"
        self._any_shape = re.compile(rb"(?=[(+A-Za-z0-9.:])(?=" + any_shape + b")")
        self._marks = [
            (name, re.compile((f"(?={pattern})" if follow else pattern).encode()))
            for name, pattern, follow in MARKS + DISGUISES
        ]
        self._begun = [_Begun(begun) for begun in begun_of(rules)]

    def nominate(self, data: bytes) -> Nominations:
        places = set(self._places(data))
        marks: dict[str, set[int]] = {}
        for name, pattern in self._marks:
            inside = {max(match.start(), match.end() - 1) for match in pattern.finditer(data)}
            marks[name] = marks.get(name, set()) | inside
        for begun in self._begun:
            at = data.find(begun.literal)
            while at >= 0:
                if (mark := begun.mark(data, at + len(begun.literal))) is not None:
                    marks.setdefault(begun.name, set()).add(mark)
                at = data.find(begun.literal, at + 1)
        return _checked(places, marks, len(data))

    def _places(self, data: bytes) -> Iterator[tuple[int, int]]:
        low = data.lower()
        for rule, anchor, follow in self._literals:
            hay, needle = (
                (data, anchor.literal) if not anchor.caseless else (low, anchor.literal.lower())
            )
            at = hay.find(needle.encode())
            while at >= 0:
                if follow.match(data, at + len(needle)) and (
                    not anchor.before or _precedes(re.compile(anchor.before.encode()), data, at)
                ):
                    yield at, rule
                at = hay.find(needle.encode(), at + 1)
        for match in self._any_shape.finditer(data):
            at = match.start()
            yield from ((at, rule) for rule, shape in self._shapes if shape.match(data, at))


def _checked(places: set[tuple[int, int]], marks: dict[str, set[int]], size: int) -> Nominations:
    runs = [at for name, inside in marks.items() if name not in CHEAP for at in inside]
    if len(places) + len(runs) > most_places(size):
        raise TooMany([at for at, _ in places] + runs)
    for name in CHEAP & marks.keys():
        if len(marks[name]) > most_marks(size):
            raise TooMany(list(marks[name]))
    return Nominations(sorted(places), {name: sorted(at) for name, at in marks.items()})


class _Late:
    """A word of many rules: where it stands, what follows it is looked at for each of them."""

    def __init__(self, group: list[tuple[int, Anchor]]) -> None:
        literal = group[0][1].literal
        self._size = len(literal)
        self._alone = literal.isalpha() and self._size <= _ALONE
        self.expression = re.escape(literal) + ("[^A-Za-z]" if self._alone else "")
        follows: dict[tuple[str, str], list[int]] = {}
        for rule, anchor in group:
            follows.setdefault((anchor.follow, anchor.before), []).append(rule)
        self._follows = [
            (_caseless(follow), _before(before), rules)
            for (follow, before), rules in follows.items()
        ]

    def places(self, data: bytes, end: int) -> Iterator[tuple[int, int]]:
        stop = end - 1 if self._alone else end
        start = stop - self._size
        for follow, before, rules in self._follows:
            if follow.match(data, stop) and (before is None or _precedes(before, data, start)):
                yield from ((start, rule) for rule in rules)


@lru_cache(maxsize=256)
def _caseless(expression: str) -> re.Pattern[bytes]:
    return re.compile(expression.encode(), re.IGNORECASE)


def _before(pattern: str) -> re.Pattern[bytes] | None:
    return _pattern(pattern) if pattern else None


def _precedes(before: re.Pattern[bytes], data: bytes, at: int) -> bool:
    return before.match(data[max(0, at - 64) : at][::-1]) is not None


class HyperscanEngine:
    """All anchors and decoders in one pass, at hundreds of megabytes a second."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        anchors = _collect(rules)
        groups = _grouped([(rule, anchor) for rule, anchor in anchors if not anchor.late])
        self._words = [_Words(group) for group in groups]
        self._late = [_Late(group) for group in _by_literal(anchors)]
        expressions = [_expression([anchor for _, anchor in group]) for group in groups]
        flags = [hyperscan.HS_FLAG_CASELESS if g[0][1].caseless else 0 for g in groups]
        expressions += [late.expression for late in self._late]
        flags += [hyperscan.HS_FLAG_CASELESS] * len(self._late)
        self._marks = MARKS + DISGUISES
        self._begun = [_Begun(begun) for begun in begun_of(rules)]
        expressions += [pattern + end for _, pattern, end in self._marks]
        expressions += [begun.expression for begun in self._begun]
        flags += [0] * (len(self._marks) + len(self._begun))
        self._database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        self._database.compile(
            expressions=[e.encode() for e in expressions],
            ids=list(range(len(expressions))),
            flags=[flag | hyperscan.HS_FLAG_DOTALL for flag in flags],
        )
        self._local = threading.local()

    def _scratch(self) -> Any:
        if not hasattr(self._local, "scratch"):
            self._local.scratch = hyperscan.Scratch(self._database)
        return self._local.scratch

    def nominate(self, data: bytes) -> Nominations:
        ends: list[tuple[int, int]] = []
        most = most_marks(len(data))

        def note(number: int, _from: int, end: int, _flags: int, _context: object) -> bool:
            ends.append((number, end))
            return len(ends) > most

        try:
            self._database.scan(data + _PADDING, match_event_handler=note, scratch=self._scratch())
        except hyperscan.ScanTerminated:
            raise TooMany([end for _, end in ends]) from None
        return self._places(data, ends) if ends else Nominations()

    def _places(self, data: bytes, ends: list[tuple[int, int]]) -> Nominations:
        low = data.lower()
        places: set[tuple[int, int]] = set()
        marks: dict[str, set[int]] = {}
        count, late = len(self._words), len(self._words) + len(self._late)
        for number, end in ends:
            if number < count:
                words = self._words[number]
                if words.width:
                    places.add((end - words.width, words.rule))
                else:
                    places.update(words.places(low, end))
            elif number < late:
                places.update(self._late[number - count].places(data, end))
            elif number < late + len(self._marks):
                name, _, follow = self._marks[number - late]
                marks.setdefault(name, set()).add(end - (5 if follow else 1))
            else:
                begun = self._begun[number - late - len(self._marks)]
                if (mark := begun.mark(data, end)) is not None:
                    marks.setdefault(begun.name, set()).add(mark)
        return _checked(places, marks, len(data))


def _by_literal(anchors: list[tuple[int, Anchor]]) -> list[list[tuple[int, Anchor]]]:
    groups: dict[str, list[tuple[int, Anchor]]] = {}
    for rule, anchor in anchors:
        if anchor.late:
            groups.setdefault(anchor.literal.lower(), []).append((rule, anchor))
    return list(groups.values())


def _grouped(anchors: list[tuple[int, Anchor]]) -> list[list[tuple[int, Anchor]]]:
    """Anchors of varying width with the same ending share an expression: it compiles faster."""
    groups: dict[object, list[tuple[int, Anchor]]] = {}
    for rule, anchor in anchors:
        key = (rule, anchor) if anchor.width else (anchor.follow, anchor.caseless)
        groups.setdefault(key, []).append((rule, anchor))
    return [
        group[i : i + _TOGETHER]
        for group in groups.values()
        for i in range(0, len(group), _TOGETHER)
    ]


def _expression(anchors: list[Anchor]) -> str:
    first = anchors[0]
    words = sorted({re.escape(anchor.literal) for anchor in anchors})
    edge = (
        "" if first.literal or not first.edged else _EDGE
    )  # a shape without an edge would match inside numbers
    return edge + f"(?:{'|'.join(words)}){first.follow}"


def choose(name: str) -> type[Engine]:
    """The engine called `name`: hyperscan, python, or auto for the faster one at hand."""
    if name not in ("auto", "hyperscan", "python"):
        raise ValueError(f"engine {name!r}: choose auto, hyperscan or python")
    if name == "python" or (name == "auto" and hyperscan is None):
        return PythonEngine
    if hyperscan is None:
        raise ValueError("engine 'hyperscan': the hyperscan package is not installed")
    return HyperscanEngine
