"""Where is it worth looking? Two engines, one answer.

Both engines return the same places: where an anchor of a rule stands, and where text may hide
in another form. They decide nothing; `scan` matches each rule exactly at its places.

A text with more places than can be looked at in time is read in windows. Those that hold the most are given up
as floods, and so are those for which no time is left; whatever stands in the others is nominated as always.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import count, islice, pairwise
from typing import NamedTuple, Protocol

from .bip39 import WORDS
from .digits import RUN, DigitText, holds_digit_run, max_digit_runs
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
    (
        "base64",
        f"(?:{_GROUP}){{3}}",
        f"(?:[^{_FIRST}]|[{_FIRST}][^{_SECOND}]|[{_FIRST}][{_SECOND}][^{_THIRD}]|[{_FIRST}][{_SECOND}][{_THIRD}][^{_ANY}])",
    ),
    ("base64", "(?:[I-Za-f][AQgw][AB][A-Za-z0-9+/]A[C-H][AEIMQUYcgkosw048]A){2}", ""),  # UTF-16
    ("hex", "(?:[2-7][0-9a-fA-F]){8}", "(?:[^2-7]|[2-7][^0-9a-fA-F])"),
    ("hex-spaced", r"(?:[2-7][0-9a-fA-F](?:[ :\-]|, ?0x| 0x)){7}[2-7][0-9a-fA-F]", ""),
    ("units", "%[2-7][0-9a-fA-F]", ""),
    ("units", r"\\u00[2-7][0-9a-fA-F]", ""),
    ("units", rf"\\u{_STRANGE}[A-Za-z0-9_\-]", ""),  # look-alikes and invisible ones, where they
    (
        "units",
        rf"[G-Zg-z_\-]\\u{_STRANGE}",
        "",
    ),  # stand beside ASCII: prose in other scripts does not
    ("units", r"\\x[2-7][0-9a-fA-F]", ""),
    ("units", r"\\U000000[2-7][0-9a-fA-F]", ""),
    ("units", r"\\u\{[2-7][0-9a-fA-F]\}", ""),
    ("units", r"\\[01][0-7][0-7]", ""),
    ("units", r"\\/", ""),
    ("units", "&#[xX]?[0-9a-fA-F]{2,6};", ""),
    ("units", "&(?:commat|period|colon|equals|lowbar|hyphen|amp|sol|quot);", ""),
    ("units", r"""["'][ ]?\+[ ]?["']""", ""),
    (
        "units",
        r"""[^\\][A-Za-z0-9_+/=\-]["'][ ]?\+?[ ]?\n[ ]{0,16}\+?[ ]?["'][A-Za-z0-9_+/=\-]""",
        "",
    ),
    ("units", r"\x1b\[[0-9;]{0,8}[mK]", ""),
)
_IN_ROW = "words"
"""The mark of words in a row. Ordinary prose is full of them, so an engine first says only whether there are any."""
_WORDS_IN_ROW = next(pattern for name, pattern, _ in DISGUISES if name == _IN_ROW)
_ALL_MARKS = tuple(mark for mark in MARKS + DISGUISES if mark[0] != _IN_ROW)
_EDGE = r"(?:^|[^A-Za-z0-9]|\\[nrtbf])"
_TOGETHER = 40
"""Anchors that share an expression; more make it too large to compile."""
_ALONE = 4
"""Letters of a word that is looked for only where no letter follows: `pin`, not `pine`."""
_PADDING = b"\n\n\n\n"
_WINDOW, _MARGIN = 4096, 512
"""Bytes that are read at once where there is a flood, and what is read with them on either side."""
_DENSE, _EVENTS = 320, 512
"""Places that a window with its margins may hold, and what an engine may report of it."""
_CALM, _CALM_EVENTS = 8, 48
"""What it may hold when no time is left: text with hardly anything in it stays behind any flood."""
_CLOSE = 4096
"""Bytes in which the border of a flood is looked for: lines around it, since a value may stand beside its name."""
_GAP = b"\0"
"""Between pieces of a layer (`layer.GAP`)."""
_LETTERS = re.compile(rb"[a-z]{3,8}")
_WORD = re.compile(rb"[A-Za-z]{3,8}")
_WORD_END = re.compile(rb"[A-Za-z]*")
_SEED_WORDS = frozenset(word.encode() for word in WORDS)
_SEED_STARTS = frozenset(word[:4] for word in _SEED_WORDS if len(word) > 3)
_SHORT_SEED_WORDS = frozenset(word for word in _SEED_WORDS if len(word) == 3)
"""Four letters tell a word of the list from all others in it."""
_SEED_LENGTH = 12
"""Words of the shortest seed phrase."""
_BEFORE, _BEFORE_REACH = 3, 48
"""Words before a mark that are looked up, and the bytes in which they stand: eight letters and eight between."""
_BESIDE, _WITHIN = 256, 64
"""Bytes read on either side of a likely mark, more than twelve words have; marks so close behind one need no look."""
Span = tuple[int, int]


class TooMany(Exception):
    """More places than an honest text has; some of them."""

    def __init__(self, places: list[int]) -> None:
        super().__init__(len(places))
        self.places = places


class ScanLimits(NamedTuple):
    """How many places, runs and escapes can be looked at."""

    places: int
    marks: int
    events: int
    """What an engine may report: much of it is nothing, and all of it takes time."""

    @classmethod
    def for_size(cls, size: int) -> ScanLimits:
        return cls(max_places(size), max_marks(size), 16384 + size // 48)


@dataclass(slots=True)
class Nominations:
    places: list[tuple[int, int]] = field(default_factory=list)
    """(position, index of the rule), sorted."""
    marks: dict[str, list[int]] = field(default_factory=dict)
    """Name of a decoder: positions inside what it may decode, sorted."""
    floods: list[Span] = field(default_factory=list)
    """Where there is more than can be looked at: nothing of it may stay."""

    events: int = 0
    """What the engine reported, much of which is nothing."""
    in_row: bool = False
    """There are words in a row, as many as a seed phrase has."""

    def add(self, part: Nominations, shift: int, start: int, end: int) -> int:
        """What a part of the text holds between two positions; how many costly ones that are."""
        self.in_row |= part.in_row
        inside = [(at + shift, rule) for at, rule in part.places if start <= at + shift < end]
        self.places += inside
        costly = len(inside)
        for name, marks in part.marks.items():
            here = [at + shift for at in marks if start <= at + shift < end]
            self.marks.setdefault(name, []).extend(here)
            costly += 0 if name in CHEAP else len(here)
        return costly

    def drop_flooded(self) -> None:
        """What lies in a flood is not looked at."""
        if not self.floods:
            return
        starts = [start for start, _ in self.floods]

        def is_outside_floods(at: int) -> bool:
            flood = bisect_right(starts, at) - 1
            return flood < 0 or at >= self.floods[flood][1]

        self.places = [place for place in self.places if is_outside_floods(place[0])]
        self.marks = {
            name: [at for at in inside if is_outside_floods(at)]
            for name, inside in self.marks.items()
        }


class Engine(Protocol):
    def __init__(self, rules: tuple[Rule, ...]) -> None: ...

    def nominate(self, data: bytes) -> Nominations: ...


def max_places(size: int) -> int:
    """How many places, runs or findings of a text of this size can be looked at in time?"""
    return max(2048 + size // 256, 8192 + size // 2048)


def max_marks(size: int) -> int:
    """How many escapes? They are cheap, and honest texts may consist of them."""
    return 8192 + size // 96


def max_seed_runs(size: int) -> int:
    """How many dozens of words that seed phrases are made of? Each is read and its checksum made."""
    return 512 + size // 2048


def max_word_rows(size: int) -> int:
    """How many words with eleven before them are looked at one by one? With more, the whole text is read at less cost."""
    return 4096 + size // 256


def _anchors_of(rules: tuple[Rule, ...]) -> list[tuple[int, Anchor]]:
    return [(i, anchor) for i, rule in enumerate(rules) for anchor in rule.anchors]


def disguised_prefixes(rules: tuple[Rule, ...]) -> tuple[Begun, ...]:
    """How the prefixes that the rules know begin in a disguise."""
    prefixes = {
        a.literal
        for rule in rules
        if rule.split
        for a in rule.anchors
        if a.literal and not a.caseless
    }
    return prefix_marks(prefixes)


class _AnchorGroup:
    """Anchors of one expression: from the end of its match back to the literals in it."""

    def __init__(self, group: list[tuple[int, Anchor]]) -> None:
        self.width, self.whole = group[0][1].width, _whole_shape_pattern(group[0][1])
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

    def places_ending_at(self, low: bytes, end: int) -> Iterator[tuple[int, int]]:
        for match in self._pattern.finditer(low, max(0, end - self._reach), end):
            for rule in self._rules[match.group(1)]:
                yield match.start(), rule


def _whole_shape_pattern(anchor: Anchor) -> re.Pattern[bytes] | None:
    """The shape whose end is looked for."""
    return re.compile((LEFT + anchor.follow).encode()) if anchor.core else None


class _DisguiseStart:
    """The beginning of a disguise: told by its literal, and read where it stands."""

    def __init__(self, begun: Begun) -> None:
        self.name, self.literal = begun.name, begun.literal.encode()
        self.expression = begun.edge + re.escape(begun.literal)
        self._edge = begun.edge
        self._after, self._before = _compile_bytes(begun.after), _compile_optional(begun.before)
        self._width = begun.width

    def mark_ending_at(self, data: bytes, end: int) -> int | None:
        """A place inside the disguise, if there is one whose literal ends here."""
        start = end - len(self.literal)
        if self._edge and start > 0 and data[start - 1 : start].isalnum():
            return None
        after = self._after.match(data, end) or (not self._width and end == len(data))
        if not after or (
            self._before is not None and not _matches_backwards(self._before, data, start)
        ):
            return None
        return end + self._width - 1 if self._width else start


@lru_cache(maxsize=256)
def _compile_bytes(expression: str) -> re.Pattern[bytes]:
    return re.compile(expression.encode())


class PythonEngine:
    """`bytes.find` for literals, `re` for shapes: works everywhere."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._literals: list[tuple[int, Anchor, re.Pattern[bytes]]] = []
        self._shapes: list[tuple[int, re.Pattern[bytes]]] = []
        for rule, anchor in _anchors_of(rules):
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
            for name, pattern, follow in _ALL_MARKS
        ]
        self._begun = [_DisguiseStart(begun) for begun in disguised_prefixes(rules)]
        self._in_row = re.compile(_WORDS_IN_ROW.encode())
        self._rows = re.compile(_WORDS_IN_ROW.replace("{11}", "{11,}").encode())

    def nominate(self, data: bytes) -> Nominations:
        return _nominate_within_limits(self._nominate, self._words_in_row, data)

    def _words_in_row(self, data: bytes, most: int) -> list[int] | None:
        marks = (
            word.start() + 2
            for row in self._rows.finditer(data)
            for word in islice(_WORD.finditer(data, *row.span()), _SEED_LENGTH - 1, None)
        )
        some = list(islice(marks, most + 1))
        return some if len(some) <= most else None

    def _nominate(self, data: bytes, most: ScanLimits) -> Nominations:
        places = set(self._places(data))
        marks: dict[str, set[int]] = {}
        for name, pattern in self._marks:
            inside = {max(match.start(), match.end() - 1) for match in pattern.finditer(data)}
            marks[name] = marks.get(name, set()) | inside
        for begun in self._begun:
            at = data.find(begun.literal)
            while at >= 0:
                if (mark := begun.mark_ending_at(data, at + len(begun.literal))) is not None:
                    marks.setdefault(begun.name, set()).add(mark)
                at = data.find(begun.literal, at + 1)
        found = _nominations_within_limits(places, marks, most)
        found.in_row = self._in_row.search(data) is not None
        return found

    def _places(self, data: bytes) -> Iterator[tuple[int, int]]:
        low = data.lower()
        for rule, anchor, follow in self._literals:
            hay, needle = (
                (data, anchor.literal) if not anchor.caseless else (low, anchor.literal.lower())
            )
            at = hay.find(needle.encode())
            while at >= 0:
                if follow.match(data, at + len(needle)) and (
                    not anchor.before
                    or _matches_backwards(re.compile(anchor.before.encode()), data, at)
                ):
                    yield at, rule
                at = hay.find(needle.encode(), at + 1)
        for match in self._any_shape.finditer(data):
            at = match.start()
            yield from ((at, rule) for rule, shape in self._shapes if shape.match(data, at))


def _nominations_within_limits(
    places: set[tuple[int, int]], marks: dict[str, set[int]], most: ScanLimits, events: int = 0
) -> Nominations:
    runs = sum(len(inside) for name, inside in marks.items() if name not in CHEAP)
    cheap = max((len(marks[name]) for name in CHEAP & marks.keys()), default=0)
    if len(places) + runs > most.places or cheap > most.marks:
        raise TooMany([at for at, _ in places])
    found = Nominations(sorted(places), {name: sorted(at) for name, at in marks.items()})
    found.events = max(events, len(places) + runs + cheap)
    return found


# --- floods --------------------------------------------------------------------------------------

_Nominate = Callable[[bytes, ScanLimits], Nominations]
_WordsInRow = Callable[[bytes, int], list[int] | None]
"""The third letters of words that have eleven others before them, sorted, if there are not too many."""


def _nominate_within_limits(
    nominate: _Nominate, words_in_row: _WordsInRow, data: bytes
) -> Nominations:
    """All of a text where that can be looked at in time, else what its windows hold."""
    try:
        found = nominate(data, ScanLimits.for_size(len(data)))
    except TooMany:
        found = _nominate_in_windows(nominate, data)
    marks_in_row = words_in_row(data, max_word_rows(len(data))) if found.in_row else []
    runs = (
        find_seed_word_runs(data)
        if marks_in_row is None
        else find_seed_runs_near(data, marks_in_row)
    )
    if sum(len(run) for run in runs) > _SEED_LENGTH * max_seed_runs(len(data)):
        spans = ((run[0] - 2, run[-1] + 1) for run in runs)
        flooded = _merge_spans(
            sorted([*found.floods, *(_extend_to_word_end(data, *span) for span in spans)])
        )
        found.floods = _merge_spans(
            flooded, lambda low, high: high - low < _MARGIN and _GAP not in data[low:high]
        )
        found.drop_flooded()
    elif marks := sorted({at for run in runs for at in (*run[::_SEED_LENGTH], run[-1])}):
        found.marks[_IN_ROW] = marks
        found.drop_flooded()
    return found


def _nominate_in_windows(nominate: _Nominate, data: bytes) -> Nominations:
    """What the windows hold, one after the other, for as long as there is time."""
    places, events = max_places(len(data)) * 3 // 4, max_marks(len(data)) // 2
    found, floods, flooded = Nominations(), [], set[bytes]()
    for start, end in pairwise(_window_borders(data)):
        low, high = _with_margins(data, start, end)
        window = data[low:high]
        most = ScanLimits(
            max(_CALM, min(_DENSE, places)), _EVENTS, max(_CALM_EVENTS, min(_EVENTS, events))
        )
        try:
            part = None if window in flooded else nominate(window, most)
        except TooMany:
            events -= most.events
            flooded.add(window)  # the same again costs nothing
            part = None
        if part is None:
            floods.append((start, end))
        else:
            places, events = places - found.add(part, low, start, end), events - part.events
    found.floods = _merge_spans([_extend_to_lines(data, span) for span in _merge_spans(floods)])
    found.drop_flooded()
    return found


def _window_borders(data: bytes) -> list[int]:
    """Where windows begin and end: behind a piece, else behind a line, else behind a word, where there is one."""
    borders = [0]
    while borders[-1] + _WINDOW < len(data):
        low, high = borders[-1] + _WINDOW // 2, borders[-1] + _WINDOW
        behind = (
            data.rfind(_GAP, borders[-1], high) + 1
            or data.rfind(b"\n", low, high) + 1
            or data.rfind(b" ", low, high) + 1
        )
        borders.append(behind or high)
    if last := data.rfind(_GAP, borders[-1]) + 1:
        borders.append(last)
    return [*borders, len(data)]


def _with_margins(data: bytes, start: int, end: int) -> Span:
    """What is read of a window: some of what stands beside it in its piece."""
    low, high = max(0, start - _MARGIN), end + _MARGIN
    behind = data.find(_GAP, max(start, end - 1), high)
    return data.rfind(_GAP, low, start) + 1 or low, behind + 1 or high


def _extend_to_lines(data: bytes, span: Span) -> Span:
    """With the rest of the line and one line more on either side, or with some thousand bytes and the rest of a word.

    A value may stand on the line beside its name, the windows beside a flood may hold some of it, and half of a
    value may stay nowhere.
    """
    start, end = span
    floor = data.rfind(_GAP, 0, start) + 1
    roof = data.find(_GAP, max(start, end - 1))
    roof = len(data) if roof < 0 else roof
    low, high = max(floor, start - _CLOSE), min(roof, end + _CLOSE)
    before = data.rfind(b"\n", low, max(low, data.rfind(b"\n", low, start)))
    behind = data.find(b"\n", data.find(b"\n", end, high) + 1 or high, high)
    if before < 0:
        before = max(data.rfind(b" ", floor, low), data.rfind(b"\n", floor, low), floor - 1)
    if behind < 0:
        ends = (data.find(b" ", high, roof), data.find(b"\n", high, roof))
        behind = min((at for at in ends if at >= 0), default=roof)
    return min(start, before + 1), max(end, behind)


def _extend_to_word_end(data: bytes, start: int, end: int) -> Span:
    letters = _WORD_END.match(data, end)
    return start, letters.end() if letters else end


def _merge_spans(
    spans: Sequence[Span], joins: Callable[[int, int], bool] = lambda low, high: high <= low
) -> list[Span]:
    """Sorted spans, those as one between which nothing is worth keeping."""
    merged: list[Span] = []
    for start, end in spans:
        if merged and joins(merged[-1][1], start):
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def find_seed_word_runs(data: bytes) -> list[list[int]]:
    """The third letters of the words in each run that may hold a seed phrase.

    Of any twelve words in a row one is looked up. Ordinary prose has few in the list, and no twelve in a row.

    >>> find_seed_word_runs(b"My legal winner thank year wave sausage worth useful legal winner thank yellow")[0][:3]
    [5, 11, 18]
    >>> find_seed_word_runs(b"the worker started job and ended with success after retry because of it all " * 9)
    []
    """
    low = data.lower()
    words = _LETTERS.findall(low)
    runs = list(_listed_word_runs(words))
    if not runs:
        return []
    starts = [match.start() + 2 for match in _LETTERS.finditer(low)]
    return [starts[first:last] for first, last in runs]


def find_seed_runs_near(data: bytes, marks: Sequence[int]) -> list[list[int]]:
    """The runs around the marks of words in a row. Nothing else of the text is read, unless most of it would be.

    The twelfth word of a phrase has a mark and so has each one behind it, and the words before them are in the list.
    """
    low, most = data.lower() if marks else data, max_seed_runs(len(data))
    likely = list(islice(_likely_seed_marks(low, marks), most + 1))
    if len(likely) > most:
        return find_seed_word_runs(data)
    near = _merge_spans([(max(0, at - _BESIDE), at + _BESIDE) for at in likely])
    return [
        [start + at for at in run]
        for start, end in near
        for run in find_seed_word_runs(low[start:end])
    ]


def _likely_seed_marks(low: bytes, marks: Sequence[int]) -> Iterator[int]:
    """Sorted marks whose own word is in the list, and those before it; without those close behind another."""
    last = -_WITHIN
    for at in marks:
        if at - last < _WITHIN or (
            low[at - 2 : at + 2] not in _SEED_STARTS
            and low[at - 2 : at + 1] not in _SHORT_SEED_WORDS
        ):
            continue
        word = _LETTERS.match(low, at - 2)
        if word is None or word[0] not in _SEED_WORDS:
            continue
        before = _LETTERS.findall(low, max(0, at - 2 - _BEFORE_REACH), at - 2)
        if _SEED_WORDS.issuperset(before[-_BEFORE:]):
            last = at
            yield at


def _listed_word_runs(words: Sequence[bytes]) -> Iterator[Span]:
    """Where at least twelve words in a row are in the list."""
    listed, done = _SEED_WORDS, 0
    for at in range(_SEED_LENGTH - 1, len(words), _SEED_LENGTH):
        if at < done or words[at] not in listed:
            continue
        start = end = at
        while start > done and words[start - 1] in listed:
            start -= 1
        while end < len(words) and words[end] in listed:
            end += 1
        done = end
        if end - start >= _SEED_LENGTH:
            yield start, end


class _SharedWord:
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
            (_compile_caseless(follow), _compile_optional(before), rules)
            for (follow, before), rules in follows.items()
        ]

    def add_places(self, data: bytes, ends: list[int], places: set[tuple[int, int]]) -> None:
        back = 1 if self._alone else 0
        for follow, before, rules in self._follows:
            match = follow.match
            for end in ends:
                if match(data, end - back) is None:
                    continue
                start = end - back - self._size
                if before is None or _matches_backwards(before, data, start):
                    places.update([(start, rule) for rule in rules])


@lru_cache(maxsize=256)
def _compile_caseless(expression: str) -> re.Pattern[bytes]:
    return re.compile(expression.encode(), re.IGNORECASE)


def _compile_optional(pattern: str) -> re.Pattern[bytes] | None:
    return _compile_bytes(pattern) if pattern else None


def _matches_backwards(before: re.Pattern[bytes], data: bytes, at: int) -> bool:
    return before.match(data[max(0, at - 64) : at][::-1]) is not None


class _Database:
    """Compiled expressions, numbered in their order; each thread has its own scratch space."""

    def __init__(self, expressions: list[str], flags: list[int]) -> None:
        self._database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        self._database.compile(
            expressions=[e.encode() for e in expressions],
            ids=list(range(len(expressions))),
            flags=[flag | hyperscan.HS_FLAG_DOTALL for flag in flags],
        )
        self._local = threading.local()

    def scan(self, data: bytes, note: Callable[[int, int, int, int, object], bool]) -> bool:
        """False where `note` ends it."""
        if not hasattr(self._local, "scratch"):
            self._local.scratch = hyperscan.Scratch(self._database)
        try:
            self._database.scan(data, match_event_handler=note, scratch=self._local.scratch)
        except hyperscan.ScanTerminated:
            return False
        return True


class _DigitShapes:
    """Shapes that hold a run of digits: looked for around such runs, or everywhere where there are many."""

    def __init__(self, anchors: list[tuple[int, Anchor]]) -> None:
        self._anchors = anchors
        self._width = max((anchor.width for _, anchor in anchors), default=0)
        self._runs = _Database([RUN], [hyperscan.HS_FLAG_SOM_LEFTMOST])
        self._shapes = (
            _Database([_group_expression([a]) for _, a in anchors], [0] * len(anchors))
            if anchors
            else None
        )

    def find_places(self, data: bytes, most: int) -> set[tuple[int, int]]:
        """`data` ends with padding, so that a run at its end ends, too. Raises TooMany for more than `most`."""
        runs: list[Span] = []
        limit = max_digit_runs(len(data))

        def note(_number: int, start: int, end: int, _flags: int, _context: object) -> bool:
            runs.append((start, end))
            return len(runs) > limit

        if self._shapes is None:
            return set()
        if not self._runs.scan(data, note):
            return {
                (at, self._anchors[n][0]) for at, n in self._shapes_in(self._shapes, data, most)
            }
        if not runs:
            return set()
        near = DigitText(data, sorted(runs), self._width)
        return {
            (near.position(at), self._anchors[n][0])
            for at, n in self._shapes_in(self._shapes, near.data, most)
        }

    def _shapes_in(self, shapes: _Database, data: bytes, most: int) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []

        def note(number: int, _from: int, end: int, _flags: int, _context: object) -> bool:
            found.append((end - self._anchors[number][1].width, number))
            return len(found) > most

        if not shapes.scan(data, note):
            raise TooMany([at for at, _ in found])
        return found


class HyperscanEngine:
    """Anchors and decoders in one pass, at hundreds of megabytes a second; digits and words in a row in one more each."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        anchors = _anchors_of(rules)
        self._digits = _DigitShapes([each for each in anchors if holds_digit_run(each[1])])
        anchors = [each for each in anchors if not holds_digit_run(each[1])]
        groups = _group_by_ending([(rule, anchor) for rule, anchor in anchors if not anchor.late])
        self._words = [_AnchorGroup(group) for group in groups]
        self._late = [_SharedWord(group) for group in _group_by_literal(anchors)]
        expressions = [_group_expression([anchor for _, anchor in group]) for group in groups]
        flags = [hyperscan.HS_FLAG_CASELESS if g[0][1].caseless else 0 for g in groups]
        expressions += [late.expression for late in self._late]
        flags += [hyperscan.HS_FLAG_CASELESS] * len(self._late)
        self._marks = _ALL_MARKS
        self._begun = [_DisguiseStart(begun) for begun in disguised_prefixes(rules)]
        expressions += [pattern + end for _, pattern, end in self._marks]
        expressions += [begun.expression for begun in self._begun]
        flags += [0] * (len(self._marks) + len(self._begun))
        self._in_row = len(expressions)
        expressions.append(_WORDS_IN_ROW)
        flags.append(hyperscan.HS_FLAG_SINGLEMATCH)
        self._anchors = _Database(expressions, flags)
        self._rows = _Database([_WORDS_IN_ROW], [0])

    def nominate(self, data: bytes) -> Nominations:
        return _nominate_within_limits(self._nominate, self._words_in_row, data)

    def _words_in_row(self, data: bytes, most: int) -> list[int] | None:
        marks: list[int] = []

        def note(_number: int, _from: int, end: int, _flags: int, _context: object) -> bool:
            marks.append(end - 1)
            return len(marks) > most

        return sorted(marks) if self._rows.scan(data, note) else None

    def _nominate(self, data: bytes, most: ScanLimits) -> Nominations:
        ends: dict[int, list[int]] = {}
        events, tick = most.events, count(1).__next__

        def note(number: int, _from: int, end: int, _flags: int, _context: object) -> bool:
            if number in ends:
                ends[number].append(end)
            else:
                ends[number] = [end]
            return tick() > events

        padded = data + _PADDING
        if not self._anchors.scan(padded, note):
            raise TooMany([end for some in ends.values() for end in some])
        in_row = ends.pop(self._in_row, None) is not None
        shapes = self._digits.find_places(padded, events)
        found = self._places(data, ends, shapes, most) if ends or shapes else Nominations()
        found.in_row = in_row
        return found

    def _places(
        self,
        data: bytes,
        ends: dict[int, list[int]],
        places: set[tuple[int, int]],
        most: ScanLimits,
    ) -> Nominations:
        low, shapes = b"", len(places)
        marks: dict[str, set[int]] = {}
        some, late = len(self._words), len(self._words) + len(self._late)
        for number, here in ends.items():
            if number < some:
                words = self._words[number]
                if words.width:
                    starts = [end - words.width for end in here]
                    if words.whole:
                        starts = [at for at in starts if at >= 0 and words.whole.match(data, at)]
                    places.update([(at, words.rule) for at in starts])
                    continue
                low = low or data.lower()
                for end in here:
                    places.update(words.places_ending_at(low, end))
            elif number < late:
                self._late[number - some].add_places(data, here, places)
            elif number < late + len(self._marks):
                name, _, follow = self._marks[number - late]
                back = 5 if follow else 1
                marks.setdefault(name, set()).update([end - back for end in here])
            else:
                begun = self._begun[number - late - len(self._marks)]
                found = [
                    mark for end in here if (mark := begun.mark_ending_at(data, end)) is not None
                ]
                if found:
                    marks.setdefault(begun.name, set()).update(found)
        return _nominations_within_limits(
            places, marks, most, shapes + sum(map(len, ends.values()))
        )


def _group_by_literal(anchors: list[tuple[int, Anchor]]) -> list[list[tuple[int, Anchor]]]:
    groups: dict[str, list[tuple[int, Anchor]]] = {}
    for rule, anchor in anchors:
        if anchor.late:
            groups.setdefault(anchor.literal.lower(), []).append((rule, anchor))
    return list(groups.values())


def _group_by_ending(anchors: list[tuple[int, Anchor]]) -> list[list[tuple[int, Anchor]]]:
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


def _group_expression(anchors: list[Anchor]) -> str:
    first = anchors[0]
    if first.core:
        return first.core
    words = sorted({re.escape(anchor.literal) for anchor in anchors})
    edge = (
        "" if first.literal or not first.edged else _EDGE
    )  # a shape without an edge would match inside numbers
    return edge + f"(?:{'|'.join(words)}){first.follow}"


def choose_engine(name: str) -> type[Engine]:
    """The engine called `name`: hyperscan, python, or auto for the faster one at hand."""
    if name not in ("auto", "hyperscan", "python"):
        raise ValueError(f"engine {name!r}: choose_engine auto, hyperscan or python")
    if name == "python" or (name == "auto" and hyperscan is None):
        return PythonEngine
    if hyperscan is None:
        raise ValueError("engine 'hyperscan': the hyperscan package is not installed")
    return HyperscanEngine
