"""The controller: what goes out, what goes on, what comes back?

    trained model ─▶ proved ─▶ strategy ─▶ its turn ─▶ first traffic
                                                │
             rewards, counts, complaints ─▶ look ─▶ next step, hold, promotion, way back ─▶ watch

One controller leads; whoever starts last does. What it decides is a row before it is traffic, so another
one goes on at the same step, with the same evidence, whenever this one dies. The others stand by until
the leader has not been heard of for a lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from upswing.deploy import told
from upswing.deploy.arriving_service import Arrivals, Prove, ReadsLogged, Unchanged
from upswing.deploy.ledger_service import Ledger, Unserved, World
from upswing.deploy.loading_service import Loads
from upswing.deploy.looking_service import Looker
from upswing.deploy.metrics import DeployMetrics
from upswing.deploy.moves import standby
from upswing.deploy.operator_service import Operator
from upswing.deploy.policy import DeployPolicy
from upswing.deploy.record import Record
from upswing.deploy.rollout import Rollout
from upswing.deploy.standing import decoded
from upswing.errors import Damaged, Denied, Misuse, Rejected, Transient
from upswing.ports_rollout import LEASE, Foreign, Leader, NewModel, Superseded
from upswing.together import together

log = logging.getLogger(__name__)
LOOK_EVERY = timedelta(minutes=5)
"""By the clock of ramps; whatever is stored or counted wakes the controller at once."""
RENEW_SECONDS = 10.0
"""Between two writes of a leased plan, in real time: four may be lost."""
_BREATH_SECONDS = 0.2
"""Between two looks, however much is stored."""
_CANARY_SECONDS, _WATCH_SECONDS = 0.5, 5.0
"""Real time between two glances, while a canary is out and while none is."""
_RELEASE_SECONDS = 3.0
"""For a server to forget a model; one whose requests still end is asked again at the next look."""
_POLL_SECONDS = 1.0
_START_SECONDS = 0.5, 15.0
"""Between two tries to have the baseline served: first, and at most; doubled in between."""
_ADMIT_SECONDS = 5.0


class Controller:
    """Everything that can be asked of it; every dependency is handed in."""

    def __init__(
        self, world: World, prove: Prove, policy: DeployPolicy, *, base: str, holder: str,
        metrics: DeployMetrics | None = None, unchanged: Unchanged | None = None,
        logged: ReadsLogged | None = None,
    ) -> None:  # fmt: skip
        self.ledger = Ledger(world, policy, base, holder, metrics)
        self._loads = Loads(self.ledger, self.wake)
        self._looker = Looker(self.ledger, self._loads)
        self._arrivals = Arrivals(self.ledger, self._loads, prove, unchanged, logged)
        self._operator = Operator(self.ledger, self._loads, self._arrivals)
        self.approve, self.pause = self._operator.approve, self._operator.pause
        self.resume, self.rollback = self._operator.resume, self._operator.rollback
        self.override, self.revalidate = self._operator.override, self._operator.revalidate
        self._woken, self._trained = asyncio.Event(), asyncio.Event()
        self._looked: datetime | None = None
        self._renewed: datetime | None = None
        self._glanced: datetime | None = None
        self._stands_by = False
        self._heard: tuple[Leader, datetime] | None = None
        """The leader as it was last seen, and since when, by our clock."""
        self._foreign = ""
        """What was said of another loop on this bus."""
        self._idle: set[str] = set()
        self._pause = self._next_start = 0.0
        """Between the last two tries to start, and when the next may be, by the loop's own time."""

    # ── life ─────────────────────────────────────────────────────────────────────────────────

    def wake(self) -> None:
        """Something was stored or counted."""
        self._woken.set()

    def wake_trained(self) -> None:
        """A job has ended: there may be a new model."""
        self._trained.set()

    @property
    def leading(self) -> bool:
        """Has it taken the fence, and written its plan?"""
        return bool(self.ledger.fence) and self._renewed is not None

    async def run(self) -> None:
        """Lead, or stand by, for ever."""
        try:
            await together(self._lead(), self._admit(), self._hear())
        finally:
            self._loads.close()

    async def start(self) -> None:
        """Have the baseline served; take the fence; serve and judge the others; write the plan.

        Whoever led before goes on until the baseline is served here.
        """
        while not await self._took_over():
            log.info("another model is the baseline now", extra={"action": "take_over"})
        self._looked, self._renewed = self.ledger.world.clock(), self.ledger.world.wall()
        self._stands_by, self._foreign = False, ""

    async def _took_over(self) -> bool:
        """False: the baseline is another one than was served, so that one is to be loaded first."""
        ledger = self.ledger
        await ledger.first_on_the_bus()
        why = await self._refused_baseline()
        async with ledger.lock:
            await ledger.take_over()
            promoted = (await ledger.read()).promoted
            if promoted is not None and promoted.model_id in why:
                with contextlib.suppress(Unserved):  # the one behind it is loaded next
                    await self._looker.give_up(promoted, why[promoted.model_id])
            if ledger.standing.baseline not in ledger.served:
                return False
            await ledger.publish_baseline()
            await self._serve()
            await self._looker.look()
            await self._arrivals.turn()
            await ledger.publish()
        return True

    async def _refused_baseline(self) -> dict[str, str]:
        """Have the baseline served. A promoted one that never can be gives way: who, and why."""
        async with self.ledger.lock:
            standing = await self.ledger.read()
        try:
            await self._loads.there(standing.baseline)
        except Rejected as error:
            if standing.promoted is None:
                raise
            self.ledger.served.pop(standing.baseline, None)
            return {standing.baseline: str(error)}
        return {}

    async def tick(self) -> None:
        """A regular look at everything, and whose turn it is."""
        await self._arrivals.prepare()
        async with self.ledger.lock:
            self.ledger.lead()
            await self._looker.look()
            await self._arrivals.turn()
            await self._tidy()
            await self.ledger.publish()
        self._looked = self.ledger.world.clock()

    async def glance(self) -> None:
        """Something is new: look at what has traffic, and whose turn it is."""
        await self._arrivals.prepare()
        async with self.ledger.lock:
            self.ledger.lead()
            standing = self.ledger.standing
            await self.ledger.hear_gateways()
            wanted = self.ledger.pinned - self.ledger.served.keys()
            if standing.active or standing.promoted or standing.queued or wanted:
                await self._looker.look(regular=False)
                await self._arrivals.turn()
            await self.ledger.refresh()
        self._glanced = self.ledger.world.wall()

    async def renew(self) -> None:
        """Write the plan again, so that its lease goes on and nothing is lost that a bus forgot."""
        async with self.ledger.lock:
            await self.ledger.read()
            await self.ledger.publish(renew=True)
        self._renewed = self.ledger.world.wall()

    async def admit(self) -> bool:
        """Prove one new model, if there is one."""
        return await self._arrivals.admit()

    async def _serve(self) -> None:
        """A candidate that is not served gets no traffic, and is tried again."""
        standing = self.ledger.standing
        names = [*{each.model_id: None for each in standing.active}, self.ledger.base]
        if standing.promoted is not None:
            behind = standby(standing, standing.promoted)
            names.append(behind.model_id if isinstance(behind, Rollout) else behind)
        await asyncio.gather(*map(self._tried, names))

    async def _tried(self, name: str) -> None:
        try:
            await self._loads.soon(name)
        except (Transient, Rejected, Misuse) as error:
            log.warning("%s: %s", name, error, extra={"action": "not_served"})

    async def _tidy(self) -> None:
        """Let servers forget what has had no use since the last look."""
        ledger, standing = self.ledger, self.ledger.standing
        needed = {standing.baseline, ledger.base, self._arrivals.proving, *self._loads.wanted}
        needed |= ledger.pinned
        needed |= {each.model_id for each in standing.rollouts if each.state.value != "succeeded"}
        if standing.promoted is not None:
            behind = standby(standing, standing.promoted)
            needed.add(behind.model_id if isinstance(behind, Rollout) else behind)
        idle = ledger.served.keys() - needed
        for name in sorted(idle & self._idle):
            with contextlib.suppress(Transient, Rejected, TimeoutError):
                async with asyncio.timeout(_RELEASE_SECONDS):
                    await ledger.world.serving.release(name)
                del ledger.served[name]
        self._idle = set(idle)

    # ── loops ────────────────────────────────────────────────────────────────────────────────

    async def _lead(self) -> None:
        await self._safely(self._begin)
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_POLL_SECONDS):
                    await self._woken.wait()
            await self._safely(self._round)
            await asyncio.sleep(_BREATH_SECONDS)

    async def _round(self) -> None:
        ledger, world = self.ledger, self.ledger.world
        if self._stands_by:
            leader = await world.store.leader()
            if leader is not None and not self._silent(leader):
                return
        await self._safely(self._news)  # whatever comes of it, the lease goes on
        led = self._renewed is not None
        if led and (ledger.behind or self._since(self._renewed) >= RENEW_SECONDS):
            await self.renew()

    async def _begin(self) -> None:
        """Start, or wait: whoever serves the baseline and refuses is asked less and less often."""
        now = asyncio.get_running_loop().time()
        if now < self._next_start:
            return
        first, most = _START_SECONDS
        self._pause = min(most, max(first, 2 * self._pause))
        self._next_start = now + self._pause
        await self.start()
        self._pause = self._next_start = 0.0

    def _silent(self, leader: Leader) -> bool:
        """Has its row stayed the same for a lease? Its clock is not compared with ours."""
        now = self.ledger.world.wall()
        if self._heard is None or self._heard[0] != leader:
            self._heard = (leader, now)
        return now - self._heard[1] > LEASE

    async def _news(self) -> None:
        if self._looked is None or self._renewed is None:
            await self._begin()
        elif self.ledger.world.clock() - self._looked >= LOOK_EVERY:
            await self.tick()
        elif self._woken.is_set() and self._breathed():
            self._woken.clear()
            await self.glance()

    def _breathed(self) -> bool:
        """A canary is looked at at once, almost; a promoted model can wait for some seconds."""
        pause = _CANARY_SECONDS if self.ledger.standing.active else _WATCH_SECONDS
        return self._since(self._glanced) >= pause

    def _since(self, moment: datetime | None) -> float:
        if moment is None:
            return float("inf")
        return (self.ledger.world.wall() - moment).total_seconds()

    async def _admit(self) -> None:
        while True:
            self._trained.clear()
            more = await self._safely(self.admit) if self.ledger.fence else False
            if not more:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_ADMIT_SECONDS):
                        await self._trained.wait()

    async def _hear(self) -> None:
        while True:
            await self._safely(lambda: self.ledger.world.board.follow(self.wake))
            await asyncio.sleep(_POLL_SECONDS)

    async def _safely(self, work: Any) -> Any:
        """A part that is away is waited for; a controller that was replaced stands back."""
        try:
            return await work()
        except Superseded as error:
            self.ledger.stand_back()
            self._renewed, self._stands_by = None, True
            if isinstance(error, Foreign):
                self._tell_foreign(str(error))
            else:
                log.warning("%s", error, extra={"action": "stand_back"})
        except Transient as error:
            log.warning("%s", error, extra={"action": "controller"})
        except Rejected as error:
            log.error("a step of a rollout is refused: %s", error, extra={"action": "alert"})  # noqa: TRY400 - it is a sentence
        except Damaged:
            raise
        except (Misuse, Denied, OSError) as error:
            log.error("the controller goes on without it: %s", error, extra={"action": "alert"})  # noqa: TRY400 - it is a sentence
        except Exception:
            log.exception("a round of the controller broke", extra={"action": "alert"})
            await asyncio.sleep(_POLL_SECONDS)
        return None

    def _tell_foreign(self, sentence: str) -> None:
        """Call a person, once for each loop that is in the way."""
        if sentence != self._foreign:
            self._foreign = sentence
            self.ledger.alert("foreign_plan", "the traffic plan", sentence)

    # ── operators ────────────────────────────────────────────────────────────────────────────

    async def told(self, what: str, model_id: str | None, by: str, why: str = "") -> Rollout:
        """An operator's word on a rollout; without a model, `rollback` finds the one it is about."""
        match what, model_id:
            case "rollback", _:
                return await self.rollback(model_id, by, why)
            case "approve", str():
                return await self.approve(model_id, by, why)
            case "pause", str():
                return await self.pause(model_id, by, why)
            case "resume", str():
                return await self.resume(model_id, by, why)
            case "override", str():
                return await self.override(model_id, by, why)
            case _:
                raise Misuse(f"Nobody knows how to {what}.")

    async def find(self, model_id: str) -> tuple[str, str]:
        """The URL up to `/v1` where a model is asked, and its name there; loads it if need be."""
        row = await self.ledger.world.store.model(model_id)
        served = await self.ledger.world.serving.ensure(row if row is not None else model_id)
        return served.backend, served.name

    async def register(
        self, model_id: str, base_model: str, checkpoint_path: str, by: str = "admin"
    ) -> dict[str, Any]:
        """Make a model known that training did not make; what its server can do, where it has one."""
        found = await self.ledger.world.serving.check(model_id, checkpoint_path)
        await self._operator.register(NewModel(model_id, base_model, checkpoint_path), by)
        self.wake_trained()
        known = told.model(await self.ledger.know(model_id), model_id, self.ledger.standing)
        return {**known, "server": dict(found)} if found else known

    async def set_traffic(self, model_id: str, percentage: float, by: str = "admin") -> dict[str, Any]:  # fmt: skip
        """Hold a model at a share; 100 makes it the baseline."""
        await self._operator.set_traffic(model_id, percentage, by)
        return told.traffic(self.ledger.standing)

    async def split(self, percentages: Mapping[str, float], by: str = "admin") -> dict[str, Any]:
        """Models side by side at fixed shares."""
        await self._operator.split(percentages, by)
        return told.traffic(self.ledger.standing)

    async def traffic(self) -> dict[str, Any]:
        async with self.ledger.lock:
            return told.traffic(await self.ledger.read())

    async def models(self) -> list[dict[str, Any]]:
        """The base, and every model of the registry, the newest first."""
        async with self.ledger.lock:
            standing = await self.ledger.read()
        rows = await self.ledger.world.store.models()
        base = told.model(None, self.ledger.base, standing)
        return [*(told.model(row, row.model_id, standing) for row in rows), base]

    async def metrics(self, model_id: str) -> dict[str, Any]:
        """How a model does; `current` is the baseline."""
        ledger, store = self.ledger, self.ledger.world.store
        async with ledger.lock:
            standing = await ledger.read()
        name = standing.baseline if model_id == "current" else model_id
        row = await store.model(name)
        if row is None and name != ledger.base:
            raise Misuse(f"There is no model {name}; GET /admin/models lists them.")
        found = await store.latest(name)
        aside = ledger.world.burial.aside
        rollout = aside.one("deploy", "rollouts", found, decoded)
        record = await ledger.record(rollout.rollout_id) if rollout else Record()
        return told.metrics(
            name, row, standing, rollout, record, await ledger.tallies(), await store.earned(name),
            ledger.policy.limits,
        )  # fmt: skip

    async def rollouts(self, limit: int = 100) -> Sequence[dict[str, Any]]:
        """The newest first."""
        rows = await self.ledger.world.store.history(limit)
        aside = self.ledger.world.burial.aside
        return told.rollouts(
            aside.sound("deploy", "rollouts", rows, decoded, key=lambda row: row.rollout_id)
        )
