"""Which task next? Over HTTP, from what the current model solved; and practice proves nothing."""

import pytest
from tests.conftest import running_loop
from tests.support import Client, raw, rows, until

from upswing.config import Settings, ValidateConfig
from upswing.deploy.evidence_repository import mean_reward
from upswing.infra.sql.earnings import Earnings
from upswing.worlds.recording import SOURCE
from upswing.worlds.triage import Triage

pytestmark = pytest.mark.live
WORLD = Triage()
MINE = "upswing.worlds.triage:Triage"
SETTINGS = Settings(validate=ValidateConfig(worlds={"mine": MINE}))
EASY, HARD, FIT = (task.task_id for task in WORLD.training[:3])


def tree(number, task, share, **metadata):
    status = "completed" if share == 1 else "failed"
    return {
        "trajectory_id": f"00000000-0000-4000-8000-{number:012d}",
        "session_id": "s",
        "agent_id": f"agent-{number % 5}",
        "start_timestamp": "2026-11-15T10:00:00+00:00",
        "end_timestamp": "2026-11-15T10:00:01+00:00",
        "turns": [
            {
                "turn_id": 1,
                "timestamp": "2026-11-15T10:00:00+00:00",
                "observation": {"type": "user_message", "content": f"ticket {number}"},
                "action": {"type": "response", "raw_response": "refund"},
                "result": {"success": True, "output": "ok"},
            }
        ],
        "task_context": {"task_id": task, "instructions": "answer", "domain": "general"},
        "metadata": {
            "model": "tiny",
            "outcome": {"status": status, "share": share, "source": SOURCE},
            **metadata,
        },
    }


async def scored(client, trees):
    status, told = await client(
        "POST", "/v1/trajectories", b"\n".join(map(raw, trees)), kind="application/x-ndjson"
    )
    assert status in (200, 202), told

    async def all_scored():
        _, counts = await client("GET", "/v1/status")
        return counts["rewards"] >= len(trees)

    await until(all_scored, 60, "not all is scored")


async def test_the_loop_says_which_tasks_to_try_from_what_the_model_solved(data):
    shares = {EASY: [1.0] * 30, HARD: [0.0] * 30, FIT: [0.0, 1.0] * 15}
    flat = [(task, share) for task, some in shares.items() for share in some]
    async with (
        running_loop(data, settings=SETTINGS) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        await scored(client, [tree(n, *each) for n, each in enumerate(flat)])
        status, told = await client("GET", "/v1/curriculum?world=triage&n=1000")
        assert (status, told["model"], len(told["tasks"])) == (200, "tiny", 1000)
        known = {each["task_id"]: each for each in told["tasks"]}
        assert set(known) <= {task.task_id for task in WORLD.training}
        _, every = await client("GET", "/v1/curriculum?world=triage&n=1000")
        known |= {each["task_id"]: each for each in every["tasks"]}
        assert (known[FIT]["attempts"], known[FIT]["successes"]) == (30, 15)
        for task in {EASY, HARD} & set(known):
            assert known[task]["weight"] < 0.1 < known[FIT]["weight"]
        _, others = await client("GET", "/v1/curriculum?world=elsewhere&n=8")
        assert others["tasks"] == []
        _, code = await client("GET", "/v1/curriculum?world=os:abort&n=8")
        assert code["tasks"] == [], "a request brings no code"
        for name in ("mine", MINE):
            _, own = await client("GET", f"/v1/curriculum?world={name}&n=1000")
            assert own["tasks"]
            assert {each["task_id"] for each in own["tasks"]} <= {t.task_id for t in WORLD.training}
        for query in ("", "?world=triage&n=0", "?world=triage&n=x", "?world=triage&seed=-1"):
            assert (await client("GET", f"/v1/curriculum{query}"))[0] == 422


async def test_practice_is_marked_in_the_store_and_counts_in_no_evidence(data):
    trees = [
        tree(n, FIT, 1.0, **({"purpose": ("curriculum", "rollout")[n % 2]} if n < 6 else {}))
        for n in range(10)
    ]
    async with (
        running_loop(data) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        await scored(client, trees)
        marked = rows(data, "SELECT trajectory_id FROM trajectories WHERE practice = 1")
        assert {row[0] for row in marked} == {each["trajectory_id"] for each in trees[:6]}
        database = loop.store.database
        assert len(await Earnings(database).newest_rewards("tiny", "other")) == 4
        await database.write(lambda tx: tx.execute("UPDATE trajectories SET door = 'gateway'"))
        assert (await database.read(lambda tx: mean_reward(tx, "tiny", 100))).count == 4
        totals = {
            each.model: len(each.values) for each in await loop.rewards.model_totals(["tiny"])
        }
        assert totals == {"tiny": 4}, "the metric of a model's mean reward is a report, too"
        _, ready = await client("GET", "/api/admin/training/status")
        assert ready["readiness"]["stats"]["totalTrajectories"] == 10
