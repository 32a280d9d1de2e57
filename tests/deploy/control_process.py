"""A controller in a process of its own, on a real store and a real bus: python control_process.py SETUP.

Its models are served by nobody, and every one of them is proved better by 0.08. With `episodes` it brings
its own traffic: so many episodes in a second, recorded, scored and counted under the plan that holds.
"""

import asyncio
import json
import random
import sys
from datetime import datetime, timedelta
from pathlib import Path
from uuid import uuid4

import msgspec
from tests.deploy.controlling import BASE, report
from tests.deploy.scoring import scored
from tests.support import until

from upswing.app.loop import now
from upswing.contracts.traffic import Counts
from upswing.deploy.candidates import CandidateChecks
from upswing.deploy.controller import Controller
from upswing.deploy.core.policy import DeployPolicy
from upswing.deploy.environment import DeployEnvironment
from upswing.deploy.in_memory import MemoryServing
from upswing.deploy.plan_board import PlanBoard
from upswing.deploy.repository import RolloutRepository
from upswing.infra.nats.bus import Bus
from upswing.infra.sql.store import open_store


class RampClock:
    """Runs so many times as fast as the wall's, since a moment of the past.

    With `most` it stands still until its controller leads, and goes on by so many seconds in one life.
    """

    def __init__(self, setup):
        self._speed, self._epoch = setup.get("speed", 1), datetime.fromisoformat(setup["epoch"])
        self._most = timedelta(seconds=setup["most"]) if "most" in setup else None
        self._born, self._leads = now(), None

    def lead(self):
        self._leads = now()

    def __call__(self):
        if self._most is None:
            return self._epoch + (now() - self._epoch) * self._speed
        led = (now() - self._leads) * self._speed if self._leads else timedelta(0)
        return self._epoch + (self._born - self._epoch) * self._speed + min(led, self._most)


async def prove(candidate, current):
    return report(candidate, current)


async def traffic(store, board, bus, controller, each_second):
    """Episodes under the plan that holds; both models are equally good."""
    chance, instance, counts = random.Random(), f"gw-{uuid4()}", {}
    bucket = await bus.js.key_value("rl_tally")
    while True:
        plan = await board.read()
        shares = {each.model.model_id: each.share for each in plan.candidates}
        shares[plan.baseline.model_id] = 1 - sum(shares.values())
        for name in chance.choices(list(shares), list(shares.values()), k=each_second // 5):
            total = min(1, max(0, chance.gauss(0.6, 0.1)))
            await scored(store, model=name, total=total, gateway={"rollout": plan.rollout})
            told = counts.setdefault(plan.rollout, {}).setdefault(name, Counts())
            counts[plan.rollout][name] = Counts(told.requests + 1, 0, 0, 0.0)
        await bucket.put(instance, msgspec.json.encode(counts))
        controller.wake()
        await asyncio.sleep(0.2)


async def main(setup):
    store = open_store(Path(setup["data"]))
    await store.prepare()
    bus = await Bus.connect(setup["nats"])
    board = PlanBoard(bus)
    await board.prepare()
    clock = RampClock(setup)
    env = DeployEnvironment(
        RolloutRepository(store.database), board, MemoryServing(), clock, now, uuid4
    )
    policy = DeployPolicy(samples=setup.get("samples", 1.0))
    controller = Controller(env, CandidateChecks(prove), policy, base=BASE, holder=str(uuid4()))
    async with asyncio.TaskGroup() as group:
        group.create_task(controller.run())
        await until(lambda: controller.leading, 60)
        clock.lead()
        print("ready", flush=True)
        if episodes := setup.get("episodes"):
            group.create_task(traffic(store, board, bus, controller, episodes))


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
