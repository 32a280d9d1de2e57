"""How soon does training go on after `kill -9`, and what has to be done again? Five kills of one job.

The way back is measured from the kill to the next child's first step; the way of the first child,
from its start to its first step, is what loading the model takes anyway.
"""

import asyncio
import os
import shutil
import signal
import statistics
import tempfile
import time
from pathlib import Path

from bench.harness import Row
from tests.conftest import running_loop
from tests.learn.school import School, batch
from tests.support import Client, family, until

from upswing.config import Settings, TrainConfig

KILLS, SAVE = 5, 5
RECIPE = {
    "learning_rate": 3e-4,
    "epochs": 400,
    "batch_size": 16,
    "save_interval": SAVE,
    "holdout": 0.0,
}


def rows():
    home = Path(tempfile.mkdtemp(prefix="upswing-recovery-"))
    try:
        load, back, again = asyncio.run(_measured(home / "data"))
    finally:
        shutil.rmtree(home, ignore_errors=True)
    beyond = max(seconds - load for seconds in back)
    return [
        Row(
            name="kill -9 of the training child → next step, beyond the model's load, worst of 5",
            value=beyond,
            target=10,
            unit="s",
            better="lower",
            peer=f"load {load:.1f} s; kill → step {statistics.median(back):.1f} s (median)",
        ),
        Row(
            name=f"steps done again after kill -9 (save_interval {SAVE}), most of 5",
            value=max(again),
            target=SAVE + 1,
            unit="steps",
            better="lower",
            peer=", ".join(map(str, again)),
        ),
    ]


async def _measured(data):
    """(seconds to the first child's first step, seconds after each kill, steps repeated)"""
    from upswing.worlds.triage import Triage

    settings = Settings(train=TrainConfig(status_seconds=0, retry_minutes=0))
    async with (
        running_loop(data, settings=settings) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        school = School(client, Triage(), data / "bases")
        await school.record(batch(school.world, 0, 16))
        asked = time.monotonic()
        job = asyncio.create_task(school.train("grpo", seconds=600, **RECIPE))
        step = await _step_after(loop, 0, 0)
        load = time.monotonic() - asked
        back, again = [], []
        for attempt in range(1, KILLS + 1):
            step = await _step_after(loop, step + 2 * SAVE, attempt)
            [child] = [pid for pid in family(os.getpid()) if _trains(pid)]
            os.kill(child, signal.SIGKILL)
            killed = time.monotonic()
            before = step
            step = await _step_after(loop, 0, attempt + 1)
            back.append(time.monotonic() - killed)
            again.append(max(0, before - step + 1))
        await client("POST", "/training/round-1-grpo/cancel")
        await job
        return load, back, again


async def _step_after(loop, step, attempt):
    """The job's step once this attempt has passed `step`."""

    async def fact():
        jobs = await loop.jobs.active()
        status = jobs[0].status if jobs else None
        if not status or not status.progress:
            return None
        mine = status.metadata.get("attempt", 1) >= max(1, attempt)
        return (
            status.progress.current_step if mine and status.progress.current_step > step else None
        )

    return await until(fact, 120, f"training did not come past step {step}")


def _trains(pid):
    try:
        return "upswing.train.child" in Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return False
