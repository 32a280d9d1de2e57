"""A judge behind a real endpoint on a whole loop; and what training may see."""

import asyncio
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from tests.conftest import running_loop
from tests.support import Client, cli, trajectory, until

from upswing.config import JudgeConfig, Settings, Surroundings
from upswing.contracts.outcome import EXAMPLE as OUTCOME
from upswing.dataset.sample import build_sample

sys.path.insert(0, str(Path(__file__).parents[1] / "groups"))
from judge_doubles import Endpoint

NOW = datetime(2025, 12, 8, 15, tzinfo=UTC)
WINDOW = "2025-12-08T13:00"
TOKEN = "planted-" + "7f3a91c4"


async def judged_loop(data, endpoint, **judge):
    return running_loop(
        data,
        clock=lambda: NOW,
        settings=Settings(judge=JudgeConfig(**judge)),
        surroundings=Surroundings(
            judge_model="double", judge_key="sk-right", judge_url=endpoint.url
        ),
    )


async def fill(loop, client, count=5):
    ids = []
    for place in range(count):
        document = trajectory(
            agent_id=f"agent-{place}",
            metadata={
                "ground_truth": {"answer": f"{TOKEN}-{place}"},
                "environment": {"pnl": place},
                "scenario_id": WINDOW,
            },
        )
        await client.send(document)
        ids.append(document["trajectory_id"])

    async def scored():
        return (await loop.store.counts())["rewards"] >= count

    await until(scored)
    return ids


@pytest.mark.live
async def test_a_model_judges_an_ended_window_once_with_the_truth_before_it(data):
    async with Endpoint() as endpoint, await judged_loop(data, endpoint) as loop:
        async with Client(loop.running.http_url, loop.running.key) as client:
            await client(
                "POST", "/v1/outcomes", OUTCOME | {"window_id": WINDOW, "scenario_id": WINDOW}
            )
            ids = await fill(loop, client)
            assert await loop.group_judge.judge_ended_windows() == 1
            assert await loop.group_judge.judge_ended_windows() == 0
            assert len(endpoint.requests) == 1
            asked = json.dumps(endpoint.requests[0])
            assert all(f"{TOKEN}-{place}" in asked for place in range(5))
            assert "SEC investigation announced" in asked
            for trajectory_id in ids:
                reward = await loop.rewards.newest(trajectory_id)
                assert reward.metadata["judge"]["name"] == "double"
                assert reward.metadata["evaluation_method"] == "model-based"
                assert reward.reward_components["judge"].weight == 0.0
            _, told = await client("GET", "/v1/judgements")
            assert told["groups"][0]["judged"] is True
            assert told["groups"][0]["prompt_tokens"] > 0


@pytest.mark.live
async def test_erasing_a_user_erases_what_the_judge_said_of_their_work(data):
    async with Endpoint() as endpoint, await judged_loop(data, endpoint) as loop:
        async with Client(loop.running.http_url, loop.running.key) as client:
            await fill(loop, client)
            await loop.group_judge.judge_ended_windows()
            assert list((data / "judge").rglob("*.json"))
            await client("DELETE", "/v1/users/user-4/data")
            assert not list((data / "judge").rglob("*.json"))


@pytest.mark.live
async def test_a_group_whose_judge_fails_is_kept_unjudged_with_the_reason(data):
    prose = {"choices": [{"message": {"content": "I would say they were all rather good."}}]}
    async with Endpoint(*[(200, prose)] * 9) as endpoint, await judged_loop(data, endpoint) as loop:
        async with Client(loop.running.http_url, loop.running.key) as client:
            ids = await fill(loop, client)
            await loop.group_judge.judge_ended_windows()
            reward = await loop.rewards.newest(ids[0])
            assert "judge" not in reward.reward_components
            _, told = await client("GET", "/v1/judgements")
            assert told["groups"][0]["judged"] is False
            assert told["groups"][0]["reason"]
            _, metrics = await client("GET", "/metrics")
            assert 'upswing_reward_trouble_total{what="judge"} 1.0' in metrics
            assert 'upswing_judge_groups{state="waiting"} 1.0' in metrics
            shown = await asyncio.to_thread(cli, "judge", data=data)
            assert b"not judged, 1 try, again at" in shown.stdout
            done = await asyncio.to_thread(cli, "judge", "retry", data=data)
            assert b"1 group will be asked about again" in done.stdout
            endpoint.script.clear()
            assert await loop.group_judge.judge_ended_windows() == 1
            _, told = await client("GET", "/v1/judgements")
            assert told["groups"][0]["judged"] is True


@pytest.mark.live
async def test_a_spent_budget_leaves_groups_unjudged(data):
    async with Endpoint() as endpoint:
        async with await judged_loop(data, endpoint, max_tokens_per_day=10) as loop:
            async with Client(loop.running.http_url, loop.running.key) as client:
                await fill(loop, client)
                await loop.group_judge.judge_ended_windows()
                _, told = await client("GET", "/v1/judgements")
    assert "budget" in told["groups"][0]["reason"]
    assert not endpoint.requests


def test_what_the_judge_knows_is_in_nothing_that_training_reads():
    body = trajectory(
        metadata={
            "ground_truth": {"answer": TOKEN},
            "tokens": [{"turn_id": 1, "ids": [1, 2], "logprobs": [-0.1, -0.2]}],
        }
    )
    sample = build_sample(body, reward=0.9, raw_total=0.8, window_id=WINDOW, scenario_id=WINDOW)
    seen = msgspec.json.encode(sample).decode()
    assert TOKEN in json.dumps(body)
    assert TOKEN not in seen
    assert sample.on_policy
    assert body["turns"][0]["observation"]["content"] in seen
