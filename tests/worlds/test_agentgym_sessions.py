"""Sessions are many, bounded and forgotten; answers of foreign servers are read with care."""

import json
from datetime import timedelta

import pytest

from upswing.api.worlds import WorldRoutes
from upswing.cli import main
from upswing.errors import Misuse, Transient
from upswing.worlds.agentgym import parse_reply, session_address
from upswing.worlds.agentgym_sessions import SessionLimits, SessionsFull, WorldSessions
from upswing.worlds.known import WORLDS, known_worlds
from upswing.worlds.triage import Triage
from upswing.worlds.world import UNFINISHED, Task, WorldObservation


def test_who_is_idle_is_dropped_and_who_plays_is_not():
    sessions = WorldSessions(Triage(), SessionLimits(sessions=2, idle=timedelta(seconds=60)))
    sessions.create(0, 0.0)
    sessions.create(1, 1.0)
    sessions.current(0, 50.0)
    with pytest.raises(SessionsFull):
        sessions.create(2, 60.0)
    assert sessions.create(2, 62.0).id == 2
    assert sessions.current(0, 62.0).info.task.task_id == Triage().training[0].task_id
    with pytest.raises(Misuse, match="no session 1"):
        sessions.current(1, 62.0)
    assert len(sessions) == 2


def test_a_task_that_does_not_end_fails_when_the_turns_are_over():
    sessions = WorldSessions(Endless())
    sessions.create(0, 0.0)
    assert not sessions.step(0, "on", 0.0).done
    ended = sessions.step(0, "on", 0.0)
    assert (ended.done, ended.reward, ended.info.outcome) == (True, 0.0, UNFINISHED)


class Endless:
    """A world in which nothing ever happens."""

    name, max_turns = "endless", 2
    training = (Task("endless-0", ""),)
    held_out = ()

    def reset(self, task):
        return 0

    def observe(self, state):
        return WorldObservation(f"hour {state}")

    def step(self, state, reply):
        return state + 1

    def outcome(self, state):
        return None


def test_a_reward_is_a_share_of_the_best_one():
    def score(reward, best):
        told = {"observation": "", "reward": 0, "score": reward, "done": True}
        return parse_reply(told, best).outcome.score

    assert [score(reward, 100) for reward in (-100, 0, 25, 100, 130)] == [0, 0, 0.25, 1, 1]


@pytest.mark.parametrize("told", [None, True, "0", [], {}, {"id": None}, {"error": "no"}])
def test_what_is_no_session_is_not_taken_for_one(told):
    with pytest.raises(Transient):
        session_address(told)


def test_every_route_needs_no_key_and_has_its_limit():
    for route in WorldRoutes(WorldSessions(Triage()), lambda: 0.0).routes():
        assert not route.scopes
        assert route.method == "GET" or route.max_body == 65536


def test_every_world_is_known_by_the_name_it_has():
    assert {name: world.name for name, world in known_worlds().items()} == {n: n for n in WORLDS}


def test_the_worlds_are_listed(capsys):
    assert main(["worlds", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["world"] for one in listed] == list(WORLDS)
    assert main(["worlds"]) == 0
    assert "held out" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "which world"),
        (["atlantis"], "no world 'atlantis'"),
    ],
)
def test_what_cannot_be_served_is_a_sentence(words, sentence, capsys):
    assert main(["worlds", "serve", *words]) == 1
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--port", "70000"], ["--sessions", "0"]])
def test_a_number_out_of_range_is_refused_by_its_option(words, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["worlds", "serve", "triage", *words])
    assert words[0] in capsys.readouterr().err
