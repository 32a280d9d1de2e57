"""No loop runs: what only reads still answers, and what cannot start says so before it makes anything."""

import asyncio
import json
import socket
import uuid
from argparse import Namespace
from datetime import UTC, datetime

import pytest
from tests.support import cli

from upswing.cli import main, parser
from upswing.cli.loop import up
from upswing.contracts import DeadLetter
from upswing.errors import Misuse
from upswing.infra.sql.decisions import Decisions
from upswing.infra.sql.keys import Keys
from upswing.infra.sql.store import open_store
from upswing.records import Decision, JudgedGroup
from upswing.reward.outcome_repository import OutcomeRepository

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
LETTER = DeadLetter(
    dead_id=uuid.UUID(int=7),
    timestamp=NOW,
    subject="/v1/trajectories",
    reason="malformed",
    detail="Input data was truncated.",
    deliveries=1,
    sha256="0" * 64,
    payload="[",
)


@pytest.fixture
def stopped(data):
    """A store with one of each, and no process that has it."""

    async def fill():
        store = open_store(data)
        await store.prepare()
        await store.add_dead_letter(LETTER, stage="collect")
        await Keys(store.database).add("k1", "ann", "agent", "up_key", NOW)
        group = JudgedGroup("2026-01-01T01:00", "s", "double", False, "It is away.", 1, 2, 0.5)
        await OutcomeRepository(store.database).record_judgement(group, NOW)
        store.close()

    data.mkdir()
    asyncio.run(fill())
    return data


READS = [
    (["dead", "list"], "Input data was truncated."),
    (["dead", "show", str(LETTER.dead_id)], "payload     ["),
    (["keys", "list"], "ann"),
    (["judge"], "It is away."),
    (["rollouts"], "No rollouts."),
    (["alerts"], "No alert is open."),
    (["alerts", "--state", "all"], "No alerts."),
    (["report", "list"], "No reports yet"),
    (["report", "daily"], "Trajectories collected: 0"),
    (["report", "weekly", "--now"], "Scorecard"),
    (["costs"], "all"),
    (["jobs"], "No jobs."),
    (["models"], "No models."),
    (["decisions"], "No decisions"),
    (["status"], "trajectories"),
]


def test_a_decision_is_found_by_the_beginning_of_its_id(stopped, capsys):
    async def fill():
        store = open_store(stopped)
        for name in ("abcd-1", "abcd-2", "efgh-1"):
            decision = Decision(name, "monitor", "note", f"About {name}.", b"{}", b"{}", NOW)
            await Decisions(store.database).record(decision)
        store.close()

    asyncio.run(fill())
    for asked in ("efgh-1", "efgh"):
        assert main(["explain", asked, "--data", str(stopped)]) == 0
        assert "About efgh-1." in capsys.readouterr().out
    for asked, sentence in (
        ("abcd", "Several decisions begin with abcd: abcd-2, abcd-1."),
        ("efg", "There is no decision efg;"),
        ("%%%%", "There is no decision %%%%;"),
    ):
        assert main(["explain", asked, "--data", str(stopped)]) == 1
        assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("name", ["x", "x/y"])
def test_a_data_directory_that_cannot_be_is_said_with_what_to_do(name, tmp_path):
    (tmp_path / "x").write_text("")
    done = cli("up", "--no-gateway", "--port", "0", data=tmp_path / name, check=False)
    assert done.returncode == 1
    sentence = (
        f"{tmp_path / 'x'} is a file where a directory is needed: name another one with --data."
    )
    assert sentence in done.stderr.decode()


@pytest.mark.parametrize(("words", "shown"), READS, ids=str)
def test_what_reads_needs_no_loop(words, shown, stopped, capsys):
    assert main([*words, "--data", str(stopped)]) == 0
    assert shown in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["dead", "list"],
        ["dead", "show", str(LETTER.dead_id)],
        ["keys", "list"],
        ["judge"],
        ["rollouts"],
    ],
)
def test_it_is_told_to_programs_too(words, stopped, capsys):
    assert main([*words, "--json", "--data", str(stopped)]) == 0
    json.loads(capsys.readouterr().out)


def test_an_id_that_is_none_is_said_to_be_none(stopped, capsys):
    assert main(["dead", "show", "nope", "--data", str(stopped)]) != 0
    assert "`upswing dead list` shows them" in capsys.readouterr().err


def starting(data, **options):
    made = parser().parse_args(["up"])
    return Namespace(**{**vars(made), "data": data, "port": 0, "gateway_port": 0, **options})


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("USE_RL_MODEL", "maybe", "say true or false"),
        ("RL_ROLLOUT_PERCENTAGE", "150", "from 0 to 100"),
        ("RL_FALLBACK_TO_BASE", "hm", "say true or false"),
        ("CANARY_INITIAL_TRAFFIC", "10", "10 % is 0.1"),
        ("REWARD_WEIGHT_EFFICIENCY", "0.9", "sum to 1.7"),
        ("RL_BASE_MODEL", "no-such-model", "is not on this machine"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_made(
    variable, value, sentence, data, monkeypatch
):
    monkeypatch.setenv(variable, value)
    with pytest.raises(Misuse, match=sentence):
        up(starting(data))
    assert not data.exists()


def test_a_port_that_is_taken_is_refused_before_anything_is_made(data):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(Misuse, match="--port"):
            up(starting(data, port=taken.getsockname()[1]))
    assert not data.exists()
