"""Do the pages still fit the code? Links lead somewhere, modules that are named exist, and so do commands and options."""

import argparse
import importlib.util
import re
from pathlib import Path

import pytest

from upswing.cli import parser

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
MODULE = re.compile(r"`(upswing(?:\.\w+)+)`")
FILE = re.compile(r"`((?:[a-z_0-9]+/)+[a-z_0-9]+\.py)`")
COMMAND = re.compile(r"(?:^\$ |`)(?:[A-Z_]+=\S+ )*(upswing [^`]*)", re.MULTILINE)
PROSE = {"upswing is not in Agent Zero's Python"}
"""Begins like a command, and is a sentence that the program says."""


def named(path):
    return str(path.relative_to(ROOT))


def anchors(text):
    """As GitHub makes them from headings.

    >>> sorted(anchors("## Who may `load`?\\n# A, b"))
    ['a-b', 'who-may-load']
    """
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page):
    lost = []
    for link in LINK.findall(re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text())):
            lost.append(link)
    assert lost == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_modules_and_files_that_a_page_names_are_there(page):
    text, source = page.read_text(), ROOT / "src" / "upswing"
    files = set(FILE.findall(text))
    lost = {each for each in files if not any((base / each).is_file() for base in (source, ROOT))}
    lost |= {name for name in MODULE.findall(text) if not is_there(name)}
    assert lost == set()


def is_there(name):
    """A module, or what stands in one; a logger or group of entry points has a module's name, too."""
    known = {"upswing.reward", "upswing.outcomes", "upswing.worlds", "upswing.toml", "upswing.mark"}
    spans = {
        "upswing.outcome",
        "upswing.task_id",
        "upswing.user_id",
    }  # attributes of a traced agent
    if name in known | spans or name == "upswing.db":
        return True
    for _ in range(3):
        try:
            if importlib.util.find_spec(name) is not None:
                return True
        except ModuleNotFoundError:
            pass
        name = name.rpartition(".")[0]
        if name == "upswing":
            return False
    return False


def commands_of(parent):
    for action in parent._actions:
        if isinstance(action, argparse._SubParsersAction):
            return action.choices
    return {}


def mistakes(command, root):
    """What of a command line does not exist.

    >>> mistakes("upswing up --no-gateway", parser()), mistakes("upswing go --fast", parser())
    ([], ['no command go', 'no option --fast'])
    """
    at, found, options = root, [], set()
    for word in (each.split("=")[0].strip(",.()") for each in command.split()[1:]):
        options |= {each for action in at._actions for each in action.option_strings}
        if word.startswith("--") and word not in options:
            found.append(f"no option {word}")
        elif commands_of(at) and re.fullmatch(r"[a-z-]+", word) and not word.startswith("-"):
            if word in commands_of(at):
                at = commands_of(at)[word]
            else:
                found.append(f"no command {word}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_in_a_page_exist_with_their_options(page):
    root, wrong = parser(), []
    for found in COMMAND.findall(page.read_text()):
        command = re.split(r"\s#|[;>&|…]", found.replace("\n", " "))[0].strip()
        if command not in PROSE and "/" not in command.split()[0]:
            wrong += [f"{command}: {each}" for each in mistakes(command, root)]
    assert wrong == []
