"""An episode goes the way of every trajectory: decoded, admitted, rewarded, grouped."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
import pytest
from tests.worlds.small import policy

from upswing.collect.core.admit import AdmissionLimits
from upswing.collect.core.evaluate import MessageKind, Passed, evaluate
from upswing.contracts import decode_trajectory
from upswing.dataset.sample import build_sample
from upswing.records import StoredTrajectory
from upswing.redact import Redactor
from upswing.reward.core.assess import RewardHistory, RewardRules, assess
from upswing.reward.core.weights import component_weights
from upswing.worlds.recording import to_trajectories, to_trajectory
from upswing.worlds.sampler import play_episodes
from upswing.worlds.triage import Triage
from upswing.worlds.world import WorldOutcome

AT = datetime(2025, 12, 8, 13, tzinfo=UTC)
SPACE = UUID("6f1c2f0e-6f0e-4b43-8f43-0d1d7c6f2a10")
GOOD, BAD = WorldOutcome(True, 1.0, "Well done."), WorldOutcome(False, 0.0, "Not so.")


@pytest.fixture(scope="module", params=[False, True], ids=["one turn", "two turns"])
def episodes(request):
    world = Triage(0, check_first=request.param)
    return play_episodes(world, world.training[:6], policy(), group=8, seed=1)


def recorded(episodes, **more):
    return to_trajectories(
        episodes, **({"namespace": SPACE, "window_id": "2025-12-08T13:00", "started": AT} | more)
    )


def admitted(tree):
    verdict = evaluate(
        MessageKind.TRAJECTORY, msgspec.json.encode(tree), Redactor(), AdmissionLimits()
    )
    assert isinstance(verdict, Passed)
    return verdict


def with_outcome(tree, episode, outcome):
    return to_trajectory(
        replace(episode, outcome=outcome),
        trajectory_id=tree["trajectory_id"],
        agent_id=tree["agent_id"],
        session_id=tree["session_id"],
        window_id=tree["metadata"]["window_id"],
        started=AT,
        ended=AT + timedelta(seconds=1),
    )


def scored(tree, memory):
    """By the reward stage, beside what it remembers."""
    known = admitted(tree).admitted
    row = StoredTrajectory(1, "http", AT, known)
    rules = RewardRules(component_weights({}))
    return assess(row, decode_trajectory(known.body), [], None, memory, rules, now=AT)


def test_an_episode_is_a_trajectory_of_the_contract(episodes):
    for tree, episode in zip(recorded(episodes), episodes, strict=True):
        decoded = decode_trajectory(msgspec.json.encode(tree))
        assert decoded.task_context["task_id"] == episode.task.task_id
        assert decoded.metadata["scenario_id"] == episode.task.task_id
        assert [turn.action.raw_response for turn in decoded.turns] == [
            step.reply for step in episode.steps
        ]


def test_ids_follow_from_what_is_recorded(episodes):
    ids = [tree["trajectory_id"] for tree in recorded(episodes)]
    assert len(set(ids)) == len(ids)
    assert ids == [tree["trajectory_id"] for tree in recorded(episodes)]
    later = recorded(episodes, window_id="2025-12-08T14:00")
    assert not set(ids) & {tree["trajectory_id"] for tree in later}


def test_admission_leaves_words_and_tokens_as_they_are(episodes):
    for tree in recorded(episodes):
        verdict = admitted(tree)
        assert verdict.findings == 0
        body = msgspec.json.decode(verdict.admitted.body)
        sent = msgspec.json.decode(msgspec.json.encode(tree))
        assert body["metadata"] == sent["metadata"]
        assert body["task_context"] == sent["task_context"]
        for kept, turn in zip(body["turns"], sent["turns"], strict=True):
            assert kept["observation"] == turn["observation"]
            assert kept["action"] == turn["action"]


def test_the_window_and_the_task_make_a_group_of_different_agents(episodes):
    groups = {}
    for tree in recorded(episodes):
        known = admitted(tree).admitted
        groups.setdefault((known.window_id, known.scenario_id), []).append(known)
    assert {window for window, _ in groups} == {"2025-12-08T13:00"}
    assert {scenario for _, scenario in groups} == {one.task.task_id for one in episodes}
    assert all(len({known.agent_id for known in each}) == 8 for each in groups.values())
    assert {known.domain for each in groups.values() for known in each} == {"general"}


def test_tokens_are_what_the_model_read_and_said(episodes):
    for tree, episode in zip(recorded(episodes), episodes, strict=True):
        known = admitted(tree).admitted
        sample = build_sample(
            msgspec.json.decode(known.body),
            reward=0.0,
            raw_total=0.0,
            window_id=known.window_id,
            scenario_id=known.scenario_id,
        )
        assert sample.on_policy
        assert [id_ for turn in sample.turns for id_ in turn.token_ids] == list(episode.ids)
        for turn, step in zip(sample.turns, episode.steps, strict=True):
            assert turn.token_ids[-len(turn.logprobs) :] == list(step.completion_ids)
            assert turn.logprobs == list(step.logprobs)


def test_a_good_episode_is_rewarded_clearly_better_than_a_bad_one(episodes):
    memory = RewardHistory()
    for number, (tree, episode) in enumerate(zip(recorded(episodes), episodes, strict=True)):
        good, bad = (scored(with_outcome(tree, episode, how), memory) for how in (GOOD, BAD))
        for one, completion in ((good, 1.0), (bad, 0.0)):
            assert one.reward.reward_components["task_completion"].score == completion
        assert good.reward.total_reward > bad.reward.total_reward + 0.2
        assert good.raw["raw_total"] > bad.raw["raw_total"] + 0.4
        memory.add(good if number % 4 == 0 else bad)


def test_partial_work_is_worth_something_between(episodes):
    tree = recorded(episodes)[0]
    half = with_outcome(tree, episodes[0], WorldOutcome(False, 0.5, "Half of it."))
    assert half["metadata"]["outcome"] == {
        "status": "partial",
        "share": 0.5,
        "source": "world",
    }
    found = scored(half, RewardHistory()).reward
    assert found.reward_components["task_completion"].score == 0.75


def test_the_answer_is_nowhere_in_the_record():
    world = Triage(0)
    (episode,) = play_episodes(world, world.training[:1], policy(), greedy=True)
    silent = replace(episode, steps=(replace(episode.steps[0], reply="nothing"),))
    tree = recorded([silent])[0]
    tree["task_context"].pop("instructions")
    assert episode.task.answer not in msgspec.json.encode(tree).decode()
