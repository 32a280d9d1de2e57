"""Shapes that hold a run of digits are looked for around such runs, and none is lost by it."""

import random
import re
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upswing.redact.digits import RUN, holds_digit_run, max_digit_runs
from upswing.redact.nominate import HyperscanEngine, PythonEngine, hyperscan
from upswing.redact.rules import default_rules

RULES = default_rules()
SHAPES = [
    (number, anchor)
    for number, rule in enumerate(RULES)
    for anchor in rule.anchors
    if holds_digit_run(anchor)
]
NUMERIC = frozenset(number for number, _ in SHAPES)
BESIDE = ("", " ", "x", "9", "-", "\\n", "    ", "(", "\0", "Ref ", "00 ")


def test_most_shapes_without_a_word_hold_a_run():
    shapes = [anchor for rule in RULES for anchor in rule.anchors if not anchor.literal]
    assert len(SHAPES) > len(shapes) / 2


@settings(max_examples=300)
@given(st.sampled_from(SHAPES), st.data())
def test_everything_of_such_a_shape_holds_a_run(shape, data):
    written = data.draw(st.from_regex(re.compile(shape[1].follow, re.ASCII), fullmatch=True))
    assert re.search(RUN, f"{written}\n\n\n\n")


@pytest.mark.skipif(hyperscan is None, reason="hyperscan is not installed")
@pytest.mark.parametrize("filler", ["an ordinary line of words, and one more; ", "12345678\n"])
@pytest.mark.parametrize("seed", range(8))
def test_both_engines_nominate_the_same_numbers(seed, filler):
    """Where runs are rare, which are looked at one by one, and where they are everywhere."""
    chance = random.Random(seed)
    parts = []
    for _ in range(60):
        written = _example(chance.choice(SHAPES)[1].follow, chance)
        parts += [chance.choice(BESIDE), written, chance.choice(BESIDE)]
        parts.append(filler * chance.choice((0, 0, 1, 40)))
    data = "".join(parts).encode()
    found = [
        {place for place in _engine(kind).nominate(data).places if place[1] in NUMERIC}
        for kind in (HyperscanEngine, PythonEngine)
    ]
    assert found[0] == found[1]
    assert len(found[0]) > 10


def test_a_text_of_numbers_is_read_as_a_whole():
    assert len(re.findall(RUN, "12345678\n" * 1000)) > max_digit_runs(9000)


@cache
def _engine(kind):
    return kind(RULES)


def _example(follow, chance):
    """Something of this shape: one of each class, one of each choice."""
    follow = re.sub(r"\(\?:([^()|]*)\|([^()|]*)\)", lambda m: chance.choice(m.groups()), follow)
    items = re.findall(r"(\[[^\]]*\]|\\?.)(?:\{(\d+)\})?", follow)
    return "".join(
        chance.choice([ch for ch in map(chr, range(32, 127)) if re.fullmatch(item, ch)])
        for item, count in items
        for _ in range(int(count or 1))
    )
