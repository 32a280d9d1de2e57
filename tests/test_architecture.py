"""The architecture page names functions that exist, and counts its own steps."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
NAMED = re.findall(r"\[`([\w.]+)`\]\(([^)]+)\)", PAGE.read_text())


@pytest.mark.parametrize(("name", "path"), sorted(set(NAMED)))
def test_what_the_page_links_is_there(name, path):
    source = (PAGE.parent / path).resolve().read_text()
    for part in name.split("."):
        assert re.search(rf"^\s*(?:async )?(?:def|class) {part}\b", source, re.MULTILINE), part


def test_the_page_counts_the_changes_of_package_on_the_path():
    path = PAGE.read_text().split("## The path of a trajectory")[1].split("## The path of")[0]
    changes = path.count("| ▸ ") - 1  # the first is where the path begins
    assert f"Changes of package on this path: {changes}." in path
    assert changes <= 20
