"""The examples of docs/rewards.md run as they stand, and its tables are those of the code."""

import doctest
from pathlib import Path

import pytest

from upswing.reward.core import baseline, completion, efficiency, feedback
from upswing.reward.core.weights import BUILT_IN

PAGE = Path(__file__).parents[3] / "docs" / "rewards.md"


def test_the_examples_run():
    tried = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert (tried.failed, tried.attempted) == (0, 40)


def cells(text):
    """The rows of all tables, without their padding."""
    return {
        tuple(cell.strip().replace("−", "-") for cell in line.strip("|").split("|"))
        for line in text.splitlines()
        if line.startswith("|") and not line.startswith("|-")
    }


@pytest.mark.parametrize("module", [completion, efficiency, feedback])
def test_the_page_shows_the_tables_of_the_modules(module):
    rows = cells(module.__doc__)
    values = {row[-1] for row in rows}
    assert values <= {row[-1] for row in cells(PAGE.read_text())}


def test_the_page_names_the_weights_and_the_floor():
    rows = {row[:2] for row in cells(PAGE.read_text())}
    assert {(f"`{name}`", f"{weight:.2f}") for name, weight in BUILT_IN.items()} <= rows
    assert f"at\nleast {baseline.STD_FLOOR}" in PAGE.read_text()
