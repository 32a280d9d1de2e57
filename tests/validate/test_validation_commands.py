"""`upswing validate`, `compare` and `pin`, as a person types them."""

import argparse
import asyncio
import io
import json
import sys

import pytest

from tests.trigger.test_trigger import Bench
from tests.validate.desk import KEY, ValidationPort
from tests.validate.endpoint import Endpoint
from tests.validate.test_runner import DATA
from upswing.cli import journal, validation
from upswing.errors import Misuse
from upswing.infra.sql.store import open_store

pytestmark = pytest.mark.live
MINE = '{"task_id": "a", "messages": [{}], "check": {"kind": "exact", "any_of": ["x"]}}'


@pytest.fixture
async def store(tmp_path):
    made = open_store(tmp_path)
    await made.prepare()
    yield made
    made.close()


@pytest.fixture
def type_(tmp_path, monkeypatch):
    """Type a command to the loop behind a desk, or to the data directory alone."""

    async def typed(desk, *words, silences=60):
        if desk is not None:
            monkeypatch.setenv("AGENTGYM_RL_URL", desk.url)
            monkeypatch.setenv("AGENTGYM_RL_API_KEY", KEY)
        else:
            monkeypatch.delenv("AGENTGYM_RL_URL", raising=False)
        arguments = parsed(*words)
        arguments.data = tmp_path
        run = getattr(validation, arguments.run.partition(":")[2])
        quick = (validation.Polling(0.02, silences),) if words[0] == "validate" else ()
        return await asyncio.to_thread(run, arguments, *quick)

    return typed


def parsed(*words):
    top = argparse.ArgumentParser()
    subs = top.add_subparsers()

    def command(name, run, about):
        sub = subs.add_parser(name, help=about)
        sub.set_defaults(run=run)
        sub.add_argument("--json", action="store_true")
        return sub

    validation.commands(command)
    return top.parse_args(words)


@pytest.mark.parametrize(
    ("models", "code", "title"),
    [
        ({"wrong": {"old": DATA[:8]}}, 0, "new passes against old"),
        ({"wrong": {"new": DATA[:8]}}, 1, "new fails against old"),
        ({"away": ["new"]}, 3, "new is undecided against old"),
    ],
)
async def test_the_exit_code_is_the_verdict(tmp_path, store, type_, capsys, models, code, title):
    async with ValidationPort(tmp_path, store, Endpoint(**models)) as desk:
        assert await type_(desk, "validate", "new") == code
    said = capsys.readouterr().out
    assert title in said
    assert "answers\n" in said  # plain lines where there is no terminal
    assert "\x1b" not in said
    assert "upswing explain" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("who",), "no model who"),
        (("new", "--against", "who"), "no model who"),
        (("new", "--suite", "gaia"), "no suite gaia"),
    ],
)
async def test_misuse_has_its_own_exit_code(tmp_path, store, type_, capsys, words, said):
    async with ValidationPort(tmp_path, store) as desk:
        assert await type_(desk, "validate", *words) == 2
    assert said in capsys.readouterr().err


async def test_without_a_loop_it_says_how_to_start_one(type_, capsys):
    assert await type_(None, "validate", "new") == 2
    assert "upswing up" in capsys.readouterr().err


async def test_a_loop_that_stays_away_leaves_it_undecided(tmp_path, store, type_):
    async with ValidationPort(tmp_path, store) as desk:
        desk.models.hold = (5, asyncio.Event())
        run = asyncio.create_task(type_(desk, "validate", "new", silences=3))
        await desk.models.told.wait()
    assert await run == 3


async def test_one_without_a_report_is_misuse(tmp_path, store, type_, capsys):
    from upswing.config import ValidateConfig

    (path := tmp_path / "gone.jsonl").write_text(MINE)
    config = ValidateConfig(suites=("mine",), files={"mine": str(path)})
    async with ValidationPort(tmp_path, store, config=config) as desk:
        path.unlink()
        assert await type_(desk, "validate", "new") == 2
    assert "cannot be read" in capsys.readouterr().err


async def test_suites_are_chosen_and_json_is_printed(tmp_path, store, type_, capsys):
    async with ValidationPort(tmp_path, store) as desk:
        words = ("new", "--suite", "safety_bias", "--suite", "tool_usage", "--json")
        assert await type_(desk, "validate", *words) == 0
    info = json.loads(capsys.readouterr().out)
    assert info["suites"] == ["safety_bias", "tool_usage"]
    assert info["report"]["word"] == "pass"


async def test_on_a_terminal_there_are_bars(tmp_path, store, type_, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("TERM", "xterm")
    async with ValidationPort(tmp_path, store) as desk:
        assert await type_(desk, "validate", "new") == 0
    assert "new against old" in screen.getvalue()
    assert "━" in screen.getvalue()


async def test_what_a_model_said_does_nothing_to_the_terminal(tmp_path, store, type_, capsys):
    async with ValidationPort(
        tmp_path, store, Endpoint(says={"new": "ANSWER: \x1b[2J\x07red"})
    ) as desk:
        assert await type_(desk, "validate", "new") == 1
    said = capsys.readouterr().out
    assert "Worse than before" in said
    assert "\x1b" not in said
    assert "\x07" not in said


async def test_the_decision_can_be_explained(tmp_path, store, type_, capsys):
    async with ValidationPort(tmp_path, store, Endpoint({"new": DATA[:8]})) as desk:
        assert await type_(desk, "validate", "new", "--json") == 1
    info = json.loads(capsys.readouterr().out)
    arguments = argparse.Namespace(data=tmp_path, id=info["decision_id"], json=False)
    await asyncio.to_thread(journal.explain, arguments)
    said = capsys.readouterr().out
    assert "new against old: fail. data_analysis is worse" in said
    assert "Today it would come out the same." in said


async def test_compare_shows_both_and_how_sure_it_is(tmp_path, store, type_, capsys):
    bench = Bench(store)
    for _ in range(150):
        await bench.score(model="new", raw=0.8)
        await bench.score(model="old", raw=0.5)
    async with ValidationPort(tmp_path, store) as desk:
        await type_(desk, "validate", "new")
        capsys.readouterr()
        for where in (desk, None):  # over HTTP, and from the store itself
            assert await type_(where, "compare", "new", "old") == 0
            lines = capsys.readouterr().out.splitlines()
            assert lines[0].split() == ["new", "150", "trajectories", "mean", "reward", "0.800"]
            assert lines[3].startswith("+0.300 [+0.")
            assert lines[4] == "new earns more."
            assert any(line.startswith("data_analysis") for line in lines)
        assert await type_(None, "compare", "new", "old", "--json") == 0
    assert json.loads(capsys.readouterr().out)["a"]["mean"] == pytest.approx(0.8)


async def test_compare_of_what_nobody_knows_is_misuse(tmp_path, store, type_):
    async with ValidationPort(tmp_path, store) as desk:
        for where, words in ((desk, ("who", "old")), (None, ("who", "old")), (None, ("a", "a"))):
            with pytest.raises(Misuse):
                await type_(where, "compare", *words)


async def test_pin_names_the_task(tmp_path, store, type_, capsys):
    async with ValidationPort(tmp_path, store) as desk:
        name = await desk.store_one()
        assert await type_(desk, "pin", name) == 0
        assert f"pin-{name}" in capsys.readouterr().out
        assert await type_(desk, "pin", name) == 0
        assert "pinned before" in capsys.readouterr().out
        words = ("--turn", "1", "--contains", "closed", "--excludes", "open", "--json")
        assert await type_(desk, "pin", name, *words) == 0
        assert json.loads(capsys.readouterr().out)["pinned"] == 2
        with pytest.raises(Misuse, match="No trajectory"):
            await type_(desk, "pin", "nothing")


def test_nothing_heavy_is_imported_for_the_options():
    code = "import sys, upswing.cli.validation; print([m for m in ('msgspec', 'rich', 'torch') if m in sys.modules])"
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"
