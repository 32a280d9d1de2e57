"""Whatever a trajectory says, it is shown as text: nothing of it acts, nothing is hidden, and it is never too much."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as some

from upswing.dashboard.core.text import SHOWN, as_text, one_line, pieces_of

HIDDEN = [
    "\u202e",
    "\u2066",
    "\u200b",
    "\u061c",
    "\ufeff",
    "\x1b",
    "\x00",
    "\x7f",
    "\x9b",
    "\U000e0041",
    "\u2028",
]
anything = some.text(max_size=400) | some.text(
    some.sampled_from([*"ab <>-1\n", *HIDDEN]), max_size=200
)


@given(anything)
def test_the_pieces_of_a_text_say_all_of_it(text):
    plain = "".join(part for kind, part in pieces_of(text) if kind != "escape")
    kept = "".join(each for each in text if each in plain or each not in HIDDEN)
    assert [each for each in plain if each not in kept] == []


@given(anything)
def test_no_piece_holds_a_character_that_acts(text):
    for kind, part in pieces_of(text):
        assert not any(each in part for each in HIDDEN), (kind, part)


@pytest.mark.parametrize("character", HIDDEN)
def test_a_character_that_acts_is_spelled_out(character):
    assert pieces_of(f"a{character}b")[1][0] == "escape"
    assert character not in one_line(f"a{character}b")


@given(anything, some.integers(1, 300))
def test_never_more_than_the_limit_is_shown(text, limit):
    shown = [
        (kind, part) for kind, part in pieces_of(text, limit) if kind in {"plain", "placeholder"}
    ]
    assert sum(len(part) for _, part in shown) <= limit
    assert (pieces_of(text, limit)[-1:] or [("", "")])[0][0] == "cut" or len(text) <= limit


@given(some.text(max_size=500), some.integers(2, 120))
def test_a_line_of_a_list_is_one_line(text, limit):
    line = one_line(text, limit)
    assert "\n" not in line
    assert len(line) <= limit


def test_a_placeholder_of_redaction_is_told_from_markup():
    kinds = {
        part: kind for kind, part in pieces_of("<email-1> <b>bold</b> <script-x> <card-number-12>")
    }
    assert kinds["<email-1>"] == kinds["<card-number-12>"] == "placeholder"
    assert not any(
        kind == "placeholder" for part, kind in kinds.items() if "script" in part or "b>" in part
    )


@pytest.mark.parametrize(
    "text",
    ["x" * 1_000_000, "<email-1>" * 100_000, "\u202e" * 1_000_000, "\n" * 1_000_000],
    ids=["line", "placeholders", "bidi", "newlines"],
)
def test_a_megabyte_becomes_a_screenful_at_once(text):
    began = time.process_time()
    pieces = pieces_of(text)
    assert time.process_time() - began < 1.0
    assert len(pieces) <= 2 * SHOWN
    assert pieces[-1][0] == "cut"


@given(
    some.recursive(
        some.none() | some.booleans() | some.text(max_size=20) | some.integers(-(2**53), 2**53),
        lambda inner: (
            some.lists(inner, max_size=4)
            | some.dictionaries(some.text(max_size=8), inner, max_size=4)
        ),
        max_leaves=20,
    )
)
def test_whatever_a_field_holds_has_a_text(value):
    assert isinstance(as_text(value), str)
