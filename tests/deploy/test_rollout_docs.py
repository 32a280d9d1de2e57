"""The guide to rollouts runs, and its diagrams are the tables."""

import doctest
import re
from pathlib import Path

import pytest

from upswing.deploy.core.states import (
    INITIAL_STATES,
    MODEL_TRANSITIONS,
    ROLLOUT_TRANSITIONS,
    mermaid_diagram,
)

PAGE = Path(__file__).parents[2] / "docs" / "rollouts.md"


def test_the_examples_of_the_guide_run():
    done = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert done.attempted > 5
    assert done.failed == 0


@pytest.mark.parametrize(
    ("name", "table", "first"),
    [
        ("model", MODEL_TRANSITIONS, INITIAL_STATES[0]),
        ("rollout", ROLLOUT_TRANSITIONS, INITIAL_STATES[1]),
    ],
)
def test_the_diagrams_are_drawn_from_the_tables(name, table, first):
    (drawn,) = re.findall(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", PAGE.read_text(), re.DOTALL)
    assert drawn == f"```mermaid\n{mermaid_diagram(table, first)}\n```\n"
