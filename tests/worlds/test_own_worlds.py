"""A user's own world: by entry point, and what is said when there is none."""

import re
import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.errors import Misuse
from upswing.worlds import own
from upswing.worlds.known import WORLDS, make_world, world_of_task
from upswing.worlds.own import check_names, load_world

GOOD = """
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Task:
        task_id: str
        instructions: str = ""

    @dataclass(frozen=True)
    class Seen:
        text: str

    class World:
        name, max_turns = "mine", 1
        training = ()
        held_out = tuple(Task(f"t{i}") for i in range(3))

        def reset(self, task): return task
        def observe(self, state): return Seen("hello")
        def step(self, state, reply): return state
        def outcome(self, state): return None

    ready = World()

    def make(): return World()
    def picky(seed): return World()
    def broken(): raise RuntimeError("no database")
    def nothing(): return None

    class Folder:
        inner = World

    def changed(**names):
        return type("Changed", (World,), names)()

    deaf = changed(reset=None)
    unnamed = changed(name="")
    numbered = changed(name=5)
    endless = changed(max_turns=0)
    boolean = changed(max_turns=True)
    empty = changed(held_out=())
    text = changed(held_out="abc")
    untrained = changed(training=None)
    generator = changed(held_out=iter(()))
    twice = changed(held_out=(Task("a"), Task("a")))
    odd = changed(held_out=(Task(7),))
    bare = changed(held_out=("a", "b"))
    blind = changed(observe=lambda self, state: Seen(None))
    angry = changed(reset=lambda self, task: 1 / 0)
    leaving = changed(reset=lambda self, task: exit(3))
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The module `mine_worlds` in the folder in which the process was started."""
    (tmp_path / "mine_worlds.py").write_text(textwrap.dedent(GOOD))
    (tmp_path / "sick_worlds.py").write_text("raise ValueError('not today')")
    (tmp_path / "gone_worlds.py").write_text("raise SystemExit(4)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    yield
    for name in ("mine_worlds", "sick_worlds", "gone_worlds"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("attribute", ["ready", "World", "make", "Folder.inner"])
def test_an_object_a_class_and_a_function_are_taken(module, attribute):
    assert load_world(f"mine_worlds:{attribute}").name == "mine"
    assert make_world(f"mine_worlds:{attribute}").held_out[0].task_id == "t0"


BAD = [
    ("mine_worlds:absent", "has no absent"),
    ("mine_worlds:Folder.absent", "has no Folder.absent"),
    ("no_such_module:World", "No module named 'no_such_module'"),
    ("sick_worlds:World", "ValueError: not today"),
    ("gone_worlds:World", "SystemExit: 4"),
    ("mine_worlds:picky", "cannot be made: TypeError"),
    ("mine_worlds:broken", "RuntimeError: no database"),
    ("mine_worlds:nothing", "has no `reset`"),
    ("mine_worlds:Task", "cannot be made"),
    ("mine_worlds:__name__", "has no `reset`"),
    ("mine_worlds:deaf", "has no `reset`"),
    ("mine_worlds:unnamed", "`name` is no text"),
    ("mine_worlds:numbered", "`name` is no text"),
    ("mine_worlds:endless", "`max_turns` is no number"),
    ("mine_worlds:boolean", "`max_turns` is no number"),
    ("mine_worlds:empty", "no task in `held_out`"),
    ("mine_worlds:text", "`held_out` is no list of tasks"),
    ("mine_worlds:untrained", "`training` is no list of tasks"),
    ("mine_worlds:generator", "no list of tasks"),
    ("mine_worlds:twice", "the task a twice"),
    ("mine_worlds:odd", "no text as its `task_id`"),
    ("mine_worlds:bare", "cannot be read: AttributeError"),
    ("mine_worlds:blind", "has no text"),
    ("mine_worlds:angry", "cannot be begun: ZeroDivisionError"),
    ("mine_worlds:leaving", "cannot be begun: SystemExit: 3"),
]


@pytest.mark.parametrize(("where", "sentence"), BAD)
def test_what_is_no_world_is_told_in_a_sentence(module, where, sentence):
    with pytest.raises(Misuse) as caught:
        load_world(where)
    assert sentence in str(caught.value)
    assert str(caught.value).startswith(where)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=40) | st.from_regex(r"[a-z.:/0-9_-]{1,30}", fullmatch=True))
def test_whatever_else_is_written_for_a_world_is_refused_in_a_sentence(where):
    with pytest.raises(Misuse, match="is no world"):
        load_world(where)


@given(st.text(max_size=80))
def test_a_name_is_one_or_is_refused(name):
    fits = own.NAME.fullmatch(name) is not None and name not in WORLDS
    try:
        check_names({name: "a:b"}, list(WORLDS))
    except Misuse:
        assert not fits
    else:
        assert fits


def test_installed_packages_may_offer_worlds(module, tmp_path, monkeypatch):
    installed = tmp_path / "mine-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(f"[{own.GROUP}]\noffered = mine_worlds:World\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert make_world("offered").name == "mine"
    with pytest.raises(Misuse, match=r"offered, and package\.module:attribute"):
        make_world("atlantis")


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_every_task_of_ours_tells_its_world(name):
    world = make_world(name, 3)
    tasks = [*world.training[:50], *world.held_out[:50]]
    assert {world_of_task(task.task_id) for task in tasks} == {name}


@given(st.text(max_size=60))
def test_other_tasks_tell_none(task_id):
    found = world_of_task(task_id)
    assert found is None or task_id.startswith(f"{found}-")


def test_the_commands_know_the_worlds_of_the_config(module, tmp_path, capsys):
    from upswing.cli import main
    from upswing.cli.worlds import named_world

    words = """[validate.worlds]
    mine = "mine_worlds:World"
    far = "http://127.0.0.1:9"
    """
    (tmp_path / "upswing.toml").write_text(textwrap.dedent(words))
    assert main(["worlds", "list", "--data", str(tmp_path)]) == 0
    assert re.search(r"^mine +1 +0 +3", capsys.readouterr().out, re.MULTILINE)
    assert named_world(tmp_path, "mine") == "mine_worlds:World"
    assert named_world(tmp_path, "desk") == "desk"
    assert main(["worlds", "serve", "far", "--data", str(tmp_path)]) == 1
    assert "far is served already: http://127.0.0.1:9" in capsys.readouterr().err
