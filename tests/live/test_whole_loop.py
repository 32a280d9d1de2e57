"""The loop is closed: agents work, a better model goes out in steps, a worse one comes back."""

import asyncio
import json
import time
from datetime import UTC, datetime, timedelta

import pytest
from tests.conftest import running_loop
from tests.learn.recipes import RECIPES
from tests.live.visitors import Crowd
from tests.support import UPSWING, Client, until

from upswing.config import Settings, ValidateConfig
from upswing.worlds.triage import Triage

pytestmark = [pytest.mark.live, pytest.mark.learn]
FAST = 600
"""The clock of ramps runs so many times faster than the wall's."""
START = datetime(2026, 1, 5, 12, tzinfo=UTC)


def fast_clock():
    began = time.monotonic()
    return lambda: START + timedelta(seconds=FAST * (time.monotonic() - began))


def settings():
    return Settings(
        validate=ValidateConfig(suites=("world:triage", "safety"), safety_reach=0.2),
        deploy={"boldness": {"blue_green": False, "initial": 0.25}, "samples": 0.2},
    )


@pytest.fixture
async def house(data, bases):
    """A loop with gateway, model server and agents."""
    data.mkdir(mode=0o700)
    (data / "bases").symlink_to(bases)
    async with running_loop(data, gateway_port=0, settings=settings(), clock=fast_clock()) as loop:
        running = loop.running
        async with (
            Client(running.http_url, running.key) as admin,
            Crowd(running.gateway_url, running.gateway_key, Triage()) as crowd,
        ):
            await until(lambda: serves(crowd), 180, "the base is not served")
            yield loop, admin, crowd


async def serves(crowd):
    _, health = await crowd.client("GET", "/health")
    return health["status"] == "ok"


async def rollout(admin, model_id):
    _, told = await admin("GET", "/v1/rollouts")
    return next((each for each in told["rollouts"] if each["model_id"] == model_id), None)


async def played_until(crowd, admin, model_id, states, seconds):
    """Agents go on working until the rollout has come so far; its last sight."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        await crowd.play(crowd.world.training[:48])
        found = await rollout(admin, model_id)
        if found and found["state"] in states:
            return found
    raise AssertionError(f"{model_id}: {await rollout(admin, model_id)}")


def worthless(bases, folder):
    """A checkpoint of the base whose weights are noise: it verifies, and says nothing."""
    import torch

    from upswing.adapters.bases import resolve
    from upswing.adapters.checkpoints.manifest import Facts
    from upswing.adapters.checkpoints.writing import save
    from upswing.adapters.models import load
    from upswing.train.recipe import Recipe

    base = resolve("tiny", bases)
    model, _ = load(base)
    torch.manual_seed(0)
    with torch.no_grad():
        for weights in model.parameters():
            weights.normal_(std=0.02)
    facts = Facts("tiny", "sabotage", 1, START, Recipe())
    return save(folder, "final", model, facts=facts, base_folder=base.folder)


async def test_a_worthless_model_fails_its_validation_and_pushed_out_it_is_taken_back(
    house, bases, tmp_path
):
    loop, admin, crowd = house
    path = await asyncio.to_thread(worthless, bases, tmp_path)
    wish = {"model_id": "sabotage", "base_model": "tiny", "checkpoint_path": str(path)}
    status, answer = await admin("POST", "/admin/models", wish)
    assert status == 201, answer
    failed = await until(lambda: in_state(admin, "sabotage", "failed"), 240)
    assert failed["traffic_percentage"] == 0
    assert (await admin("PUT", "/admin/traffic", {"model_id": "sabotage", "traffic_percentage": 50}))[0] == 409  # fmt: skip
    why = {"reason": "a test of the way back"}
    status, answer = await admin("POST", "/v1/rollouts/sabotage/override", why)
    assert (status, answer["state"]) == (200, "ramping"), answer
    end = await played_until(crowd, admin, "sabotage", {"promoted", "rolled_back"}, 120)
    assert (end["state"], end["reason"]) == ("rolled_back", "performance_degradation"), end
    _, traffic = await admin("GET", "/admin/traffic")
    assert traffic["traffic"] == {"tiny": 100}
    assert "sabotage" in {model for model, _ in crowd.answers}
    (back,) = [each for each in await loop.decisions.list("deploy") if each.kind == "roll_back"]
    assert "rolled_back" in await cli(loop, "rollouts")
    assert json.loads(await cli(loop, "traffic", "--json"))["traffic"] == {"tiny": 100}
    assert "Today it would come out the same." in await cli(loop, "explain", back.decision_id)
    await the_gateway_s_admin_sees_the_same(loop, crowd)


async def cli(loop, *words):
    process = await asyncio.create_subprocess_exec(
        UPSWING, words[0], "--data", str(loop.folder), *words[1:],
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    said, complaint = await process.communicate()
    assert process.returncode == 0, complaint.decode()
    return said.decode()


async def the_gateway_s_admin_sees_the_same(loop, crowd):
    token = json.loads((loop.folder / "secrets.json").read_text())["admin_token"]
    status, found = await crowd.client("GET", "/admin/models", key=token)
    assert (status, {each["model_id"] for each in found["models"]}) == (200, {"tiny", "sabotage"})
    status, told = await crowd.client("GET", "/admin/models/current/metrics", key=token)
    assert (status, told["model_id"], told["traffic_percentage"]) == (200, "tiny", 100)
    assert told["requests"] > 0
    wish = {"model_id": "nobody", "traffic_percentage": 10}
    assert (await crowd.client("PUT", "/admin/traffic", wish, key=token))[0] == 404
    assert (await crowd.client("GET", "/admin/models", key="wrong"))[0] == 401


async def in_state(admin, model_id, state):
    _, told = await admin("GET", "/admin/models")
    found = next(each for each in told["models"] if each["model_id"] == model_id)
    return found if found["state"] == state else None


async def test_a_better_model_goes_out_in_steps_and_takes_over(house):
    loop, admin, crowd = house
    before = await crowd.play(crowd.world.training[:96], group=8)
    request = {
        "training_job_id": "first", "timestamp": START.isoformat(), "requester": "test",
        "trigger_reason": "manual",
        "training_config": {
            "algorithm": "grpo", "base_model": "tiny", "hyperparameters": {},
            "dataset": {"source": "local", "sample_size": 10_000},
        },
        "metadata": {"recipe": RECIPES["grpo"]},
    }  # fmt: skip
    await until(lambda: scored(admin, 768), 60, "not all is scored")
    assert (await admin("POST", "/training/start", request))[0] == 202

    async def ended():
        _, status = await admin("GET", "/training/first/status")
        return status if status["status"] in {"completed", "failed"} else None

    status = await until(ended, 300)
    assert status["status"] == "completed", status
    assert status["metadata"]["off_policy_share"] == 0
    model = status["metadata"]["model_id"]
    await until(lambda: rollout(admin, model), 120, "it was not validated and rolled out")
    end = await played_until(crowd, admin, model, {"promoted", "rolled_back"}, 300)
    assert end["state"] == "promoted", end
    _, traffic = await admin("GET", "/admin/traffic")
    assert (traffic["baseline"], traffic["traffic"][model]) == (model, 100)
    after = await crowd.play(crowd.world.held_out, temperature=0)
    assert after > before + 0.2
    decisions = {each.kind for each in await loop.decisions.list("deploy")}
    assert {"canary", "begin", "set_weight", "promote"} <= decisions


async def scored(admin, count):
    _, told = await admin("GET", "/api/admin/training/status")
    return told["readiness"]["stats"]["totalTrajectories"] >= count
