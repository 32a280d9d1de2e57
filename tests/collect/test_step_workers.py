"""Who redacts what comes step by step? The admission workers: the process that answers never does."""

import asyncio
import os
import random
import signal
import uuid
from datetime import UTC, datetime

import msgspec
import pytest
from prometheus_client import CollectorRegistry
from tests.support import freeze, raw

from upswing.collect.core.step_evaluation import evaluate_stepwise
from upswing.collect.intake import Intake
from upswing.collect.metrics import CollectMetrics
from upswing.collect.open_trajectories import OpenTrajectories
from upswing.collect.step_intake import StepwiseIntake
from upswing.collect.worker_pool import AdmissionPool, make_redactor
from upswing.config import Settings
from upswing.infra.sql.store import open_in_memory_store

NOW = datetime(2026, 3, 1, tzinfo=UTC)
TOKEN = "ghp_" + "a8Kd02mXqLz7YtRwP4vBn1Cs6Hj3Ue9Ofgh1"


class NoOptOuts:
    def opted_out(self, _):
        return False


def endpoint(pool, evaluate=None):
    store = open_in_memory_store()
    intake = Intake(
        store,
        NoOptOuts(),
        pool,
        CollectMetrics(CollectorRegistry()),
        clock=lambda: NOW,
        new_id=uuid.uuid4,
    )
    return store, StepwiseIntake(
        intake,
        OpenTrajectories(store.database),
        store,
        NoOptOuts(),
        evaluate or pool.stepwise,
        clock=lambda: NOW,
        new_id=uuid.uuid4,
    )


@pytest.fixture
async def pool():
    made = AdmissionPool(Settings(), make_redactor(Settings()), here=False)
    await made.start()
    yield made
    await made.stop()


def frozen(pool):
    return [child._process.pid for child in pool._children._children]


@pytest.mark.parametrize("part", ["start", "step", "end", "refused", "too long"])
async def test_nothing_is_redacted_while_the_workers_stand_still(pool, part):
    """Each request waits for a worker, and the process that took it goes on meanwhile."""
    store, door = endpoint(pool)
    await store.prepare()
    opened = await door.start(raw({"agent_id": "a"}))
    await door.step(opened.id, raw({"environmentState": {"a": "b"}}))
    calls = {
        "start": lambda: door.start(raw({"agent_id": "b"})),
        "step": lambda: door.step(opened.id, raw({"environmentState": {"a": TOKEN}})),
        "end": lambda: door.end(opened.id, b"{}"),
        "refused": lambda: door.step(opened.id, b"[]"),
        "too long": lambda: door._intake.trajectory(b" " * (9 << 20), door="http"),
    }
    for pid in frozen(pool):
        freeze(pid)
    try:
        call = asyncio.ensure_future(calls[part]())
        done, _ = await asyncio.wait({call}, timeout=1)
        assert not done
    finally:
        for pid in frozen(pool):
            os.kill(pid, signal.SIGCONT)
    outcome = await call
    assert (outcome.taken is None) == (part in {"refused", "too long"})


def pieces(seed):
    """Steps with secrets that are whole, repeated, or cut in two by the border between steps."""
    rng = random.Random(seed)
    cut = rng.randrange(5, len(TOKEN) - 3)
    texts = [TOKEN[:cut], TOKEN[cut:], f"again {TOKEN}", "mail ann" + "@example.org", "plain"]
    rng.shuffle(texts)
    return [{"environmentState": {"text": text}, "reward": 0.5} for text in texts]


@pytest.mark.parametrize("seed", range(4))
async def test_a_worker_redacts_as_the_process_itself_does(pool, seed):
    """With the raw ends of earlier steps and the placeholders carried over, request by request."""
    redactor = make_redactor(Settings())

    async def here(request):
        return evaluate_stepwise(request, redactor)

    bodies = []
    for evaluate in (here, pool.stepwise):
        store, door = endpoint(pool, evaluate)
        await store.prepare()
        start = {"agent_id": "a", "trajectory_id": str(uuid.UUID(int=seed))}
        opened = await door.start(raw(start))
        for step in pieces(seed):
            await door.step(opened.id, raw(step))
        assert (await door.end(opened.id, b"{}")).taken
        stored = await store.trajectory(opened.id)
        bodies.append(msgspec.json.decode(stored.admitted.body))
    assert bodies[0] == bodies[1]
    assert TOKEN not in str(bodies[0])
