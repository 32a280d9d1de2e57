"""The architecture page names functions, modules and packages that exist, and counts its own steps."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "upswing"
PAGE = ROOT / "docs" / "architecture.md"
NAMED = re.findall(r"\[`([\w.]+)`\]\(([^)]+\.py)\)", PAGE.read_text())
STEP = re.compile(r"^\| \d+ \| (▸ )?(\w+) \|.*\|([^|]+)\|$", re.MULTILINE)
"""A row of a path: whether the package changes, the package, and the functions."""


def defines(tree, name):
    """Whether a module has this function, class, or method of a class.

    >>> tree = ast.parse("class A:\\n    async def b(self): ...\\ndef c(): ...")
    >>> [defines(tree, name) for name in ("A", "A.b", "c", "b", "A.c", "c.b")]
    [True, True, True, False, False, False]
    """
    for part in name.split("."):
        kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        found = [node for node in tree.body if isinstance(node, kinds) and node.name == part]
        if not found:
            return False
        tree = found[0]
    return True


@pytest.mark.parametrize(("name", "path"), sorted(set(NAMED)))
def test_what_the_page_links_is_there(name, path):
    source = (PAGE.parent / path).resolve()
    assert defines(ast.parse(source.read_text()), name), f"{path} has no {name}"


def section(title):
    return PAGE.read_text().split(f"## {title}")[1].split("\n## ")[0]


@pytest.mark.parametrize("title", ["The path of a trajectory", "The path of a rollback"])
def test_every_step_of_a_path_links_functions_of_its_package_and_marks_a_change(title):
    steps = STEP.findall(section(title))
    assert len(steps) == section(title).count("\n| ") - 1, "a row that is no step"
    before = None
    for changed, package, links in steps:
        files = re.findall(r"\(([^)]+\.py)\)", links)
        assert files, f"a step in {package} names no function"
        for file in files:
            assert file.startswith(f"../src/upswing/{package}/"), f"{file} is not in {package}"
        if before is not None:
            assert bool(changed) is (package != before), f"▸ marks a change: {before}, {package}"
        before = package


def test_the_page_counts_the_changes_of_package_on_the_path():
    path = section("The path of a trajectory")
    changes = path.count("| ▸ ") - 1  # the first is where the path begins
    assert f"Changes of package on this path: {changes}." in path
    assert changes <= 20


def test_every_process_starts_in_a_module_that_is_there():
    starts = re.findall(r"^\| [^|]+ \| `([\w/]+\.py)` \|", section("Processes"), re.MULTILINE)
    assert len(starts) >= 9
    assert [each for each in starts if not (SOURCE / each).is_file()] == []


def test_the_table_of_layers_has_every_package_once():
    table = section("Packages").split("\n\n")[1]
    named = re.findall(r"`(\w+)`", table)
    there = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    there |= {path.stem for path in SOURCE.glob("*.py")} - {"__init__"}
    inside = {"agent_zero", "mcp", "operations"}
    assert sorted(set(named) - inside) == sorted(there)
    assert len(named) == len(set(named)), "a package stands in two layers"
