"""The examples of docs/judging.md run."""

import doctest
from pathlib import Path


def test_the_examples_of_the_guide_run():
    page = Path(__file__).parents[3] / "docs" / "judging.md"
    done = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert done.attempted > 5
    assert done.failed == 0
