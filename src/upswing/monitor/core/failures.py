"""What do the failures have in common that successes have not?

Episodes of the candidate that failed are compared with those that succeeded, feature by feature:

| feature                                          | is compared by                                            |
|--------------------------------------------------|-----------------------------------------------------------|
| domain, tool, user, agent, finish reason, hour   | its values, the most frequent ones                        |
| prompt length, first-token latency, time         | cuts at quantiles of all episodes, failed or not           |
| what went wrong                                  | the candidate's failures beside the baseline's failures   |

Which values and cuts are looked at follows from how frequent they are, never from how they failed, so each look is an
exact test, and all are corrected together (`exact_test`). Of a feature, its best value or cut of each direction is told.
A finding that holds for the baseline as well is marked *shared*; one that another explains, *goes with* it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from math import exp, floor, log10

from msgspec.structs import replace

from upswing.contracts.analysis import FailureFinding, FailureShare, FailureSymptom
from upswing.monitor.core.exact_test import CountTable, adjusted, looks_that_count
from upswing.records import EpisodeFacts

CHANCE = 0.05
"""Of any finding where there is nothing to find."""
LEAST = 5
"""Failures below which nothing is compared. Of successes one is enough to ask: the test itself weighs how few they are."""
WENT_WRONG = "what went wrong"
_VALUES = 20
"""Of a feature that are looked at."""
_SEEN = 3
"""Episodes of a value below which it is not looked at."""
_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
_FINDINGS, _EXAMPLES = 8, 5
_UNITS = {"prompt length": "bytes", "first-token latency": "ms"}
_DOWNWARDS = {"prompt length", "time"}
"""Numbers of which small ones are looked at, too."""


class _Episodes:
    """Episodes of one side as sets of bits: whatever is asked of all of them is one operation."""

    def __init__(self, facts: Sequence[EpisodeFacts]) -> None:
        self.facts = facts
        self.everybody = (1 << len(facts)) - 1
        self.failed = _bits(place for place, each in enumerate(facts) if each.failed)
        self._values: dict[tuple[str, str], list[int]] = {}
        for place, each in enumerate(facts):
            for feature, values in each.labels.items():
                for value in set(values):
                    self._values.setdefault((feature, value), []).append(place)

    def with_value(self, feature: str, value: str) -> int:
        return _bits(self._values.get((feature, value), ()))

    def with_number(self, feature: str, cut: float, *, below: bool) -> int:
        return _bits(
            place
            for place, each in enumerate(self.facts)
            if feature in each.numbers and (each.numbers[feature] < cut) == below
        )

    def with_kind(self, kind: str) -> int:
        return _bits(p for p, each in enumerate(self.facts) if each.failed and each.kind == kind)

    def value_counts(self) -> dict[tuple[str, str], int]:
        return {name: len(places) for name, places in self._values.items()}

    def table(self, here: int, among: int | None = None) -> CountTable:
        """The four counts of a condition that holds for `here`."""
        among = self.everybody if among is None else among
        here, there = here & among, ~here & among
        a, c = (here & self.failed).bit_count(), (there & self.failed).bit_count()
        return CountTable(a, here.bit_count() - a, c, there.bit_count() - c)

    def refs(self, which: int, most: int) -> tuple[str, ...]:
        marked = (each.ref for place, each in enumerate(self.facts) if which >> place & 1)
        return tuple(islice(marked, most))


def _bits(places: Iterable[int]) -> int:
    """A number with these bits.

    >>> bin(_bits([0, 2]))
    '0b101'
    """
    marks = bytearray()
    for place in places:
        if (byte := place >> 3) >= len(marks):
            marks.extend(bytes(byte + 1 - len(marks)))
        marks[byte] |= 1 << (place & 7)
    return int.from_bytes(marks, "little")


@dataclass(frozen=True, slots=True)
class _Look:
    """One comparison."""

    feature: str
    value: str
    here: int
    """The candidate's episodes for which it holds."""
    table: CountTable
    baseline: CountTable

    @property
    def name(self) -> str:
        return f"{self.feature} {self.value}"


@dataclass(frozen=True, slots=True)
class FailureComparison:
    """All that was found, and among how many looks."""

    findings: tuple[FailureFinding, ...]
    looks: int


def compare_failures(
    candidate: Sequence[EpisodeFacts], baseline: Sequence[EpisodeFacts]
) -> FailureComparison:
    """The findings, ranked; none where there is too little to compare."""
    failed = sum(each.failed for each in candidate)
    if failed < LEAST or failed == len(candidate):
        return FailureComparison((), 0)
    ours, theirs = _Episodes(candidate), _Episodes(baseline)
    looks = [*_value_looks(ours, theirs), *_cut_looks(ours, theirs), *_kind_looks(ours, theirs)]
    count = looks_that_count([each.table for each in looks], CHANCE)
    best = _best_of_each_feature(looks)
    found = [each for each in best if adjusted(each.table.log_p, count) <= CHANCE]
    found = sorted(found, key=lambda each: each.table.log_p)[:_FINDINGS]
    findings = [_finding(each, found[0], ours, count) for each in found]
    findings.sort(key=lambda each: (each.shared, bool(each.goes_with)))
    return FailureComparison(tuple(findings), count)


def symptoms_of(
    candidate: Sequence[EpisodeFacts], baseline: Sequence[EpisodeFacts]
) -> tuple[FailureSymptom, ...]:
    """What went wrong, the most frequent first."""
    kinds = Counter(each.kind for each in candidate if each.failed and each.kind)
    beside = Counter(each.kind for each in baseline if each.failed and each.kind)
    failed = sum(each.failed for each in candidate)
    return tuple(
        FailureSymptom(kind, count, count / failed, beside[kind])
        for kind, count in kinds.most_common(_FINDINGS)
    )


# ── looks ────────────────────────────────────────────────────────────────────────────────────────


def _value_looks(ours: _Episodes, theirs: _Episodes) -> Iterator[_Look]:
    counts: dict[str, Counter[str]] = {}
    for side in (ours, theirs):
        for (feature, value), count in side.value_counts().items():
            counts.setdefault(feature, Counter())[value] += count
    for feature in sorted(counts):
        for value, _ in counts[feature].most_common(_VALUES):
            sides = ours.with_value(feature, value), theirs.with_value(feature, value)
            yield from _look(feature, value, sides, ours, theirs)


def _cut_looks(ours: _Episodes, theirs: _Episodes) -> Iterator[_Look]:
    everybody = [*ours.facts, *theirs.facts]
    for feature in sorted({name for each in everybody for name in each.numbers}):
        values = sorted(each.numbers[feature] for each in everybody if feature in each.numbers)
        cuts = (_rounded(values[int(q * (len(values) - 1))], feature) for q in _QUANTILES)
        for cut in dict.fromkeys(cuts):
            for below in (False, True) if feature in _DOWNWARDS else (False,):
                text = f"{'<' if below else '≥'} {_text(feature, cut)}"
                sides = (
                    ours.with_number(feature, cut, below=below),
                    theirs.with_number(feature, cut, below=below),
                )
                yield from _look(feature, text, sides, ours, theirs)


def _look(
    feature: str, value: str, sides: tuple[int, int], ours: _Episodes, theirs: _Episodes
) -> Iterator[_Look]:
    here, beside = sides
    table = ours.table(here)
    if table.a + table.b >= _SEEN and table.c + table.d >= _SEEN:
        yield _Look(feature, value, here, table, theirs.table(beside))


def _kind_looks(ours: _Episodes, theirs: _Episodes) -> Iterator[_Look]:
    """Whether a kind of failure is more frequent among this model's failures than among the baseline's."""
    kinds = Counter(each.kind for each in (*ours.facts, *theirs.facts) if each.failed and each.kind)
    failed, beside = ours.failed.bit_count(), theirs.failed.bit_count()
    for kind, _ in kinds.most_common(_VALUES):
        here, there = ours.with_kind(kind), theirs.with_kind(kind)
        a, b = here.bit_count(), there.bit_count()
        table = CountTable(a, b, failed - a, beside - b)
        if table.a + table.b >= _SEEN and table.c + table.d >= _SEEN:
            yield _Look(WENT_WRONG, kind, here, table, CountTable(b, 0, beside - b, 0))


def _rounded(value: float, feature: str) -> float:
    """Down to two digits, as people speak of sizes; a time stays as it is.

    >>> _rounded(12_945, "prompt length"), _rounded(0.0, "prompt length")
    (12000.0, 0.0)
    """
    if feature == "time" or value <= 0:
        return value
    step = 10.0 ** (floor(log10(value)) - 1)
    return floor(value / step + 1e-9) * step


def _text(feature: str, cut: float) -> str:
    if feature == "time":
        return f"{datetime.fromtimestamp(cut, UTC):%Y-%m-%d %H:%M} UTC"
    return f"{cut:,.0f} {_UNITS.get(feature, '')}".rstrip()


def _best_of_each_feature(looks: Sequence[_Look]) -> list[_Look]:
    """Of the cuts of a number the most telling, and of two that tell the same the highest; of values each."""
    best: dict[str, _Look] = {}
    for look in looks:
        name = look.feature if look.value[:1] in {"≥", "<"} else look.name
        known = best.get(name)
        higher = known is not None and look.table == known.table and look.value[:1] == "≥"
        if known is None or higher or look.table.log_p < known.table.log_p:
            best[name] = look
    return list(best.values())


# ── findings ─────────────────────────────────────────────────────────────────────────────────────


def _finding(look: _Look, first: _Look, ours: _Episodes, looks: int) -> FailureFinding:
    table, beside = look.table, look.baseline
    there = FailureShare(table.a, table.a + table.b)
    elsewhere = FailureShare(table.c, table.c + table.d)
    if look.feature == WENT_WRONG:  # both columns of its table are failures
        there, elsewhere = (FailureShare(count, table.a + table.c) for count in (table.a, table.c))
    found = FailureFinding(
        look.feature,
        look.value,
        "",
        round(table.lift, 2),
        exp(table.log_p),
        adjusted(table.log_p, looks),
        there,
        elsewhere,
        FailureShare(beside.a, beside.a + beside.b),
        FailureShare(beside.c, beside.c + beside.d),
        shared=look.feature != WENT_WRONG and _is_shared(table, beside),
        goes_with=first.name if _is_explained(look, first, ours) else "",
        examples=ours.refs(look.here & ours.failed, _EXAMPLES),
    )
    return replace(found, sentence=_sentence(found))


def _sentence(found: FailureFinding) -> str:
    there, beside = found.there, found.baseline_there
    if found.feature == WENT_WRONG:
        all_beside = beside.failed + found.baseline_elsewhere.failed
        return (
            f"{found.value}: {there.failed} of the candidate's {there.seen} failures, "
            f"{beside.failed} of the baseline's {all_beside}."
        )
    return (
        f"{found.feature} {found.value}: {there.failed} of {there.seen} failed ({there.share:.0%}), elsewhere "
        f"{found.elsewhere.failed} of {found.elsewhere.seen} ({found.elsewhere.share:.0%}); of the baseline's there "
        f"{beside.failed} of {beside.seen}."
    )


def _is_shared(table: CountTable, beside: CountTable) -> bool:
    """Whether the baseline fails there like the candidate, and more than elsewhere."""
    against = CountTable(table.a, table.b, beside.a, beside.b)
    return beside.a >= _SEEN and exp(beside.log_p) <= CHANCE < exp(against.log_p)


def _is_explained(look: _Look, first: _Look, ours: _Episodes) -> bool:
    """Whether nothing is left of it inside and outside of the first finding."""
    if look is first or WENT_WRONG in {look.feature, first.feature}:
        return False
    parts = (ours.table(look.here, among) for among in (first.here, ~first.here & ours.everybody))
    return 2 * min(exp(table.log_p) for table in parts) > CHANCE
