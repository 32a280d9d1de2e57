"""Controllers on a real bus: one writes, a killed one is followed at the same step, a dead one is outlived."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from tests.deploy.controlling import BASE, model, report
from tests.gateway.bus import nats
from tests.gateway.scripted import Scripted
from tests.support import Client, on_bus, rows, until

from upswing.app.loop import now
from upswing.contracts.traffic import Candidate, Counts, Model, Plan
from upswing.deploy.candidates import CandidateChecks
from upswing.deploy.controller import Controller
from upswing.deploy.core.policy import DeployPolicy
from upswing.deploy.core.record import read_record
from upswing.deploy.core.rows import LeadershipLost
from upswing.deploy.environment import DeployEnvironment
from upswing.deploy.in_memory import MemoryRollouts, MemoryServing
from upswing.deploy.plan_board import PlanBoard
from upswing.errors import Transient
from upswing.gateway.wiring import GatewayProcess
from upswing.infra.nats.bus import Bus
from upswing.infra.nats.permissions import OPERATOR
from upswing.infra.sql.models import Models
from upswing.infra.sql.store import open_store

pytestmark = pytest.mark.live
BACKEND = "http://127.0.0.1:1/v1"
ROOT = Path(__file__).parents[2]


def plan(fence, version=1, share=0.1, **changes):
    base, new = Model("base", BACKEND, "base"), Model("new", BACKEND, "new")
    fields = {"fence": fence, "rollout": "r", "salt": "r", "baseline": base, "version": version}
    return Plan(**fields | {"candidates": (Candidate(new, share),)} | changes)


@contextlib.asynccontextmanager
async def board(server):
    bus = await Bus.connect(server.url(OPERATOR))
    made = PlanBoard(bus)
    await made.prepare()
    try:
        yield made
    finally:
        with contextlib.suppress(OSError):  # it may be gone
            await bus.close()


async def test_a_plan_is_written_read_and_replaced_but_not_by_an_older_controller(tmp_path):
    async with nats(tmp_path) as server, board(server) as first, board(server) as second:
        assert await first.read() is None
        await first.write(plan(1))
        await second.write(plan(2))
        with pytest.raises(LeadershipLost, match="fence 2"):
            await first.write(plan(1, version=99, share=0.9))
        assert await first.read() == plan(2)
        both = await asyncio.gather(
            *(second.write(plan(2, n)) for n in range(2, 6)), return_exceptions=True
        )
        assert [each for each in both if each is not None] == []
        assert (await second.read()).version in range(2, 6)


async def test_a_plan_that_makes_no_sense_or_is_gone_is_written_anew(tmp_path):
    async with nats(tmp_path) as server, board(server) as made:
        async with on_bus(server.url(OPERATOR)) as client:
            bucket = await client.jetstream().key_value("rl_traffic")
            await bucket.put("plan", b'{"fence": "high"}')
            assert await made.read() is None
            await made.write(plan(3))
            await bucket.delete("plan")
            assert await made.read() is None
            await made.write(plan(3, version=2))
        assert (await made.read()).version == 2


async def test_counts_of_all_gateways_are_heard_as_they_are_put(tmp_path):
    async with nats(tmp_path) as server, board(server) as made:
        woken = asyncio.Event()
        following = asyncio.create_task(made.follow(woken.set))
        try:
            async with on_bus(server.url(OPERATOR)) as client:
                bucket = await client.jetstream().key_value("rl_tally")
                counts = {"r": {"m": {"requests": 3, "errors": 1}}}
                await bucket.put("gw-1", json.dumps(counts).encode())
                await bucket.put("gw-2", b"not counts")
                assert await made.tallies() == {"gw-1": {"r": {"m": Counts(3, 1)}}}
                counts["r"]["m"]["requests"] = 4
                await bucket.put("gw-1", json.dumps(counts).encode())

                async def heard():
                    return (await made.tallies())["gw-1"]["r"]["m"].requests == 4

                await until(heard, 60)
                assert woken.is_set()
        finally:
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await following


async def test_a_bus_that_is_away_is_said_so(tmp_path):
    async with nats(tmp_path) as server, board(server) as made:
        await made.write(plan(1))
        await server.stop()
        with pytest.raises(Transient):
            await made.write(plan(1, version=2))


async def test_of_two_controllers_the_newer_leads_and_the_older_stands_back(tmp_path):
    store = MemoryRollouts()

    async def prove(candidate, current):
        return report(candidate, current)

    def controller(holder, made):
        env = DeployEnvironment(store, made, MemoryServing(), now, now, uuid4)
        return Controller(env, CandidateChecks(prove), DeployPolicy(), base=BASE, holder=holder)

    async with nats(tmp_path) as server, board(server) as one, board(server) as two:
        old = controller("old", one)
        first = asyncio.create_task(old.run())
        await until(lambda: old.executor.leadership.fence == 1, 60)
        new = controller("new", two)
        second = asyncio.create_task(new.run())
        try:
            await until(lambda: new.executor.leadership.fence == 2, 60)
            await until(lambda: new.leading, 60)
            with pytest.raises(LeadershipLost):
                await old.set_traffic(BASE, 100, "ann")
            assert (await two.read()).fence == 2
        finally:
            for task in (first, second):
                task.cancel()
            await asyncio.gather(first, second, return_exceptions=True)


async def test_a_gateway_follows_the_controller_and_its_counts_come_back(tmp_path):
    store = MemoryRollouts()
    name = "agent-zero-rl-v1"
    store.registry[name] = model(1)

    async def prove(candidate, current):
        return report(candidate, current)

    async with nats(tmp_path) as server, board(server) as made, Scripted() as backend:
        serving = MemoryServing(url=f"{backend.url}/v1")
        controller = Controller(
            DeployEnvironment(store, made, serving, now, now, uuid4),
            CandidateChecks(prove),
            DeployPolicy(),
            base=BASE,
            holder="one",
        )
        running = asyncio.create_task(controller.run())
        process = GatewayProcess(
            nats_url=server.url(OPERATOR), instance="gw-1", clock=now, new_id=uuid4
        )
        url = await process.start(port=0)
        shares = process.gateway.traffic.shares
        try:
            await until(lambda: shares() == {BASE: 0.9, name: 0.1}, 60, "no first traffic")
            async with Client(url) as client:
                for number in range(30):
                    body = {"model": "m", "messages": [{"role": "user", "content": f"hi {number}"}]}
                    assert (await client("POST", "/v1/chat/completions", body))[0] == 200

            async def counted():
                told = [await controller.metrics(each) for each in (name, BASE)]
                return sum(each["requests"] for each in told) == 30

            await until(counted, 60, "the counts did not come back")
            await controller.set_traffic(name, 40, "ann")
            await until(lambda: shares() == {BASE: 0.6, name: 0.4}, 60)
            await controller.operator.rollback(name, "ann")
            await until(lambda: shares() == {BASE: 1.0}, 60, "it is not rolled back")
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await process.stop(1)


# ── killing ──────────────────────────────────────────────────────────────────────────────────────


class Process:
    def __init__(self, setup):
        self._setup = setup

    def start(self):
        script = ROOT / "tests" / "deploy" / "control_process.py"
        self.popen = subprocess.Popen(
            [sys.executable, str(script), json.dumps(self._setup)],
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
        )
        assert self.popen.stdout.readline() == b"ready\n", "it did not start"

    def kill(self):
        if self.popen.poll() is None:
            os.kill(self.popen.pid, signal.SIGKILL)
        self.popen.wait(300)
        self.popen.stdout.close()


def standing(data):
    """The newest rollout and its record, as the rows have them."""
    found = rows(data, "SELECT rollout_id, body FROM rollouts ORDER BY seq DESC LIMIT 1")
    if not found:
        return None, None
    name, body = found[0]
    (record,) = rows(data, "SELECT body FROM evidence WHERE rollout_id = ?", name) or [(None,)]
    return json.loads(body), read_record(record[0])


@pytest.mark.long
async def test_a_killed_controller_is_followed_at_the_same_step_with_its_evidence(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    store = open_store(data)
    await store.prepare()
    name = await Models(store.database).register(
        job_id="j-1",
        base_model=BASE,
        parent=None,
        snapshot="s",
        path="/p",
        card="",
        samples=1,
        final_reward=None,
        now=datetime(2026, 1, 5, tzinfo=UTC),
    )
    store.close()
    async with nats(tmp_path / "nats") as server, board(server) as made:
        setup = {"data": str(data), "nats": server.url(OPERATOR), "epoch": now().isoformat()}
        process = Process(setup)
        await asyncio.to_thread(process.start)
        try:

            async def out():
                held = await made.read()
                return held and [each.model.model_id for each in held.candidates] == [name]

            await until(out, 60, "it got no traffic")
            lead = (await made.read()).rollout
            counts = {
                lead: {name: {"requests": 30, "errors": 0}, BASE: {"requests": 300, "errors": 3}}
            }
            async with on_bus(server.url(OPERATOR)) as client:
                bucket = await client.jetstream().key_value("rl_tally")
                await bucket.put("gw-1", json.dumps(counts).encode())

            def seen():
                _, record = standing(data)
                return record and record.evidence.errors.candidate.requests == 30

            await until(seen, 60, "the counts were not worked in")
            before, shown = standing(data)
            fence = (await made.read()).fence
            process.kill()
            await asyncio.to_thread(process.start)
            held = await made.read()
            assert held.fence == fence + 1
            assert [each.share for each in held.candidates] == [0.1]
            after, kept = standing(data)
            assert (after["state"], after["canary"]["step"]) == (
                "ramping",
                before["canary"]["step"],
            )
            assert after["canary"]["since"] >= before["canary"]["since"]
            assert kept.evidence.errors == shown.evidence.errors
            left = (held.lease_until - now()).total_seconds()
            assert 0 < left <= 45
        finally:
            process.kill()
