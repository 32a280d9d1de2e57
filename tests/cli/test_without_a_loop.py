"""No loop runs: what only reads still answers, and what cannot start says so before it makes anything."""

import asyncio
import json
import socket
import uuid
from argparse import Namespace
from datetime import UTC, datetime

import pytest

from upswing.adapters.sql.keys import Keys
from upswing.adapters.sql.outcomes import Outcomes
from upswing.adapters.sql.store import open_store
from upswing.cli import main, parser
from upswing.cli.loop import up
from upswing.contracts import DeadLetter
from upswing.errors import Misuse
from upswing.ports import JudgedGroup

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
LETTER = DeadLetter(
    dead_id=uuid.UUID(int=7), timestamp=NOW, subject="/v1/trajectories", reason="malformed",
    detail="Input data was truncated.", deliveries=1, sha256="0" * 64, payload="[",
)  # fmt: skip


@pytest.fixture
def stopped(data):
    """A store with one of each, and no process that has it."""

    async def fill():
        store = open_store(data)
        await store.prepare()
        await store.bury(LETTER, stage="collect")
        await Keys(store.database).add("k1", "ann", "agent", "up_key", NOW)
        group = JudgedGroup("2026-01-01T01:00", "s", "double", False, "It is away.", 1, 2, 0.5)
        await Outcomes(store.database).judged(group, NOW)
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
    (["jobs"], "No jobs."),
    (["models"], "No models."),
    (["decisions"], "No decisions"),
    (["status"], "trajectories"),
]


@pytest.mark.parametrize(("words", "shown"), READS, ids=str)
def test_what_reads_needs_no_loop(words, shown, stopped, capsys):
    assert main([*words, "--data", str(stopped)]) == 0
    assert shown in capsys.readouterr().out


@pytest.mark.parametrize("words", [["dead", "list"], ["dead", "show", str(LETTER.dead_id)], ["keys", "list"], ["judge"], ["rollouts"]])  # fmt: skip
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
