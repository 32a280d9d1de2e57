"""An emergency, end to end: a model at 50 % runs out of memory on long inputs, is rolled back, and the loop says why.

Detected, rolled back at once, logged with all figures, looked into, and reported with what to do: nobody asks for any
of it. Gateway, bus, store and controller are the real ones; the model servers are labelled doubles, of which the
candidate's really runs out of memory (`narrow_server.py`).
"""

import asyncio
import contextlib
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import running_loop
from tests.gateway.profiles import Profile, Profiled
from tests.support import Client, cli, rows, until

from upswing.config import ServeConfig, Settings, Surroundings, TrainConfig, ValidateConfig
from upswing.redact import Redactor

pytestmark = pytest.mark.live
ROOT = Path(__file__).parents[2]
BASE, NEW = "org/base", "agent-zero-v2.4"
LONG, SHORT = 9000, 300
"""Characters: a long one takes 1.3 GB at the candidate's server, which has 300 MB."""


@contextlib.contextmanager
def narrow_server():
    command = [sys.executable, "-m", "tests.live.narrow_server"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait(60)
        process.stdout.close()


def settings(url):
    quick = ValidateConfig(suites=("data_analysis",), seeds=1)  # an operator overrides it anyhow
    patient = {"limits": {"hard_share": 0.95}}  # the test of errors decides, as in the scenario
    return Settings(
        serve=ServeConfig(url=url),
        train=TrainConfig(base_model=BASE),
        validate=quick,
        deploy=patient,
    )


async def answers(gateway):
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    return (await gateway("POST", "/v1/chat/completions", body))[0] == 200


async def work(gateway, number, chance):
    """One episode of an agent: most prompts are short, some are long."""
    size = LONG if chance.random() < 0.25 else SHORT
    text = "word " * (size // 5) + "answer approve or deny"
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": text}],
        "user": f"u{number % 20}",
    }
    headers = (f"X-Episode-Id: e{number}", f"X-Agent-Id: a{number % 4}")
    status, _ = await gateway("POST", "/v1/chat/completions", body, headers=headers)
    assert status == 200, "the baseline answers where the candidate fails"
    await gateway("POST", f"/v1/episodes/e{number}/close", {"outcome": True})


async def rollout_of(client):
    _, told = await client("GET", "/v1/rollouts")
    return next((each for each in told["rollouts"] if each["model_id"] == NEW), None)


async def deployed(client, url):
    """The candidate gets half of the traffic, by an operator's word."""
    made = {"model_id": NEW, "backend": url, "name": "narrow"}
    status, told = await client("POST", "/admin/models", made)
    assert status == 201, told

    async def overridden():
        reason = {"reason": "The scenario's model is deployed."}
        return (await client("POST", f"/v1/rollouts/{NEW}/override", reason))[0] == 200

    await until(overridden, 300, "it was not deployed")
    half = {"model_id": NEW, "traffic_percentage": 50}
    status, told = await client("PUT", "/admin/traffic", half)
    assert (status, told["traffic"][NEW]) == (200, 50.0), told


async def until_rolled_back(gateway, client):
    """Agents work until the model is withdrawn."""
    chance, number = random.Random(4), 0
    while (await rollout_of(client))["state"] != "rolled_back":
        assert number < 2000, "it was never rolled back"
        batch = [work(gateway, number + each, chance) for each in range(8)]
        await asyncio.gather(*batch)
        number += len(batch)
    return number


async def analysed(client):
    async def made():
        _, told = await client("GET", f"/v1/analysis/{NEW}")
        found = told.get("analyses") or []
        return found and found[0]["findings"] and found[0]

    return await until(made, 180, "the rollback was not looked into")


async def test_out_of_memory_on_long_inputs_is_rolled_back_and_explained(data):
    async with Profiled(Profile(), BASE) as good:
        with narrow_server() as narrow:
            options = {
                "settings": settings(good.url),
                "surroundings": Surroundings(train_here=False),
                "redactor": Redactor(),
                "gateway_port": 0,
            }
            async with running_loop(data, **options) as loop:
                running = loop.running
                async with (
                    Client(running.http_url, running.key) as client,
                    Client(running.gateway_url, running.gateway_key) as gateway,
                ):
                    await until(lambda: answers(gateway), 180, "the gateway did not answer")
                    await deployed(client, narrow)
                    await until_rolled_back(gateway, client)
                    rollout = await rollout_of(client)
                    assert rollout["reason"] == "high_error_rate"
                    _, traffic = await client("GET", "/admin/traffic")
                    assert traffic["traffic"] == {BASE: 100.0}
                    analysis = await analysed(client)
                    await check_report(analysis, client)
    check_command(data)


async def check_report(analysis, client):
    assert (analysis["model_id"], analysis["baseline_id"]) == (NEW, BASE)
    assert (analysis["source"], analysis["label"]) == ("rollback", "error")
    assert analysis["symptoms"][0]["kind"] == "out_of_memory"
    first = analysis["findings"][0]
    assert first["feature"] == "prompt length"
    assert first["elsewhere"]["failed"] == first["baseline_there"]["failed"] == 0
    assert "out of memory at prompt length" in analysis["summary"]
    assert "gradient checkpointing" in analysis["remedies"][0]["text"]
    status, told = await client("GET", f"/v1/trajectories/{first['examples'][0]}")
    assert (status, told["metadata"]["model"]) == (200, NEW)


def check_command(data):
    """The incident and the analysis are in the store for good, and a command tells of them."""
    sql = "SELECT incident_id, metrics FROM incidents WHERE reason = 'high_error_rate'"
    ((incident, metrics),) = rows(data, sql)
    assert {"figures", "verdict", "evidence"} <= json.loads(metrics).keys()
    ((inputs,),) = rows(data, "SELECT inputs FROM decisions WHERE stage = 'monitor'")
    assert json.loads(inputs)["incident_id"] == incident
    said = cli("analyse", NEW, data=data).stdout.decode()
    assert "They have in common: out of memory at prompt length ≥" in said
    assert "gradient checkpointing" in said
