"""A whole loop with a model of ours, scraped by the real Prometheus: every panel, every rule, every question answers.

Everything is real: agents ask the gateway, `tiny` answers, a job trains it, its model becomes a canary.
"""

import asyncio
import contextlib
import itertools

import pytest

from tests.conftest import running_loop
from tests.gateway.profiles import Profiled
from tests.learn.school import School, batch
from tests.monitor.seed_queries import CONTRACT, SEEDS, described, panel_queries
from tests.monitor.stack import PATIENCE, SHORT, Stack, needs_prometheus
from tests.support import Client, cli, until
from upswing.config import (
    JudgeConfig,
    Settings,
    Surroundings,
    TrainConfig,
    TriggerConfig,
    ValidateConfig,
)
from upswing.monitor.ops.alert_rules import alert_rules
from upswing.monitor.ops.recording_rules import recording_rules
from upswing.worlds.triage import Triage

pytestmark = [pytest.mark.live, pytest.mark.learn, pytest.mark.slow, needs_prometheus]
QUICK = {"learning_rate": 3e-4, "epochs": 2, "batch_size": 16, "save_interval": 2, "holdout": 0.0}
LONG = QUICK | {"learning_rate": 1e-6, "epochs": 100_000, "save_interval": 1_000_000}
FEW = 20
SETTINGS = Settings(
    train=TrainConfig(status_seconds=0),
    trigger=TriggerConfig(min_sample=FEW, recent=FEW, schedule="off", threshold=1_000_000),
    judge=JudgeConfig(max_tokens_per_day=1_000_000),
    validate=ValidateConfig(suites=("safety_refusal",)),
)


class Agents:
    """Clients of the gateway: they ask, say how it went, and give feedback."""

    def __init__(self, running):
        self.gateway = Client(running.gateway_url, running.gateway_key)
        self.loop = Client(running.http_url, running.key)
        self.numbers = itertools.count()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        await self.gateway.__aexit__(*error)
        await self.loop.__aexit__(*error)

    async def answered(self):
        asked = {"model": "upswing", "messages": [{"role": "user", "content": "answer yes or no"}]}
        name = f"episode-{next(self.numbers)}"
        status, _ = await self.gateway(
            "POST", "/v1/chat/completions", asked, headers=[f"x-episode-id: {name}"]
        )
        return name if status == 200 else None

    async def work(self, count):
        for number in range(count):
            name = await until(self.answered, PATIENCE, "the gateway does not answer")
            status = "completed" if number % 3 else "failed"
            close = {"outcome": {"status": status, "source": "verifier"}}
            assert (await self.gateway("POST", f"/v1/episodes/{name}/close", close))[0] == 200
            kind = "thumbs_up" if number % 3 else "thumbs_down"
            said = {"episode_id": name, "type": kind, "user_id": f"user-{number % 7}"}
            status, answer = await self.gateway("POST", "/feedback", said)
            assert status in (200, 202), answer


async def stored(loop, count):
    async def fact():
        counts = await loop.store.counts()
        return counts["rewards"] >= max(count, counts["trajectories"])

    await until(fact, PATIENCE)
    await loop.rewarder.maintain()
    await loop.conditions.read(everything=True)


async def test_every_question_to_a_whole_loop_is_answered(tmp_path, data, bases):
    data.mkdir(mode=0o700)
    (data / "bases").symlink_to(bases)
    async with Profiled(name="double") as judge:
        known = Surroundings(judge_model="double", judge_key="k", judge_url=judge.url)
        async with (
            running_loop(data, settings=SETTINGS, surroundings=known, gateway_port=0) as loop,
            Agents(loop.running) as agents,
        ):
            await agents.work(1)  # the model server is up
            addresses = {
                "loop": loop.running.http_url,
                "gateways": (loop.running.gateway_url,),
                "model_servers": (loop.delivery.process.url,),
            }
            await asyncio.to_thread(cli, "ops", str(tmp_path / "written"), data=data)
            written = (tmp_path / "written" / "prometheus" / "prometheus.yml").read_text()
            for url in (addresses["loop"], *addresses["gateways"], *addresses["model_servers"]):
                assert url.removeprefix("http://") in written
            async with Stack(tmp_path / "ops", **addresses) as stack:
                await stack.answered(["sum(up) == 3"])
                await turn(loop, agents, stack)


async def turn(loop, agents, stack):
    """Work, train, roll out; and ask while it goes on."""
    waiting = {
        f"{panel}: {expr}": expr
        for panel, exprs in panel_queries(f"{SHORT.reward_window}s").items()
        for expr in exprs
    }
    waiting |= {f"guides: {question}": expr for question, expr in SEEDS.items()}
    waiting |= {rule.record: rule.record for rule in recording_rules(SHORT)}
    await agents.work(3 * FEW)
    school = School(agents.loop, Triage(), loop.folder / "bases")
    await school.record(batch(school.world, 0, 16))
    assert (await school.train("grpo", **QUICK))["status"] == "completed"
    await stored(loop, 3 * FEW)
    job = await school.ask("grpo", name="long", **LONG)
    await ask_all(stack, waiting)
    override = f"/v1/rollouts/{school.model_id}/override"

    async def overridden():
        return (await agents.loop("POST", override, {"reason": "a test"}))[0] == 200

    await until(overridden, PATIENCE)
    share = {"model_id": school.model_id, "traffic_percentage": 50}
    assert (await agents.loop("PUT", "/admin/traffic", share))[0] == 200
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while waiting:
                await agents.work(FEW)
                await stored(loop, 0)
                await ask_all(stack, waiting)
    assert not waiting, "these have no value:\n" + "\n".join(waiting)
    await agents.loop("POST", f"/training/{job}/cancel")
    await check_names(loop, stack)


async def ask_all(stack, waiting):
    """What has a value is not asked again."""
    for name, expr in list(waiting.items()):
        if await stack.has_value(expr):
            del waiting[name]


async def check_names(loop, stack):
    found = {}
    for url in (loop.running.http_url, loop.running.gateway_url, loop.delivery.process.url):
        async with Client(url) as client:
            found |= described((await client("GET", "/metrics"))[1])
    assert {name: found.get(name) for name in CONTRACT} == CONTRACT
    assert {each["health"] for each in (await stack.rules()).values()} == {"ok"}
    for rule in alert_rules(SHORT):
        await stack.query(rule.expr)
