"""A loop with everything around it that can go wrong, and hands that make it go wrong.

The loop, its gateway and its bus are real. The model server and the judge are labelled doubles over real HTTP.
"""

import asyncio
import os
from datetime import timedelta

import pytest

from tests.live.test_foreign_bus import listening
from tests.live.test_training_failures import command
from tests.monitor.stack import PATIENCE, free_port
from tests.support import Client, family, small, trajectory, until
from tests.train.test_jobs import submit
from upswing.app.loop import ListenAddress, Loop
from upswing.config import (
    JudgeConfig,
    ServeConfig,
    Settings,
    Surroundings,
    TrainConfig,
    TriggerConfig,
    ValidateConfig,
)
from upswing.infra.nats.server import find_server_binary
from upswing.train.core.job_states import with_state

BASE = "org/theirs"
WINDOW = "2025-12-08T13:00"
FEW = 20
"""Rewards of each side that make a drift in this loop."""


class ForeignBus:
    """A nats-server of somebody's own, always on the same ports."""

    def __init__(self, folder):
        folder.mkdir()
        self.folder, self.port, self.monitor_port = folder, free_port(), free_port()
        self.url, self.monitor = (
            f"nats://127.0.0.1:{self.port}",
            f"http://127.0.0.1:{self.monitor_port}",
        )

    async def start(self, options=""):
        config = self.folder / "nats.conf"
        config.write_text(
            f'listen: "127.0.0.1:{self.port}"\nhttp: "127.0.0.1:{self.monitor_port}"\n'
            f'jetstream {{ store_dir: "{self.folder}/js"\n{options} }}\n'
        )
        self.process = await asyncio.create_subprocess_exec(
            find_server_binary(),
            "-c",
            str(config),
            "--ports_file_dir",
            str(self.folder),
            stderr=asyncio.subprocess.DEVNULL,
        )
        ports = self.folder / f"nats-server_{self.process.pid}.ports"
        await until(lambda: listening(ports), PATIENCE)

    async def stop(self):
        self.process.terminate()
        await self.process.wait()


class Scene:
    """A loop with everything that can go wrong around it."""

    def __init__(self, folder, data, *, tokens):
        self.data, self.tokens = data, tokens
        self.bus = ForeignBus(folder / "bus")
        self.port, self.gateway_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"

    async def start(self):
        settings = Settings(
            serve=ServeConfig(url=self.server.url),
            train=TrainConfig(base_model=BASE, retry_minutes=0),
            trigger=TriggerConfig(min_sample=FEW, recent=FEW, schedule="off"),
            judge=JudgeConfig(max_tokens_per_day=self.tokens),
            validate=ValidateConfig(suites=("safety_refusal",), floors={"safety_refusal": 0.9}),
        )
        surroundings = Surroundings(
            nats_url=self.bus.url,
            nats_monitor=self.bus.monitor,
            judge_model="double",
            judge_key="sk-right",
            judge_url=self.judge.url,
        )
        address = ListenAddress(port=self.port, gateway_port=self.gateway_port)
        self.loop = Loop(self.data, settings, surroundings, address)
        self.running = await self.loop.start()
        self.client = Client(self.running.http_url, self.running.key)
        self.admin = Client(self.running.gateway_url, self.running.admin_token)

    async def stop(self):
        for client in (self.client, self.admin):
            await client.__aexit__()
        await self.loop.stop()

    # ── causes ───────────────────────────────────────────────────────────────────────────────────

    async def send(self, count, outcome):
        for _ in range(count):
            assert (await self.client.send(small("x", outcome=outcome, model=BASE)))[0] == 202

    async def scored(self):
        async def fact():
            counts = await self.loop.store.counts()
            return counts["rewards"] >= counts["trajectories"]

        await until(fact, PATIENCE)

    async def refuse_messages(self):
        for _ in range(FEW):
            assert (await self.client("POST", "/v1/trajectories", {"not": "one"}))[0] == 422

    async def drift(self, outcome):
        await self.send(FEW, outcome)
        await self.scored()
        await self.loop.conditions.read(everything=True)

    async def spend_judge_budget(self):
        for place in range(5):
            metadata = {"environment": {"pnl": place}, "scenario_id": WINDOW}
            await self.client.send(trajectory(agent_id=f"agent-{place}", metadata=metadata))
        await self.scored()
        await self.loop.group_judge.judge_ended_windows()

    async def fail_training(self):
        """Three jobs for which there is nothing to learn from."""
        for _ in range(3):
            asked = {"algorithm": "grpo", "base_model": "tiny"}
            status, answer = await self.client("POST", "/training/start", asked)
            assert status == 202, answer
            job = answer["training_job_id"]
            await until(lambda job=job: self._ended(job), PATIENCE)

    async def _ended(self, job):
        job = await self.loop.jobs.get(job)
        return job.state == "failed"

    async def succeed_training(self):
        """A worker elsewhere, a double of one, ends a job well."""
        jobs, now = self.loop.jobs, self.loop.now()
        for number in range(100):
            await submit(jobs, f"elsewhere-{number}", now=now)
            job = await jobs.claim("elsewhere", now, timedelta(minutes=1))
            if job is not None:  # else our own worker was quicker
                done = with_state(job.status, "completed", now)
                later = now + timedelta(seconds=1)
                await jobs.finish(job.job_id, "completed", done, b"[]", later, worker="elsewhere")
                return
        pytest.fail("our own worker was quicker a hundred times")

    async def reject_model(self):
        """A model that is no better than the base, and refuses nothing: its validation fails."""
        hosted = {"model_id": "hosted", "backend": self.server.url, "name": BASE}

        async def registered():
            return (await self.admin("POST", "/admin/models", hosted))[0] == 201

        await until(registered, PATIENCE, "the controller does not lead")

    async def roll_back(self):
        """It is rolled out all the same, by an operator's override, and taken back."""

        async def overridden():
            path = "/v1/rollouts/hosted/override"
            status, _ = await self.client("POST", path, {"reason": "a test"})
            return status == 200

        await until(overridden, PATIENCE)
        assert (await self.client("POST", "/v1/rollback"))[1]["state"] == "rolled_back"

    def gateway_pid(self):
        return next(pid for pid in family(os.getpid()) if "upswing.gateway.main" in command(pid))

    def fill_disk(self):
        """All but 40 MB."""
        free = os.statvfs(self.data).f_bavail * os.statvfs(self.data).f_frsize
        with (self.data.parent / "full").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, free - 40_000_000)

    def free_disk(self):
        (self.data.parent / "full").unlink()
