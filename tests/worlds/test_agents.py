"""Agents act in a world through a real gateway; behind it a labelled double in a model's place."""

import asyncio
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gateway.conftest import model, plan, started
from tests.gateway.scripted import Server, completion

from upswing.worlds.agent_episodes import (
    AgentEpisode,
    AgentTurn,
    EpisodeSpec,
    UserFeedback,
    agent_name,
    draw_feedback,
    window_of_task,
)
from upswing.worlds.agent_pool import AgentEndpoint, AgentPool, AgentSettings
from upswing.worlds.agentgym_client import AgentGymClient, RemoteTasks
from upswing.worlds.market import Market
from upswing.worlds.triage import RULE, Triage
from upswing.worlds.world import Task, WorldObservation, WorldOutcome

pytestmark = pytest.mark.live
WINDOW = "2026-01-05T12:00"
WORLD = Triage(check_first=True)
TASKS = WORLD.training[:3]


class Knowing(Server):
    """A double that knows the table: it looks the product up and answers, or says `silly`."""

    def __init__(self, *, wise=lambda messages: True, refuse=lambda count: None):
        super().__init__()
        self.wise, self.refuse = wise, refuse

    async def answer(self, request, reader, writer):
        messages = request["body"]["messages"]
        if (status := self.refuse(len(self.requests))) is not None:
            soon = "retry-after-ms: 1\r\n"
            return await self.send(writer, {"error": {"message": "no"}}, status=status, extra=soon)
        product = messages[-1]["content"].rpartition(" ")[2]
        word = RULE.get(product, "check") if self.wise(messages) else "silly"
        return await self.send(writer, completion({"content": word}))


class Pages:
    """A recorder that writes into a list."""

    def __init__(self):
        self.notes, self.kept, self.said = [], [], []

    def record_turn(self, episode):
        self.notes.append(len(episode.turns))

    async def finish(self, episode):
        self.kept.append(episode)
        return episode.spec.episode_id

    async def send_feedback(self, trajectory_id, *, pleased):
        self.said.append((len(self.kept), trajectory_id, pleased))
        return True


def agent_pool(url, world=WORLD, *, recorder=None, on_result=lambda _: None, **settings):
    endpoint, chosen = AgentEndpoint(url, "key"), AgentSettings(**settings)
    return AgentPool(endpoint, world, chosen, recorder=recorder, on_result=on_result)


@dataclass(frozen=True)
class Powerless:
    """A world whose only tool is down."""

    name = "powerless"
    max_turns = 1

    def reset(self, task):
        return None

    def observe(self, state):
        return WorldObservation("answer yes or no")

    def step(self, state, reply):
        return reply

    def outcome(self, state):
        return (
            None if state is None else WorldOutcome(False, 0.0, "The lookup is down.", fault=True)
        )


@pytest.fixture
async def gateway():
    async with Knowing() as backend, started(plan(model("wise", backend.url))) as handle:
        handle.backend = backend
        yield handle


def kept_by(gateway):
    return gateway.recorder.trajectories


async def test_every_agent_does_every_task_and_those_at_one_task_form_a_group(gateway):
    async with agent_pool(gateway.url, agents=4, feedback=0) as pool:
        played = await pool.play(TASKS, window=WINDOW)
    assert {(each.task_id, each.agent) for each in played} == {
        (task.task_id, f"agent-{number}") for task in TASKS for number in (1, 2, 3, 4)
    }
    assert {(each.model, each.score, each.success, each.turns) for each in played} == {
        ("wise", 1.0, True, 2)
    }
    groups = Counter(
        (each["metadata"]["window_id"], each["metadata"]["scenario_id"])
        for each in kept_by(gateway)
    )
    assert groups == {(WINDOW, task.task_id): 4 for task in TASKS}


async def test_a_tool_s_result_is_the_next_message_of_the_same_conversation(gateway):
    async with agent_pool(gateway.url, agents=1, feedback=0) as pool:
        await pool.play(TASKS[:1], window=WINDOW)
    (kept,) = kept_by(gateway)
    task = TASKS[0]
    assert kept["task_context"]["task_id"] == task.task_id
    assert kept["task_context"]["instructions"] == task.instructions
    first, second = kept["turns"]
    assert (first["observation"]["content"], first["result"]["output"]) == (task.text, "check")
    assert second["observation"]["content"] == f"it is a {task.product}"
    assert kept["metadata"]["outcome"] == {
        "status": "completed",
        "share": 1.0,
        "source": "world",
    }


async def test_users_say_what_they_thought_and_some_say_it_after_others_have_ended():
    pages = Pages()
    foolish = Knowing(wise=lambda messages: "my red" not in messages[1]["content"])
    async with foolish as backend:
        async with agent_pool(backend.url, agents=8, feedback=0.5, recorder=pages) as pool:
            await pool.play(WORLD.training[:24], window=WINDOW)
    by_id = {done.spec.episode_id: done for done in pages.kept}
    words = {key: draw_feedback(done, 0.5, 0) for key, done in by_id.items()}
    assert {key for key, word in words.items() if word} == {key for _, key, _ in pages.said}
    assert {pleased for _, _, pleased in pages.said} == {True, False}
    assert all(by_id[key].outcome.success is pleased for _, key, pleased in pages.said)
    ended = list(by_id)
    behind = {key: when - ended.index(key) for when, key, _ in pages.said}
    late = {key for key, word in words.items() if word and word.late}
    before_the_last = {key for key in late if ended.index(key) < len(ended) - 30}
    assert len(before_the_last) > 5
    assert min(behind[key] for key in before_the_last) > 5
    assert (pool.counts.feedback, pool.counts.late) == (len(pages.said), len(late))


async def test_the_gateway_takes_the_users_words(gateway):
    async with agent_pool(gateway.url, agents=8, feedback=0.5) as pool:
        await pool.play(TASKS, window=WINDOW)
    said = gateway.recorder.feedback
    assert len(said) == pool.counts.feedback > 0
    assert {word["type"] for word in said} == {"thumbs_up"}
    ids = {each["trajectory_id"] for each in kept_by(gateway)}
    assert {word["trajectory_id"] for word in said} <= ids


async def test_an_evaluation_is_one_agent_s_and_nobody_is_asked_about_it(gateway):
    async with agent_pool(gateway.url, agents=8, feedback=1.0) as pool:
        played = await pool.play(TASKS, window=WINDOW, temperature=0.0, evaluation=True)
    assert len(played) == len(TASKS)
    assert gateway.recorder.feedback == []
    for each in kept_by(gateway):
        assert each["metadata"]["is_evaluation"] is True
        assert each["metadata"]["temperature"] == 0


async def test_a_fault_of_the_world_is_told_and_no_agent_is_blamed(gateway):
    async with agent_pool(gateway.url, Powerless(), agents=2, feedback=1.0) as pool:
        played = await pool.play([Task("lookup-1", "")], window=WINDOW)
    assert [(each.fault, each.success) for each in played] == [(True, False)] * 2
    assert [each["metadata"]["infra_error"] for each in kept_by(gateway)] == [True, True]
    assert gateway.recorder.feedback == []


async def test_a_server_that_is_busy_is_asked_again():
    pages = Pages()
    busy = Knowing(refuse=lambda count: "429 Too Many" if count % 2 else None)
    async with (
        busy as backend,
        agent_pool(backend.url, agents=1, recorder=pages) as pool,
    ):
        (played,) = await pool.play(TASKS[:1], window=WINDOW)
    assert (played.score, played.turns, played.fault) == (1.0, 2, False)
    assert len(backend.requests) == 4
    assert pages.notes == [0, 1, 2]


async def test_requests_that_go_on_failing_are_counted_and_the_crowd_lives():
    pages, told = Pages(), []
    async with Knowing(refuse=lambda _: "503 Away") as backend:
        async with agent_pool(backend.url, agents=2, recorder=pages, on_result=told.append) as pool:
            played = await pool.play(TASKS, window=WINDOW)
    assert played == sorted(told, key=lambda each: (each.task_id, each.agent))
    assert [(each.model, each.fault, each.turns) for each in played] == [(None, True, 0)] * 6
    assert pool.counts.troubles == {"503": 6}
    assert [done.outcome.fault for done in pages.kept] == [True] * 6


async def test_an_episode_that_breaks_off_is_kept_as_an_infrastructure_fault():
    backend = Knowing(refuse=lambda count: "400 Bad" if count == 2 else None)
    async with backend, started(plan(model("wise", backend.url))) as gateway:
        async with agent_pool(gateway.url, agents=1, feedback=1.0) as pool:
            (played,) = await pool.play(TASKS[:1], window=WINDOW)
    assert (played.fault, played.turns, pool.counts.troubles) == (True, 1, {"400": 1})
    (kept,) = gateway.recorder.trajectories
    assert kept["metadata"]["infra_error"] is True
    assert gateway.recorder.feedback == []


async def test_what_the_gateway_does_not_keep_is_counted():
    async with Knowing() as backend, started(plan(model("wise", backend.url)), records=False) as it:
        async with agent_pool(it.url, agents=2, feedback=1.0) as pool:
            played = await pool.play(TASKS[:1], window=WINDOW)
    assert [each.score for each in played] == [1.0, 1.0]
    assert (pool.counts.unrecorded, pool.counts.feedback) == (2, 0)


async def test_a_crowd_that_is_stopped_begins_nothing_more():
    pages = Pages()
    async with Knowing() as backend:
        options = {"at_once": 2, "recorder": pages, "on_result": lambda _: pool.stop()}
        async with agent_pool(backend.url, agents=4, **options) as pool:
            played = await pool.play(WORLD.training[:24], window=WINDOW)
    assert 1 <= len(played) == len(pages.kept) <= 2


async def test_a_world_elsewhere_that_is_away_is_a_fault_too(gateway):
    gone = RemoteTasks(AgentGymClient("http://127.0.0.1:9"), count=1)
    async with agent_pool(gateway.url, gone, agents=2) as pool:
        played = await pool.play(gone.training, window=WINDOW)
    assert [each.fault for each in played] == [True, True]
    assert pool.counts.troubles == {"world": 2}


async def test_a_crowd_can_be_cancelled_while_it_plays():
    began = asyncio.Event()

    class Slow(Knowing):
        async def answer(self, request, reader, writer):
            began.set()
            await asyncio.Event().wait()

    async with Slow() as backend, agent_pool(backend.url, recorder=Pages()) as pool:
        playing = asyncio.create_task(pool.play(TASKS, window=WINDOW))
        await began.wait()
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing


# ── values ───────────────────────────────────────────────────────────────────────────────────────


def done(agent="agent-1", task="t-1", outcome=WorldOutcome(True, 1.0, ""), **options):  # noqa: B008
    return AgentEpisode(EpisodeSpec("e", agent, Task(task, ""), WINDOW, **options), outcome=outcome)


@given(agent=st.integers(1, 50), task=st.integers(0, 500), seed=st.integers(0, 99))
def test_the_same_seed_makes_the_same_users_speak(agent, task, seed):
    one, two = done(f"agent-{agent}", f"t-{task}"), done(f"agent-{agent}", f"t-{task}")
    assert draw_feedback(one, 0.25, seed) == draw_feedback(two, 0.25, seed)
    assert draw_feedback(one, 0.0, seed) is None
    assert draw_feedback(one, 1.0, seed) is not None


def test_about_the_share_that_was_asked_for_says_something_and_a_third_of_it_late():
    words = [
        draw_feedback(done(f"agent-{a}", f"t-{t}"), 0.25, 7) for a in range(8) for t in range(250)
    ]
    said = [word for word in words if word]
    assert 0.2 < len(said) / len(words) < 0.3
    assert 0.25 < sum(word.late for word in said) / len(said) < 0.42


@pytest.mark.parametrize(
    ("success", "mood", "pleased"),
    [
        (True, None, True),
        (False, None, False),
        (True, "corrected", False),
        (True, "pleased", True),
        (False, "gave_up", False),
    ],
)
def test_the_user_s_own_mood_comes_before_the_result(success, mood, pleased):
    word = draw_feedback(done(outcome=WorldOutcome(success, float(success), "", mood=mood)), 1.0, 0)
    assert isinstance(word, UserFeedback)
    assert word.pleased is pleased


def test_an_episode_that_two_models_answered_is_nobody_s():
    turns = [AgentTurn(WorldObservation("a"), "b", name) for name in ("one", "two")]
    spec = done().spec
    assert AgentEpisode(spec, turns=tuple(turns[:1])).model == "one"
    assert AgentEpisode(spec, turns=tuple(turns)).model is None


def test_a_task_with_a_window_of_its_own_is_done_in_that_one():
    market = Market()
    assert window_of_task(market.training[5], WINDOW) == market.training[5].window_id != WINDOW
    assert window_of_task(Task("t", ""), WINDOW) == WINDOW


def test_an_agent_s_name_carries_its_temperament():
    shift = Market().shift(3, "contrarian")
    assert agent_name("agent", shift, 2) == "agent-contrarian-2"


@pytest.mark.parametrize("share", [0.1, 0.5])
async def test_while_two_models_share_the_traffic_one_of_them_has_a_group_at_every_task(share):
    async with Knowing() as one, Knowing() as two:
        both = plan(model("old", one.url), (model("new", two.url), share))
        async with (
            started(both) as gateway,
            agent_pool(gateway.url, agents=5, feedback=0) as pool,
        ):
            played = await pool.play(WORLD.training[:30], window=WINDOW)
    groups = Counter((each.task_id, each.model) for each in played)
    most = [max(groups[t.task_id, m] for m in ("old", "new")) for t in WORLD.training[:30]]
    assert min(most) >= 4
    assert len({each.model for each in played}) == 2
    assert len(played) <= 7 * 30
    agents = Counter((each.task_id, each.agent) for each in played)
    assert set(agents.values()) == {1}


async def test_in_a_window_of_the_market_one_model_has_five_agents():
    market = Market()
    async with Knowing() as one, Knowing() as two:
        both = plan(model("old", one.url), (model("new", two.url), 0.5))
        async with (
            started(both) as gateway,
            agent_pool(gateway.url, market, agents=5, feedback=0) as pool,
        ):
            played = await pool.play(market.training[:12], window=WINDOW)
    groups = Counter((each.task_id, each.model) for each in played)
    most = [max(groups[t.task_id, m] for m in ("old", "new")) for t in market.training[:12]]
    assert min(most) >= 5
