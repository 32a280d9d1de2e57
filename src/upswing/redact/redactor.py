"""What must never be stored? Here the answer is carried out, on a text or on a tree."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar

from .errors import Overflow, RedactionFailed
from .fold import HIDDEN, fold
from .layer import WHOLE, Chunk
from .names import Names
from .nominate import Engine, choose_engine
from .rule import Rule
from .rules import default_rules
from .scan import Hit, Place, Recogniser, Scanner
from .tree import Leaves, Path, collect_leaves, context_adder, replace_texts

T = TypeVar("T")
_ROUNDS = 8
"""A replacement can free what stood beside it, so the result is read again until it is clean."""

_PATIENCE = 4
"""Rounds after which a tree that still holds too much is dropped whole."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found and where, never what it was: findings are logged."""

    rule: str
    kind: str
    path: Path
    start: int
    end: int
    form: str
    placeholder: str


@dataclass(frozen=True, slots=True)
class Redacted(Generic[T]):
    value: T
    findings: tuple[Finding, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.findings)


@lru_cache(maxsize=8)
def _compile_engine(kind: type[Engine], rules: tuple[Rule, ...]) -> Engine:
    return kind(rules)


class Redactor:
    """Finds and replaces. Safe to share between threads; the same rules are compiled once.

    >>> Redactor(engine="python").text("mail bob@x.org or eve@x.org, not bob@x.org").value
    'mail <email-1> or <email-2>, not <email-1>'
    """

    def __init__(
        self,
        rules: tuple[Rule, ...] | None = None,
        engine: str = "auto",
        recognisers: Sequence[Recogniser] = (),
    ) -> None:
        self.rules = default_rules() if rules is None else tuple(rules)
        self._engine = choose_engine(engine)
        self._recognisers = tuple(recognisers)
        self._telling = lru_cache(maxsize=4096)(_build_key_test(self.rules))

    @cached_property
    def _scanner(self) -> Scanner:
        """Compiled when first used: about a second, once per process and set of rules."""
        return Scanner(self.rules, _compile_engine(self._engine, self.rules), self._recognisers)

    def text(self, text: str, names: Names | None = None) -> Redacted[str]:
        """The text without its secrets. Raises RedactionFailed; then nothing may be stored."""
        try:
            leaves = Leaves([text], [()], [""])
            texts, findings = self._redact_leaves(leaves, names or Names())
        except Exception as broken:  # noqa: BLE001 - whatever broke, nothing may be stored
            raise _redaction_failure(broken) from None
        return Redacted(texts[0], findings) if findings else Redacted(text)

    def tree(self, tree: Any, names: Names | None = None) -> Redacted[Any]:
        """The same for JSON values: keys give context, and values cut by a turn's end are found."""
        names = names or Names()
        try:
            leaves = collect_leaves(tree)
            texts, findings = self._redact_leaves(leaves, names)
            if not findings and not leaves.numbers:
                return Redacted(tree)
            names.reserve_placeholders_in(leaves.texts)
            value = replace_texts(
                tree, iter(texts), lambda number, kind: names.placeholder_for(kind, str(number))
            )
            numbers = tuple(
                _number_finding(tree, path, kind, names) for path, kind in leaves.numbers
            )
        except Exception as broken:  # noqa: BLE001 - whatever broke, nothing may be stored
            raise _redaction_failure(broken) from None
        return Redacted(value, findings + numbers)

    def _redact_leaves(self, leaves: Leaves, names: Names) -> tuple[list[str], tuple[Finding, ...]]:
        texts = list(leaves.texts)
        findings: list[Finding] = []
        edits = _Edits(leaves)
        for round_ in range(_ROUNDS):
            try:
                extra = (
                    context_adder(texts, leaves, self._telling, self._scanner.suspicious)
                    if leaves.values
                    else None
                )
                hits = self._scanner.scan(texts, extra, leaves.key_of) if texts else []
            except Overflow as overflow:
                dropped = overflow.leaves if round_ < _PATIENCE else leaves.values or [0]
                hits = [_overflow_hit(texts, leaf) for leaf in dropped if texts[leaf]]
            if not hits:
                return texts, tuple(findings)
            if round_ == 0:
                names.reserve_placeholders_in(texts)
            if round_ == _ROUNDS - 2:
                hits = [_overflow_hit(texts, p.leaf) for hit in hits for p in hit.places]
            findings += edits.apply(texts, hits, names)
        raise RedactionFailed("the text does not come to rest")


def _redaction_failure(broken: Exception) -> RedactionFailed:
    if isinstance(broken, RedactionFailed):
        return broken
    return RedactionFailed(f"the redactor broke down with {type(broken).__name__}")


def _build_key_test(rules: tuple[Rule, ...]) -> Callable[[str], bool]:
    """Does this key say what its value is? The words come from the rules themselves."""
    words = {a.literal for rule in rules for a in rule.anchors if a.caseless}
    pattern = re.compile("|".join(map(re.escape, sorted(words))) or "(?!)", re.IGNORECASE)
    return lambda key: len(key) < 128 and pattern.search(fold(key).replace(HIDDEN, "")) is not None


def _overflow_hit(texts: list[str], leaf: int) -> Hit:
    whole = Place(leaf, 0, len(texts[leaf]))
    return Hit("overflow", "overflow", 100, texts[leaf], "plain", (whole,))


def _number_finding(tree: Any, path: Path, kind: str, names: Names) -> Finding:
    for step in path:
        tree = tree[step]
    return Finding(
        kind, kind, path, 0, len(str(tree)), "plain", names.placeholder_for(kind, str(tree))
    )


class _Edits:
    """What has been replaced in each leaf so far, so that findings speak of the original."""

    def __init__(self, leaves: Leaves) -> None:
        self._leaves = leaves
        self._chunks: dict[int, list[Chunk]] = {}

    def apply(self, texts: list[str], hits: list[Hit], names: Names) -> list[Finding]:
        by_leaf: dict[int, list[tuple[int, int, Hit]]] = {}
        for hit in hits:
            for place in hit.places:
                by_leaf.setdefault(place.leaf, []).append((place.start, place.end, hit))
        findings = []
        for leaf in sorted(by_leaf):
            findings += self._apply_to_leaf(leaf, texts, _merge_spans(by_leaf[leaf]), names)
        return findings

    def _apply_to_leaf(
        self, leaf: int, texts: list[str], spans: list[tuple[int, int, Hit]], names: Names
    ) -> list[Finding]:
        text = texts[leaf]
        old = self._chunks.get(leaf) or [Chunk(text, 0, len(text))]
        map_ = _Map(old)
        new: list[Chunk] = []
        findings, at = [], 0
        for start, end, hit in spans:
            placeholder = names.placeholder_for(hit.kind, hit.value)
            new += map_.copy(at, start)
            low, high = map_.original_span(start, end)
            new.append(Chunk(placeholder, low, high, WHOLE))
            path = self._leaves.paths[leaf]
            findings.append(Finding(hit.rule, hit.kind, path, low, high, hit.form, placeholder))
            at = end
        new += map_.copy(at, len(text))
        self._chunks[leaf] = new
        texts[leaf] = "".join(chunk.text for chunk in new)
        return findings


class _Map:
    """A leaf as edited so far: from its positions to those of the original."""

    def __init__(self, chunks: list[Chunk]) -> None:
        self._chunks = chunks
        self._at = []
        position = 0
        for chunk in chunks:
            self._at.append(position)
            position += len(chunk.text)

    def copy(self, start: int, end: int) -> list[Chunk]:
        return [chunk for _, chunk in self._chunks_between(start, end)]

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        parts = [chunk for _, chunk in self._chunks_between(start, end)]
        return (parts[0].start, max(p.end for p in parts)) if parts else (0, 0)

    def _chunks_between(self, start: int, end: int) -> list[tuple[int, Chunk]]:
        cut = []
        i = max(0, bisect_right(self._at, start) - 1)
        while i < len(self._chunks) and self._at[i] < end:
            chunk, at = self._chunks[i], self._at[i]
            low, high = max(start - at, 0), min(end - at, len(chunk.text))
            if low < high:
                text = chunk.text[low:high]
                whole = chunk.stride == WHOLE
                first = chunk.start if whole else chunk.start + low
                last = chunk.end if whole else chunk.start + high
                cut.append((at, Chunk(text, first, last, chunk.stride)))
            i += 1
        return cut


def _merge_spans(spans: list[tuple[int, int, Hit]]) -> list[tuple[int, int, Hit]]:
    """Overlapping spans become one; the rule that knows most names it."""
    merged: list[tuple[int, int, Hit]] = []
    for start, end, hit in sorted(spans, key=lambda s: (s[0], s[1], s[2].rule)):
        if merged and start < merged[-1][1]:
            first, last, best = merged[-1]
            better = max(best, hit, key=lambda h: (h.priority, len(h.value), h.rule))
            merged[-1] = (first, max(last, end), better)
        else:
            merged.append((start, end, hit))
    return merged
