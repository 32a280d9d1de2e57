"""Laws: engines agree, redaction comes to rest, the same value has the same name."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest
from forms import FORMS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from upswing.redact import Redactor, default_rules, filter_text

FAST, PLAIN = Redactor(engine="auto"), Redactor(engine="python")
SETTINGS = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))

values = st.sampled_from([rule.example for rule in default_rules()])
hidden = st.builds(lambda v, f: f(v), values, st.sampled_from(list(FORMS.values())))
noise = st.text(st.characters(codec="utf-8"), max_size=30) | st.text(
    "abcAZ09 =:\"'\\/@<>-_.%+\n", max_size=40
)
glue = st.sampled_from(["", " ", "\n", "=", '"', "<email-1>", "\\n", "password=", "x"])
texts = st.lists(values | hidden | noise | glue, max_size=8).map("".join)


@st.composite
def mutated(draw):
    text = draw(texts)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        text = (
            text[:at]
            + draw(st.sampled_from(["", "\u200b", " ", "a", "%41", "\\u0041"]))
            + text[at + 1 :]
        )
    return text


@SETTINGS
@given(mutated())
def test_both_engines_find_the_same(text):
    assert FAST.text(text) == PLAIN.text(text)


@SETTINGS
@given(mutated())
def test_redacting_twice_changes_nothing(text):
    once = FAST.text(text)
    assert FAST.text(once.value).value == once.value


trees = st.recursive(
    texts | st.integers() | st.none() | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["password", "token", "text", "name", "value"]) | noise,
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@SETTINGS
@given(trees)
def test_redacting_a_tree_twice_changes_nothing(tree):
    once = FAST.tree(tree).value
    again = FAST.tree(once)
    assert again.value is once


@SETTINGS
@given(st.lists(texts, max_size=4))
def test_both_engines_find_the_same_in_trees(parts):
    tree = [{"role": "tool", "text": part} for part in parts]
    assert FAST.tree(tree) == PLAIN.tree(tree)


@SETTINGS
@given(texts, st.integers(1, 9))
def test_how_a_stream_is_cut_changes_nothing(text, size):
    chunks = [text[i : i + size] for i in range(0, len(text), size)]
    assert "".join(b.value for b in filter_text(chunks, FAST)) == FAST.text(text).value


def _sources() -> list[Path]:
    return sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))


def test_less_than_one_percent_of_clean_code_goes():
    total = taken = 0
    for path in [*_sources(), *Path(sysconfig.get_path("stdlib")).glob("pydoc_data/topics.py")]:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        text = "".join(line for line in lines if "@" not in line)
        total += len(text)
        taken += sum(f.end - f.start for f in FAST.text(text).findings)
    assert total > 3_000_000
    assert taken / total < 0.0002


@pytest.mark.parametrize("path", _sources()[:6], ids=lambda path: path.name)
def test_both_engines_find_the_same_in_code(path):
    text = path.read_text(encoding="utf-8", errors="replace")[:40_000]
    assert FAST.text(text) == PLAIN.text(text)
