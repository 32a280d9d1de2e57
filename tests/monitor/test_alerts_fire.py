"""Every alert rule on the real Prometheus and Alertmanager: its cause is made, a webhook hears of it, and that it is over."""

import contextlib
import os
import signal
import subprocess

import pytest

from tests.gateway.profiles import Profiled
from tests.monitor.scene import BASE, Scene
from tests.monitor.seed_queries import CONTRACT, SEEDS, described
from tests.monitor.stack import SHORT, Stack, needs_prometheus
from upswing.monitor.ops.alert_rules import alert_rules
from upswing.monitor.ops.recording_rules import recording_rules

pytestmark = [pytest.mark.live, needs_prometheus]
DISK = "DiskNearlyFull"


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 200 MB, where one may be mounted; None elsewhere."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=200m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        yield None
        return
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


class Watch:
    """What the webhook has heard."""

    def __init__(self, stack):
        self._stack = stack

    async def firing(self, *names):
        for name in names:
            await self._stack.receiver.heard(name, "firing")

    async def resolved(self, *names):
        for name in names:
            await self._stack.receiver.heard(name, "resolved")


@contextlib.asynccontextmanager
async def scene_with_stack(tmp_path, data):
    """The loop, its doubles, and Prometheus that has seen it once."""
    scene = Scene(tmp_path, data, tokens=10)
    await scene.bus.start()
    async with contextlib.AsyncExitStack() as exits:
        exits.push_async_callback(scene.bus.stop)
        scene.server = await exits.enter_async_context(Profiled(name=BASE))
        scene.judge = await exits.enter_async_context(Profiled(name="double"))
        await scene.start()
        exits.push_async_callback(scene.stop)
        stack = Stack(tmp_path / "ops", loop=scene.url, gateways=(scene.running.gateway_url,))
        await exits.enter_async_context(stack)
        await stack.answered(['up{job="upswing"} == 1', 'up{job="upswing-gateway"} == 1'])
        yield scene, stack


@pytest.mark.long
async def test_every_alert_fires_when_its_cause_is_made_and_resolves_when_it_is_gone(
    tmp_path, small_disk
):
    data = (small_disk or tmp_path) / "data"
    async with scene_with_stack(tmp_path, data) as (scene, stack):
        watch = Watch(stack)
        await go_wrong(scene, watch)
        await ask_everything(scene, stack)
        await break_parts(scene, watch, disk=bool(small_disk))
        await restart(scene, watch)
        left_out = set() if small_disk else {DISK}
        for name in {rule.name for rule in alert_rules(SHORT)} - left_out:
            assert stack.receiver.states(name)[0] == "firing", name
            assert "resolved" in stack.receiver.states(name), name
    if not small_disk:
        pytest.skip(f"all but {DISK}: no disk may be mounted here")


async def go_wrong(scene, watch):
    """What agents, training, the judge and models can do wrong."""
    await scene.fail_training()
    await scene.reject_model()
    await scene.drift(1.0)
    await scene.refuse_messages()
    await scene.drift(0.0)
    await scene.spend_judge_budget()
    await watch.firing("TrainingFailing", "CollectionErrors", "RewardDrift", "JudgeBudgetSpent")
    await watch.firing("BusMayLoseMessages", "ValidationFailed")
    await scene.roll_back()
    await watch.firing("ModelRolledBack")


async def ask_everything(scene, stack):
    """The contract's names with their labels, the guides' queries, and the rules' own."""
    await scene.loop.rewarder.maintain()
    found = described((await scene.client("GET", "/metrics"))[1])
    found |= described((await scene.admin("GET", "/metrics", key=None))[1])
    assert {name: found.get(name) for name in CONTRACT} == CONTRACT
    await stack.answered(SEEDS.values())
    await stack.answered(rule.record for rule in recording_rules(SHORT))
    assert {each["health"] for each in (await stack.rules()).values()} == {"ok"}


async def break_parts(scene, watch, *, disk):
    """The gateway hangs, the disk is full, the bus and the model server are gone; then all is well again."""
    await scene.drift(1.0)
    await scene.succeed_training()
    os.kill(scene.gateway_pid(), signal.SIGSTOP)  # its supervisor finds out, and starts another
    if disk:
        scene.fill_disk()
    await scene.bus.stop()
    await scene.server.__aexit__()
    await watch.firing("GatewayUnreachable", "BusUnreachable", "ModelServerUnreachable")
    if disk:
        await watch.firing(DISK)
        scene.free_disk()
    await scene.bus.start("sync_interval: always")
    await watch.resolved("BusUnreachable", "BusMayLoseMessages", "CollectionErrors", "RewardDrift")
    await watch.resolved("ValidationFailed", "ModelRolledBack", "TrainingFailing")
    await watch.resolved("GatewayUnreachable", *([DISK] if disk else []))


async def restart(scene, watch):
    """The loop is down, and comes back with a model server and a judge that may cost what it likes."""
    await scene.stop()
    await watch.firing("TrainingServiceUnreachable")
    async with Profiled(name=BASE) as scene.server:
        scene.tokens = None
        await scene.start()
        await watch.resolved(
            "TrainingServiceUnreachable", "JudgeBudgetSpent", "ModelServerUnreachable"
        )
