"""The machine's clock is set by a day while our processes run, by `libfaketime` (Debian: `faketime`)."""

import asyncio
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.deploy.controlling import BASE
from tests.gateway.bus import nats
from tests.gateway.conftest import model, plan, user
from tests.gateway.process import Command
from tests.gateway.scripted import Scripted
from tests.live.test_controller import Process, board, standing
from tests.support import rows, until

from upswing.app.loop import now
from upswing.infra.nats.permissions import OPERATOR
from upswing.infra.sql.models import Models
from upswing.infra.sql.store import open_store

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(LIBRARY is None, reason="libfaketime is missing: apt-get install faketime"),
]
SPEED = 3000
"""An hour of a ramp takes about a second."""


class WallClock:
    """What the processes that we start see when they ask for the time of day."""

    def __init__(self, folder):
        self._file = folder / "faketime"
        self.set("+0")

    def set(self, offset):
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{offset}\n")
        fresh.rename(self._file)

    @property
    def env(self):
        return {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }


@pytest.fixture
def wall_clock(tmp_path):
    return WallClock(tmp_path)


def test_the_double_sets_the_time_of_day_and_nothing_else(wall_clock):
    script = (
        "import time\n"
        "from upswing.infra.clock import monotonic_seconds\n"
        "before = time.time(), monotonic_seconds(), time.monotonic()\n"
        "input(print('ready', flush=True) or '')\n"
        "print(*(now - then for now, then in zip((time.time(), monotonic_seconds(), time.monotonic()), before)))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **wall_clock.env},
    )
    assert process.stdout.readline() == "ready\n"
    wall_clock.set("+86400")
    told, _ = process.communicate("\n", 30)
    shown, passed, monotonic = map(float, told.split())
    assert shown == pytest.approx(86400, abs=60)
    assert max(passed, monotonic) < 60


@pytest.mark.long
async def test_a_ramp_takes_its_time_whatever_the_clock_shows(tmp_path, wall_clock, monkeypatch):
    data = tmp_path / "data"
    data.mkdir()
    store = open_store(data)
    await store.prepare()
    await Models(store.database).register(
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
    for name, value in wall_clock.env.items():
        monkeypatch.setenv(name, value)
    async with nats(tmp_path / "nats") as server, board(server) as made:
        process = Process(
            {
                "data": str(data),
                "nats": server.url(OPERATOR),
                "speed": SPEED,
                "epoch": now().isoformat(),
            }
        )
        try:
            await asyncio.to_thread(process.start)
            await until(lambda: (standing(data)[0] or {}).get("state") == "ramping", 60)
            for offset in ("+86400", "-86400", "+0"):
                before, began = held(data), time.monotonic()
                wall_clock.set(offset)
                await until(lambda b=before: held(data) - b >= timedelta(hours=1), 60)
                passed = timedelta(seconds=time.monotonic() - began + 2) * SPEED
                assert held(data) - before <= passed
                plan_now, rollout = await made.read(), standing(data)[0]
                assert [each.share for each in plan_now.candidates] == [0.1]
                assert (rollout["state"], rollout["canary"]["step"]) == ("ramping", 0)
        finally:
            process.kill()


def held(data):
    """How far the clock of ramps has come."""
    ((micros,),) = rows(data, "SELECT held_us FROM controller")
    return timedelta(microseconds=micros or 0)


@pytest.mark.long
@pytest.mark.parametrize("offset", ["+86400", "-86400"])
async def test_a_gateway_whose_clock_is_a_day_off_follows_a_canary(tmp_path, wall_clock, offset):
    async with nats(tmp_path / "nats") as server, Scripted() as backend, board(server) as made:
        base, new = model("base", backend.url), model("new", backend.url)
        wall_clock.set(offset)
        written = now()
        leased = plan(
            base,
            (new, 1.0),
            written=written,
            lease_seconds=3.0,
            lease_until=written + timedelta(seconds=3),
        )
        async with Command(tmp_path / "gateway", server, **wall_clock.env) as gateway:
            await made.write(leased)

            async def shares(wanted):
                return (await gateway.health())["shares"] == wanted

            await until(lambda: shares({"base": 0.0, "new": 1.0}), 60)
            assert (await gateway.chat(user("hi")))[0] == 200
            assert backend.requests[-1]["body"]["model"] == "new"
            wall_clock.set("+0")
            await until(lambda: shares({"base": 1.0}), 60)
