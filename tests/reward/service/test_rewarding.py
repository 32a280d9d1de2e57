"""The reward stage on a real loop: at once, late, refused, judged, erased."""

import asyncio
import json
import uuid
from datetime import UTC, datetime, timedelta

import nats
import pytest
from tests.conftest import running_loop
from tests.support import Client, cli, raw, trajectory, until

from upswing.contracts import Feedback, Reward, Trajectory, decode, encode
from upswing.contracts.examples import EXAMPLES
from upswing.contracts.outcome import EXAMPLE as OUTCOME

pytestmark = pytest.mark.live


def word(trajectory_id, kind="thumbs_up", **more):
    made = {
        "feedback_id": str(uuid.uuid4()),
        "timestamp": "2026-01-01T00:00:00Z",
        "trajectory_id": trajectory_id,
        "user_id": "user-4",
        "type": kind,
    }
    return made | more


async def newest(loop, trajectory_id, revision=1):
    async def there():
        found = await loop.rewards.newest(trajectory_id)
        return found if found and found.metadata["revision"] >= revision else None

    return await until(there, what=f"no revision {revision}")


SCENARIO = {
    "metadata": {
        "outcome": {"status": "completed"},
        "linter_results": {"pylint": 9.0},
    },
    "task_context": {"instructions": "implement binary search in Python"},
}


def five_turns(**changes):
    made = trajectory(**{**SCENARIO, **changes})
    first = made["turns"][0]
    made["turns"] = [
        {
            **first,
            "turn_id": n,
            "timestamp": f"2025-12-08T13:00:0{n}Z",
            "action": {"type": "tool_call", "tool_name": "python", "tool_args": {"step": n}},
        }
        for n in range(1, 6)
    ]
    return made


async def test_the_routine_scenario_comes_out_term_by_term(loop, client, data):
    """Components 1.0, 0.85, 0.90 and 0.5; the efficiency from 5 turns where 6 are usual."""
    from upswing.reward.core.baseline import TrailingWindow
    from upswing.reward.core.stats import TaskStatistics

    # A history in which six turns are usual and one fewer is worth 0.85: a spread of 5/7.
    usual = TaskStatistics(
        TrailingWindow(numbers=[6 - 5 / 7, 6 + 5 / 7] * 50), TrailingWindow(), TrailingWindow()
    )
    await loop.rewarder.run_once()
    loop.rewarder._history.statistics._kinds[("coding", "low")] = usual
    document = five_turns()
    assert (await client.send(document))[0] == 202
    reward = await newest(loop, document["trajectory_id"])
    scores = {name: one.score for name, one in reward.reward_components.items()}
    assert scores == pytest.approx(
        {"task_completion": 1.0, "efficiency": 0.85, "code_quality": 0.9, "user_feedback": 0.5}
    )
    assert reward.metadata["raw_total"] == pytest.approx(0.83)
    assert reward.total_reward == pytest.approx(0.83)
    shown = await asyncio.to_thread(cli, "reward", "show", document["trajectory_id"], data=data)
    for term in ("0.400 × 1.000", "0.200 × 0.850", "0.150 × 0.900", "0.250 × 0.500", "total 0.83"):
        assert term in shown.stdout.decode()
    told = await asyncio.to_thread(
        cli, "reward", "show", document["trajectory_id"], "--json", data=data
    )
    assert decode(Reward, told.stdout.strip()) == reward


async def test_a_reward_is_published_and_counted(loop, client):
    document = trajectory()
    bus = await nats.connect(loop.running.nats_url)
    heard = asyncio.get_running_loop().create_future()

    async def hear(message):
        if not heard.done():
            heard.set_result(message.data)

    await bus.subscribe("agent.rl.reward.v1", cb=hear)
    await bus.flush()
    await client.send(document)
    reward = decode(Reward, await asyncio.wait_for(heard, 300))
    await bus.close()
    assert str(reward.trajectory_id) == document["trajectory_id"]
    _, metrics = await client("GET", "/metrics")
    assert "agent_rl_trajectory_reward_count 1.0" in metrics
    _, status = await client("GET", "/v1/status")
    assert status["rewards"] == 1


async def test_late_feedback_makes_the_next_revision_and_the_same_again_changes_nothing(
    loop, client
):
    document = trajectory()
    await client.send(document)
    first = await newest(loop, document["trajectory_id"])
    up = word(document["trajectory_id"])
    assert (await client("POST", "/v1/feedback", up))[0] == 202
    second = await newest(loop, document["trajectory_id"], 2)
    assert second.reward_components["user_feedback"].score == 1.0
    assert second.metadata["raw_total"] > first.metadata["raw_total"]
    assert second.reward_id != first.reward_id
    assert (await client("POST", "/v1/feedback", up))[1]["result"] == "known"
    again = word(document["trajectory_id"], timestamp="2026-01-02T00:00:00Z")
    await client("POST", "/v1/feedback", again)
    mind = word(document["trajectory_id"], "rating", rating=2, timestamp="2026-01-03T00:00:00Z")
    await client("POST", "/v1/feedback", mind)
    third = await newest(loop, document["trajectory_id"], 3)
    assert third.reward_components["user_feedback"].score == 0.25
    assert third.metadata["revision"] == 3


async def test_feedback_that_comes_before_its_trajectory_waits_for_it(loop, client):
    document = trajectory()
    await client("POST", "/v1/feedback", word(document["trajectory_id"]))
    await client.send(document)
    reward = await newest(loop, document["trajectory_id"])
    assert reward.reward_components["user_feedback"].score == 1.0
    assert reward.metadata["revision"] == 1


async def test_feedback_on_somebody_elses_work_is_refused(loop, client):
    document = trajectory()
    await client.send(document)
    _, made = await client("POST", "/v1/keys", {"name": "agent", "scope": "agent"})
    foreign = word(document["trajectory_id"], user_id="somebody-else")
    status, answer = await client("POST", "/v1/feedback", foreign, key=made["key"])
    assert (status, answer["error"]) == (403, "not_yours")
    assert (await client("POST", "/v1/feedback", foreign))[
        0
    ] == 202  # the operator's key is trusted
    early = word(str(uuid.uuid4()), user_id="somebody-else")
    assert (await client("POST", "/v1/feedback", early, key=made["key"]))[0] == 202
    late = trajectory(trajectory_id=early["trajectory_id"])
    await client.send(late)
    reward = await newest(loop, late["trajectory_id"])
    assert reward.reward_components["user_feedback"].score == 0.5


async def test_six_stars_are_no_rating(loop, client):
    status, answer = await client(
        "POST", "/v1/feedback", word(str(uuid.uuid4()), "rating", rating=6)
    )
    assert (status, answer["error"]) == (422, "schema")


async def test_every_replica_and_every_restart_computes_the_same(data):
    documents = [
        five_turns(metadata={"outcome": {"status": s}}) for s in ("completed", "failed") * 25
    ]
    async with (
        running_loop(data) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        for document in documents:
            await client.send(document)
        await newest(loop, documents[-1]["trajectory_id"])
        memory = loop.rewarder._history
        await loop.rewarder._load_history()
        assert loop.rewarder._history.windows == memory.windows
        assert loop.rewarder._history.statistics == memory.statistics
    async with (
        running_loop(data) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        probe = five_turns()
        await client.send(probe)
        reward = await newest(loop, probe["trajectory_id"])
        assert loop.rewarder._history.windows["task_completion"].count == 51
    assert reward.normalization.method == "z-score"
    assert reward.reward_components["task_completion"].raw_data["normalised"] == pytest.approx(0.75)


async def test_weights_that_do_not_sum_to_one_refuse_to_start(data):
    done = cli("up", "--port", "0", data=data, env={"REWARD_WEIGHT_EFFICIENCY": "0.5"}, check=False)
    assert done.returncode == 1
    assert b"sum to 1.3" in done.stderr


async def test_without_a_judge_nobody_judges_and_the_worlds_numbers_score_the_group(data):
    now = datetime(2025, 12, 8, 13, 30, tzinfo=UTC)
    async with running_loop(data, clock=lambda: now) as loop:
        async with Client(loop.running.http_url, loop.running.key) as client:
            for place, pnl in enumerate((500, -200, 100, -50, 800)):
                document = trajectory(
                    agent_id=f"agent-{place}",
                    metadata={"environment": {"pnl": pnl}, "scenario_id": "market"},
                )
                await client.send(document)
                await newest(loop, document["trajectory_id"])
            now += timedelta(hours=2)
            assert await loop.group_judge.judge_ended_windows() == 0
            (data / "upswing.toml").write_text("[trigger]\ndays = 3650\n")
            checked = await asyncio.to_thread(
                cli, "windows", "check", "--rows", "--min-windows", "1", data=data, check=False
            )
            text = checked.stdout.decode()
            assert checked.returncode == 0
            assert "+$800.00" in text
            assert "scored by verified outcomes" in text
            assert "READY FOR TRAINING!" in text
            few = await asyncio.to_thread(
                cli, "windows", "check", "--min-agents", "6", "--json", data=data, check=False
            )
            assert few.returncode == 1
            assert json.loads(few.stdout)["readiness"]["ready"] is False
            loops = await asyncio.to_thread(cli, "windows", "check", data=data, check=False)
            assert loops.returncode == 1, "what the loop itself asks for is more than one group"
            assert b"Not ready: 5 of 100 trajectories; 1 of 32 groups" in loops.stdout


async def test_every_outcome_says_who_said_it(loop, client):
    said = {
        "world": {"outcome": {"status": "partial", "share": 0.3, "source": "world"}},
        "agent": {"outcome": "completed"},
        "tests": {"outcome": "completed", "test_results": {"passed": 1, "failed": 1}},
    }
    for who, metadata in said.items():
        document = trajectory(metadata=metadata)
        await client.send(document)
        reward = await newest(loop, document["trajectory_id"])
        assert reward.metadata["outcome"]["said_by"] == who


async def test_outcomes_come_by_http_and_from_files(loop, client, data, tmp_path):
    assert (await client("POST", "/v1/outcomes", OUTCOME))[1]["result"] == "stored"
    assert (await client("POST", "/v1/outcomes", OUTCOME))[1]["result"] == "known"
    assert (await client("POST", "/v1/outcomes", {"source": "x"}))[0] == 422
    told = OUTCOME | {"source": "desk", "events": [{"text": "bob@example.org resigned"}]}
    assert (await client("POST", "/v1/outcomes", told))[0] == 202
    kept = await loop.reward_stage.outcomes.for_window(OUTCOME["window_id"])
    assert "<email-1> resigned" in str(kept)
    assert "bob@" not in str(kept)
    file = tmp_path / "outcomes.jsonl"
    window = datetime.now(UTC).strftime("%Y-%m-%dT%H:00")  # noqa: TID251 - the command asks the clock
    file.write_bytes(raw(OUTCOME | {"window_id": window}) + b"\n")
    done = await asyncio.to_thread(
        cli, "outcomes", "sync", "--hours", "24", "--file", str(file), "--json", data=data
    )
    assert json.loads(done.stdout) == {"windows": 25, "stored": 1}
    assert len(await loop.reward_stage.outcomes.for_window(window)) == 1


async def test_erasing_a_user_erases_the_rewards_too(loop, client):
    document = trajectory()
    await client.send(document)
    await newest(loop, document["trajectory_id"])
    await until(lambda: outbox_empty(loop))
    await client("DELETE", "/v1/users/user-4/data")
    assert await loop.rewards.newest(document["trajectory_id"]) is None
    assert (await loop.store.counts())["rewards"] == 0
    state = (await loop.bus.js.stream_info("RL_REWARDS")).state
    assert state.messages == 0


async def outbox_empty(loop):
    return not await loop.store.outbox()


async def test_the_examples_of_the_contracts_can_be_rewarded(loop, client):
    await client.send(EXAMPLES[Trajectory])
    reward = await newest(loop, EXAMPLES[Trajectory]["trajectory_id"])
    assert decode(Reward, encode(reward)) == reward
    assert EXAMPLES[Feedback]["trajectory_id"] == str(reward.trajectory_id)
