"""Does the house keep its shape? Rooms with names, one class per name, a question over every module, no shortcuts."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "upswing"
LOOSE = {"__init__", "config", "errors", "logs", "model_flags", "principals", "records"}
"""Modules that stand beside the rooms; whatever else there is belongs in one."""
ROOMS = {
    "anthropic",
    "api",
    "app",
    "cli",
    "collect",
    "contracts",
    "dashboard",
    "dataset",
    "demo",
    "deploy",
    "gateway",
    "infra",
    "monitor",
    "integrations",
    "openai",
    "redact",
    "reward",
    "rl_trainer",
    "sdk",
    "serve",
    "train",
    "trigger",
    "validate",
    "worlds",
}
OLD_WORDS = {
    "asker": "response sink",
    "book": "table, portfolio",
    "burial": "dead letters",
    "buried": "dead-lettered",
    "bury": "dead_letter",
    "doors": "routes, intake",
    "errand": "request, episode spec",
    "glimpse": "start_load",
    "house": "context",
    "keeper": "store, recorder",
    "lane": "batch",
    "looker": "worker",
    "outlet": "response writer",
    "prover": "validation runner",
    "proving": "validation",
    "retreat": "rollback",
    "seat": "assign, slot",
    "slab": "KV cache",
    "suspicion": "sequential test",
    "talk": "transcript",
    "upkeep": "maintenance",
    "wish": "request",
    "wished": "requested",
}
"""Words that the glossary has replaced, as a word of an identifier or of a module's name → what is said instead."""
WORLDS_ONLY = {"desk": "submission, client", "workshop": "trainer pool"}
"""Names of worlds, and of nothing else."""


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE), ast.parse(path.read_text())


def test_what_stands_at_the_top_is_a_room_or_one_of_six_modules():
    assert {path.stem for path in SOURCE.glob("*.py")} == LOOSE
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert rooms == ROOMS


def test_every_module_begins_with_its_question():
    silent = [str(path) for path, tree in modules() if not ast.get_docstring(tree)]
    assert silent == [], "a module says at its top which question it answers"


def test_a_public_class_has_its_name_for_itself():
    places = defaultdict(list)
    for path, tree in modules():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path))
    shared = {name: where for name, where in places.items() if len(where) > 1}
    assert shared == {}, "another class has this name: choose one that says more"


def words_of(name):
    """The words of an identifier, in either way of writing, in the singular too.

    >>> sorted(words_of("ProvingKeepers_v2"))
    ['keeper', 'keepers', 'proving', 'v']
    """
    words = {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}
    return words | {word.removesuffix("s") for word in words}


def identifiers(path, tree):
    """Whatever has a name in a module, and the module itself."""
    yield path.stem
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.arg():
                yield node.arg
            case ast.Name():
                yield node.id
            case ast.Attribute():
                yield node.attr
            case ast.keyword() if node.arg:
                yield node.arg


def old_words_in(path, tree):
    banned = OLD_WORDS if path.parts[0] == "worlds" else OLD_WORDS | WORLDS_ONLY
    for name in identifiers(path, tree):
        for word in words_of(name) & banned.keys():
            yield f"{path}: {name} (say {banned[word]})"


def test_no_word_that_the_glossary_replaced_comes_back():
    found = {each for path, tree in modules() for each in old_words_in(path, tree)}
    assert found == set(), "docs/glossary.md has the words to use"


@pytest.mark.parametrize(
    ("code", "file", "count"),
    [
        ("def bury(): ...", "reward/rewarder.py", 1),
        ("class ReportKeeper: ...", "validate/reports.py", 1),
        ("assigned.seats = 3", "serve/scheduler.py", 1),
        ("run(wished=True)", "gateway/main.py", 1),
        ("", "gateway/talk.py", 1),
        ("desk = 1", "trigger/trigger.py", 1),
        ("desk = 1", "worlds/desk.py", 0),
        ("seating = booking = island = 1", "serve/scheduler.py", 0),
    ],
)
def test_an_old_word_is_found_in_every_kind_of_name(code, file, count):
    assert len(set(old_words_in(Path(file), ast.parse(code)))) == count


PLANTED = {
    "a decision that waits": (
        "deploy/core/canary.py",
        "import asyncio",
        "upswing.deploy.core.canary -> asyncio",
    ),
    "a decision by chance": (
        "reward/core/total.py",
        "import random",
        "upswing.reward.core.total -> random",
    ),
    "a decision that reads the store": (
        "trigger/core/decide.py",
        "import upswing.infra.sql.store",
        "upswing.trigger.core.decide -> upswing.infra.sql.store",
    ),
    "learning with a clock": (
        "train/learn/gae.py",
        "import time",
        "upswing.train.learn.gae -> time",
    ),
    "a stage in another": (
        "collect/intake.py",
        "import upswing.reward.rewarder",
        "upswing.collect.intake -> upswing.reward.rewarder",
    ),
    "a gateway in a stage": (
        "gateway/traffic.py",
        "import upswing.deploy.core.ramp",
        "upswing.gateway.traffic -> upswing.deploy.core.ramp",
    ),
    "infra in a stage": (
        "infra/clock.py",
        "import upswing.collect.metrics",
        "upswing.infra.clock -> upswing.collect.metrics",
    ),
    "a loose module": ("loose.py", "", "upswing.loose"),
}


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    """What the import contracts say of a copy in which each law is broken once."""
    folder = tmp_path_factory.mktemp("house")
    shutil.copytree(SOURCE, folder / "upswing", ignore=shutil.ignore_patterns("__pycache__"))
    for file, line, _ in PLANTED.values():
        path = folder / "upswing" / file
        path.write_text((path.read_text() if path.exists() else "") + f"\n{line}\n")
    command = Path(sys.executable).with_name("lint-imports")
    ran = subprocess.run(
        [command, "--no-cache", "--config", ROOT / "pyproject.toml"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.parametrize("what", PLANTED)
def test_a_shortcut_is_found(what, findings):
    _, _, said = PLANTED[what]
    assert said in findings


MOST_PATCHES = 10
"""Places in tests and benches that replace a part of ours; it only gets smaller: pass a double in instead."""
PATCHERS = {"setattr", "delattr", "setitem", "delitem", "patch", "object", "dict", "multiple"}


def _chain(node):
    """`a.b.c` as ["a", "b", "c"]; what else stands at the root is "?"."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [*reversed([*names, node.id if isinstance(node, ast.Name) else "?"])]


def _foreign_names(tree):
    """Names in this file that come from elsewhere than from us or from our tests."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {(each.asname or each.name).split(".")[0] for each in node.names}
            found -= {"upswing", "tests"}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] != "upswing":
            found |= {each.asname or each.name for each in node.names}
    return found


def _names_of_ours():
    """Functions and methods of the package, and the private attributes of its objects."""
    found = set()
    for _, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found |= {node.attr} if node.attr.startswith("_") else set()
    return {name for name in found if not name.startswith("__")}


def _patches(tree, names):
    """Lines on which something of ours is replaced from outside.

    | counted                                             | not counted                              |
    |-----------------------------------------------------|------------------------------------------|
    | `monkeypatch.setattr(ours, ...)`, `mock.patch(...)` | the same on another package's module     |
    | `setattr(ours, ...)`                                | environment variables                    |
    | `module.NAME = ...`, `Class.method = ...`           | an attribute of the test's own `self`    |
    | `thing._private = ...`                              | a plain value in a public attribute      |
    | `thing.method = function`                           | a double that is passed in               |
    """
    foreign, kinds = _foreign_names(tree) | {"self", "cls"}, ast.FunctionDef | ast.AsyncFunctionDef
    made = {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and _is_patcher(node.func):
            target = node.args[0]
            text = target.value if isinstance(target, ast.Constant) else None
            if str(text).startswith("upswing") if text else _chain(target)[0] not in foreign:
                yield node.lineno
        elif isinstance(node, ast.Assign):
            value = node.value
            function = isinstance(value, ast.Lambda) or (
                isinstance(value, ast.Name) and value.id in made
            )
            for root, last in _attributes(node.targets):
                public = function and last in names
                if root not in foreign and (
                    root in _ours(tree) or public or (last.startswith("_") and last in names)
                ):
                    yield node.lineno


def _is_patcher(function):
    *owner, name = _chain(function)
    named = any("patch" in each or each == "mock" for each in owner)
    return (name in PATCHERS and named) or (name, owner) == ("setattr", [])


def _attributes(targets):
    """The root and the last name of every attribute that is assigned to."""
    for target in targets:
        for each in target.elts if isinstance(target, ast.Tuple) else [target]:
            if isinstance(each, ast.Attribute):
                yield _chain(each)[0], each.attr


def _ours(tree):
    """Names that this file imports from us."""
    return {
        each.asname or each.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "upswing"
        for each in node.names
    }


def test_hardly_anything_of_ours_is_patched():
    names = _names_of_ours()
    places = []
    for folder in ("tests", "bench"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text())
            places += [f"{path.relative_to(ROOT)}:{line}" for line in _patches(tree, names)]
    assert len(places) <= MOST_PATCHES, "pass a double or a value in:\n" + "\n".join(places)


@pytest.mark.parametrize(
    "line",
    [
        'monkeypatch.setattr("upswing.logs.now", 1)',
        'monkeypatch.setattr(ours, "LIMIT", 1)',
        'patch.setitem(ours.TABLE, "a", 1)',
        'mock.patch("upswing.logs.now")',
        'mock.patch.object(ours, "now")',
        'monkeypatch.setattr(bench.store, "commit", 1)',
        'setattr(bench.store, "commit", 1)',
        "ours.LIMIT = 1",
        "thing._wait = 1",
        "one, bench.thing._wait = 1, 2",
        "bench.store.now = away",
        "bench.store.now = lambda: 0",
    ],
)
def test_a_patch_is_counted(line):
    code = f"from upswing import ours\ndef away(): ...\n{line}"
    assert [*_patches(ast.parse(code), {"now", "_wait"})] == [3]


@pytest.mark.parametrize(
    "line",
    [
        'monkeypatch.setattr(sys, "argv", [])',
        'monkeypatch.setattr("sys.stdout", 1)',
        'monkeypatch.setenv("A", "1")',
        "self._wait = 1",
        "sys.argv = []",
        "bench.away = True",
        "bench.double = away",
        "thing._sock = None",
    ],
)
def test_what_is_no_patch_of_ours_is_not_counted(line):
    code = f"import sys\ndef away(): ...\n{line}"
    assert [*_patches(ast.parse(code), {"now", "_wait"})] == []


MOST_PROTOCOLS, MOST_SKIPS, MOST_LAYERS = 45, 40, 8


def test_a_protocol_is_the_exception():
    found = [
        f"{path}: {node.name}"
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and any("Protocol" in ast.unparse(base) for base in node.bases)
    ]
    assert len(found) <= MOST_PROTOCOLS, "name the class, unless there are two:\n" + "\n".join(
        found
    )


def test_hardly_any_code_fights_the_formatter():
    mark = "# fmt: " + "skip"
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in ("src", "tests", "bench")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if mark in line
    ]
    assert len(found) <= MOST_SKIPS, "make it shorter or narrower:\n" + "\n".join(found)


def test_import_contracts_name_rooms_and_no_modules():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = contracts["contracts"][0]["layers"]
    assert len(layers) <= MOST_LAYERS
    named = {
        name
        for contract in contracts["contracts"]
        for key in ("source_modules", "forbidden_modules", "modules", "ignore_imports")
        for each in contract.get(key, ())
        for name in each.split(" -> ")
        if name.startswith("upswing.")
    }
    files = {name for name in named if (SOURCE / f"{name[8:].replace('.', '/')}.py").is_file()}
    assert files - {f"upswing.{name}" for name in LOOSE} == set()


def test_nobody_is_told_to_install_a_strangers_package():
    """The project is installed from its folder: in an index, its name may be anybody's."""
    by_name = re.compile(r"pip install[^\n`]*?[\s'\"](upswing)(?![\w/.\-])")
    kept = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").rglob("*.py")]
    kept += [path for path in SOURCE.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    told = [str(path) for path in kept if by_name.search(path.read_text(errors="replace"))]
    assert told == []
