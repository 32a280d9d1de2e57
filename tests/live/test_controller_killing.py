"""`kill -9` of a controller, fifty times at each of its steps: same step, evidence kept, no shorter dwell."""

import asyncio
import random
import time
from datetime import UTC, datetime, timedelta

import pytest
from tests.deploy.controlling import BASE
from tests.gateway.bus import nats
from tests.live.test_controller import Process, board, standing
from tests.support import rows, until

from upswing.app.loop import now
from upswing.infra.nats.permissions import OPERATOR
from upswing.infra.sql.models import Models
from upswing.infra.sql.store import open_store

pytestmark = [pytest.mark.live, pytest.mark.slow]
KILLS = 50
SPEED = 1500
"""The hour of the first step takes two and a half seconds."""
FIRST_SECONDS = 3600.0
"""Of the first step, as long as nobody has begun it."""


async def test_fifty_kills_at_each_step_change_nothing_but_the_time_it_takes(tmp_path, trials):
    data, chance = tmp_path / "data", random.Random(5)
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
        setup = {
            "data": str(data),
            "nats": server.url(OPERATOR),
            "speed": SPEED,
            "episodes": 200,
            "epoch": now().isoformat(),
            "samples": 0.1,
        }
        lives, kills, before, seen = {}, {}, None, 0
        process = Process(setup)
        while True:
            setup["most"] = seconds_of_a_life(before, kills)
            born = time.monotonic()
            await asyncio.to_thread(process.start)
            try:
                rollout, record = standing(data)
                if before is not None and before["state"] == "ramping":
                    assert rollout["state"] in {"ramping", "promoted"}
                    if rollout["state"] == "ramping":
                        assert rollout["canary"]["step"] in {
                            before["canary"]["step"],
                            before["canary"]["step"] + 1,
                        }
                        assert record.evidence.rewards.candidates >= seen
                        held = await made.read()
                        assert [each.share for each in held.candidates] == [rollout["share"]]
                step = step_of(standing(data)[0])
                if step is None or kills.get(step, 0) >= KILLS:
                    await until(
                        lambda s=step: is_beyond(standing(data)[0], s), 600, f"stuck at {step}"
                    )
                else:
                    await asyncio.sleep(chance.random() * 0.7)  # a moment that nobody chose
            finally:
                process.kill()
            step = step_of(before) if before else 0
            lives[step] = lives.get(step, 0.0) + time.monotonic() - born
            before, record = standing(data)
            if before and before["state"] == "promoted":
                break
            assert before is None or before["state"] == "ramping", before
            kills[step_of(before)] = kills.get(step_of(before), 0) + 1
            trials.add()
            seen = record.evidence.rewards.candidates if record and record.evidence else 0
        assert all(kills.get(step, 0) >= KILLS for step in range(3)), kills
        for step, share in enumerate(before["steps"]):
            dwell = _seconds(share["dwell"]) / SPEED
            # Whoever lived at a step lived there for its time at least, all lives together.
            assert lives.get(step, 0.0) + lives.get(step - 1, 0.0) >= dwell
    told = rows(data, "SELECT kind, COUNT(*) FROM decisions GROUP BY kind")
    assert dict(told)["promote"] == 1
    assert dict(told)["set_weight"] == 2
    assert rows(data, "SELECT state FROM models WHERE model_id = ?", name) == [("deployed",)]


def seconds_of_a_life(rollout, kills):
    """By how much the clock of ramps goes on: however slow the machine, a step outlasts its kills, and not the next one."""
    step = step_of(rollout)
    dwell = FIRST_SECONDS if step is None else _seconds(rollout["steps"][step]["dwell"])
    return dwell if kills.get(step, 0) >= KILLS else dwell / (1.5 * KILLS)


def is_beyond(rollout, step):
    """It ramps at another step, or is over; a rollout that is queued is not begun."""
    if rollout is None or rollout["state"] == "queued":
        return False
    return rollout["state"] != "ramping" or step_of(rollout) != step


def step_of(rollout):
    return rollout["canary"]["step"] if rollout and rollout["canary"] else None


def _seconds(text):
    import msgspec

    return msgspec.convert(text, timedelta).total_seconds()
