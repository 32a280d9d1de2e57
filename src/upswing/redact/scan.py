"""Which spans of these leaves must go? Nominate, confirm, decode, and again on what was decoded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, groupby
from typing import Protocol

from .decode import Dense, decode
from .errors import Overflow
from .fold import HIDDEN, fold
from .layer import Builder, Layer, Span, ground_layer
from .names import PLACEHOLDER
from .nominate import Engine, TooMany, max_places
from .rule import Rule
from .values import random_looking
from .wallet import SEED, listed, phrases, regions

_DEPTH = 4
"""Levels of decoding: base64 of base64 of percent escapes is three."""


class Recogniser(Protocol):
    """Finds what needs more than patterns, such as names: (start, end, kind) in a text."""

    def find(self, text: str) -> Iterable[tuple[int, int, str]]: ...


@dataclass(frozen=True, slots=True)
class Place:
    leaf: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing found; in several places when the border of a turn cuts it."""

    rule: str
    kind: str
    priority: int
    value: str
    form: str
    places: tuple[Place, ...]

    def __repr__(self) -> str:
        return f"Hit({self.rule!r}, {self.form!r}, {self.places!r})"


class _Flood(Exception):
    """Some of a layer holds more than can be looked at: it has to go before the rest is read."""

    def __init__(self, hits: list[Hit]) -> None:
        super().__init__(len(hits))
        self.hits = hits


@dataclass(frozen=True, slots=True)
class _Match:
    rule: Rule
    touched: Span
    value: Span


class _Patterns(dict[int, re.Pattern[str]]):
    """The pattern of each rule, compiled when it is first needed: most texts need few."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        super().__init__()
        self._rules = rules

    def __missing__(self, number: int) -> re.Pattern[str]:
        rule = self._rules[number]
        self[number] = _compile_pattern(rule.pattern, rule.flags)
        return self[number]


@lru_cache(maxsize=1024)
def _compile_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Compiled once, also for several scanners."""
    return re.compile(pattern, flags)


class Scanner:
    def __init__(
        self, rules: tuple[Rule, ...], engine: Engine, recognisers: tuple[Recogniser, ...] = ()
    ) -> None:
        self._rules = rules
        self._engine = engine
        self._recognisers = recognisers
        self._patterns = _Patterns(rules)
        self._backs = [_compile_pattern(rule.back) if rule.back else None for rule in rules]
        self._kinds = {rule.kind for rule in rules} | {"overflow"}
        self._seed = SEED if SEED in rules else None
        self._free = [i for i, rule in enumerate(rules) if not rule.anchors]

    def scan(
        self,
        leaves: list[str],
        extra: Callable[[Layer, Builder], None] | None = None,
        named: Callable[[int], str | None] = lambda _: None,
    ) -> list[Hit]:
        """Everything in `leaves`; `extra` adds pieces to the first decoded layer.

        `named` tells the key that a leaf is the value of; None for an item of a list.
        """
        layer: Layer | None = ground_layer(leaves)
        hits = list(self._run_recognisers(leaves)) if self._recognisers else []
        budget = 4 * len(layer.raw) + 1_000_000 if layer else 0
        for depth in range(_DEPTH + 1):
            if layer is None:
                break
            builder = Builder(layer)
            try:
                hits += self._scan_layer(layer, builder, decoding=depth < _DEPTH)
            except _Flood as flood:
                return flood.hits  # the rest is read without them, in the next round
            except TooMany as many:
                raise Overflow(_leaves_holding(layer, many.places)) from None
            except Dense as dense:
                raise Overflow(_leaves_holding(layer, [dense.at])) from None
            budget -= builder.size
            if extra and depth == 0:
                extra(layer, builder)
            if budget < 0:
                raise Overflow(_leaves_holding(layer, list(range(0, len(layer.raw), 64))))
            layer = builder.done()
        return _without_joined_neighbours(_without_false_seams(hits, leaves), leaves, named)

    def suspicious(self, text: str) -> bool:
        """Is there anything in this text that a closer look could find?"""
        seen = fold(text)
        nominated = self._engine.nominate(seen.encode("latin-1", "replace"))
        found = nominated.places or nominated.marks or nominated.floods
        return bool(found or self._free or HIDDEN in seen)

    def _scan_layer(self, layer: Layer, builder: Builder, *, decoding: bool) -> Iterator[Hit]:
        nominated = self._engine.nominate(layer.text.encode("latin-1", "replace"))
        if nominated.floods:
            raise _Flood(list(_flood_hits(layer, nominated.floods)))
        hits, most = [], max_places(len(layer.text))
        seeds = self._find_seed_phrases(layer, nominated.marks.get("words", []))
        for match in chain(self._confirm_places(layer, nominated.places), seeds):
            if hit := _hit_in_leaves(layer, match):
                hits.append(hit)
                if len(hits) > most:
                    raise TooMany([match.value[0], *(at for at, _ in nominated.places)])
        if decoding:
            decode(layer, nominated.marks, builder)
        return iter(hits)

    def _confirm_places(self, layer: Layer, places: list[tuple[int, int]]) -> Iterator[_Match]:
        """Confirm each place; what lies inside a match of the same rule is passed over."""
        done = [0] * len(self._rules)
        for position, number in places:
            if position < done[number]:
                continue
            piece = layer.piece(position)
            floor, roof = layer.starts[piece], layer.ends[piece]
            if not floor <= position < roof:
                continue
            match = self._patterns[number].match(layer.text, position, roof)
            if match and self._inside_placeholder(layer.text, position, position + 1):
                continue  # the name of one of our placeholders announces nothing
            if match and self._rules[number].spans:
                several, done[number] = self._matches_of_span_rule(number, match, floor, roof)
                yield from several
            elif match and (found := self._validated_match(number, match, floor)):
                done[number] = match.end()
                yield found
        for number in self._free:
            yield from self._search_unanchored(layer, number)

    def _matches_of_span_rule(
        self, number: int, match: re.Match[str], floor: int, roof: int
    ) -> tuple[list[_Match], int]:
        rule, text = self._rules[number], match.string
        spans, end = rule.spans(text, match.start(), floor, roof)  # type: ignore[misc]
        found = [
            _Match(rule, (min(match.start(), a), max(match.end(), b)), (a, b))
            for a, b in spans
            if not self._inside_placeholder(text, a, b)
        ]
        return found, max(end, match.end())

    def _find_seed_phrases(self, layer: Layer, marks: list[int]) -> Iterator[_Match]:
        rule = self._seed
        if rule is None:
            return
        marks = listed(layer.text, marks)
        if len(marks) > max_places(len(layer.text)):
            raise TooMany(marks)
        for piece, inside in groupby(marks, layer.piece):
            floor, roof = layer.starts[piece], layer.ends[piece]
            here = [mark for mark in inside if floor <= mark < roof]
            for low, high in regions(here, floor, roof):
                for span in phrases(layer.text, low, high):
                    yield _Match(rule, span, span)

    def _search_unanchored(self, layer: Layer, number: int) -> Iterator[_Match]:
        literals = self._rules[number].literals
        if literals and not any(literal in layer.text for literal in literals):
            return
        for floor, roof in zip(layer.starts, layer.ends, strict=True):
            for match in self._patterns[number].finditer(layer.text, floor, roof):
                if found := self._validated_match(number, match, floor):
                    yield found

    def _validated_match(self, number: int, match: re.Match[str], floor: int) -> _Match | None:
        rule, back = self._rules[number], self._backs[number]
        start, end = _value_span(match)
        if back:
            start = _walk_back(back, match.string, match.start(), floor, rule.back_limit)
        if self._inside_placeholder(match.string, start, end):
            return None
        if rule.validator and not rule.validator(match.string[start:end]):
            return None
        if rule.judge and not rule.judge(match):
            return None
        return _Match(rule, (min(start, match.start()), match.end()), (start, end))

    def _inside_placeholder(self, text: str, start: int, end: int) -> bool:
        """Only in one of ours: `<glpat-…-1>` looks like a placeholder and is a secret."""
        at = text.rfind("<", max(0, start - 64), start + 1)
        match = PLACEHOLDER.match(text, at) if at >= 0 else None
        return match is not None and match.end() >= end and match.group(1) in self._kinds

    def _run_recognisers(self, leaves: list[str]) -> Iterator[Hit]:
        for recogniser in self._recognisers:
            for i, leaf in enumerate(leaves):
                for start, end, kind in recogniser.find(leaf):
                    place = Place(i, start, end)
                    yield Hit("recogniser", kind, 10, leaf[start:end], "plain", (place,))


def _without_false_seams(hits: list[Hit], leaves: list[str]) -> list[Hit]:
    """Where the first piece is a value by itself, the others must look like more of it."""
    alone = {(hit.rule, hit.places[0].leaf) for hit in hits if len(hit.places) == 1}
    return [
        hit
        for hit in hits
        if len(hit.places) == 1
        or hit.rule == SEED.name
        or ((hit.rule, hit.places[0].leaf) not in alone and not _is_list_of_words(hit, leaves))
        or _looks_like_continuation(
            "".join([leaves[p.leaf][p.start : p.end] for p in hit.places[1:]])
        )
    ]


def _without_joined_neighbours(
    hits: list[Hit], leaves: list[str], named: Callable[[int], str | None]
) -> list[Hit]:
    """Where the last piece is a value by itself, a word of another key before it is just a word.

    `{"team": "coding", "contact": "ann@example.com"}` has one address, not `codingann@example.com`.
    """
    alone = {(hit.rule, hit.places[0].leaf) for hit in hits if len(hit.places) == 1}

    def is_plain_neighbour(place: Place, last: Place) -> bool:
        key, word = named(place.leaf), leaves[place.leaf]
        whole = place.start == 0 and place.end == len(word)
        return whole and key not in (None, named(last.leaf)) and _WORD.fullmatch(word) is not None

    return [
        hit
        for hit in hits
        if len(hit.places) == 1
        or (hit.rule, hit.places[-1].leaf) not in alone
        or not all(is_plain_neighbour(place, hit.places[-1]) for place in hit.places[:-1])
    ]


def _is_list_of_words(hit: Hit, leaves: list[str]) -> bool:
    """Words of a list behind one that ends like a prefix: `["sk-", "organisation", …]`."""
    pieces = [leaves[p.leaf][p.start : p.end] for p in hit.places]
    worded = all(_WORD.fullmatch(piece) for piece in pieces[1:])
    return worded and not any(ch.isdigit() for ch in pieces[0])


_WORD = re.compile(r"[A-Za-z]?[a-z]{1,23}(?:[_-][a-z]{1,23}){0,3}")
"""A word, or a few, such as the closed lists of programs have."""


def _looks_like_continuation(piece: str) -> bool:
    mixed = any(ch.isdigit() for ch in piece) and piece.lower() != piece != piece.upper()
    return mixed or random_looking(piece)


def _value_span(match: re.Match[str]) -> Span:
    groups = match.re.groupindex
    for name in ("v", "w", "x", "y", "u"):
        if name in groups and match.start(name) >= 0:
            return match.span(name)
    return match.span()


def _walk_back(back: re.Pattern[str], text: str, at: int, floor: int, most: int) -> int:
    start = at
    for reach in (80, most):  # most values are short, so that a long slice is rarely needed
        before = text[max(floor, at - reach) : at][::-1]
        match = back.match(before)
        start = at - match.end() if match else at
        if at - start < len(before):
            break
    if floor < start < at and text[start - 1] == "\\" and text[start] in "nrt":
        start += 1
    return start


def _flood_hits(layer: Layer, spans: list[Span]) -> Iterator[Hit]:
    """What holds more than can be looked at goes as a whole, in each piece that it touches."""
    for start, end in spans:
        for piece in range(max(0, layer.piece(start)), layer.piece(end - 1) + 1):
            low, high = max(start, layer.starts[piece]), min(end, layer.ends[piece])
            if low < high and (places := locate_in_leaves(layer, [(low, high)])):
                yield Hit("overflow", "overflow", 100, layer.text[low:high], "plain", places)


def _hit_in_leaves(layer: Layer, match: _Match) -> Hit | None:
    """The match in terms of the leaves; None when another layer has it already."""
    rule, (start, end) = match.rule, match.value
    piece = layer.piece(start)
    split = layer.split[piece]
    forms = [layer.forms[piece]] if layer.forms[piece] else []
    if layer.raw[start:end] != layer.text[start:end]:
        forms.append("unicode")
    low, high = max(match.touched[0] - 1, layer.starts[piece]), match.touched[1] + 1
    if layer.parent and not layer.sources(low, min(high, layer.ends[piece]))[1]:
        return None  # the layer below has it, with the same neighbours
    places = locate_in_leaves(layer, [(start, end)])
    if not places or (split and (len(places) < 2 or not rule.split)):
        return None
    value = layer.text[start:end]
    return Hit(rule.name, rule.kind, rule.priority, value, "+".join(forms) or "plain", places)


def locate_in_leaves(layer: Layer, spans: list[Span]) -> tuple[Place, ...]:
    while layer.parent:
        spans = [below for span in spans for below in layer.sources(*span)[0]]
        layer = layer.parent
    places = []
    for start, end in spans:
        leaf = layer.piece(start)
        places.append(Place(leaf, start - layer.starts[leaf], end - layer.starts[leaf]))
    return tuple(places)


def _leaves_holding(layer: Layer, positions: list[int]) -> tuple[int, ...]:
    """The leaves that hold nearly all of these positions, the worst first."""
    sample = positions[:: max(1, len(positions) // 2000)]
    counts: Counter[int] = Counter()
    for at in sample:
        counts.update(p.leaf for p in locate_in_leaves(layer, [(at, at + 1)]))
    chosen, covered = [], 0
    for leaf, count in counts.most_common():
        chosen.append(leaf)
        covered += count
        if covered * 10 >= counts.total() * 9:
            break
    while layer.parent:
        layer = layer.parent
    return tuple(chosen) or tuple(range(len(layer.starts)))
