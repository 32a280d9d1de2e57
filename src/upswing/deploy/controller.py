"""The controller: which model is rolled out, which goes on, which is rolled back?

    trained model ─▶ validated ─▶ strategy ─▶ its turn ─▶ first traffic
                                                │
             rewards, counts, complaints ─▶ evaluate ─▶ next step, hold, promotion, rollback ─▶ watch

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

from upswing.deploy.candidates import CandidateChecks, CandidateQueue
from upswing.deploy.core import views
from upswing.deploy.core.deployment_state import decode_rollout
from upswing.deploy.core.policy import DeployPolicy
from upswing.deploy.core.record import RolloutRecord
from upswing.deploy.core.rows import LEASE, ForeignPlan, LeaderRow, LeadershipLost, RegisteredModel
from upswing.deploy.core.transitions import standby_model
from upswing.deploy.environment import DeployEnvironment
from upswing.deploy.executor import RolloutExecutor
from upswing.deploy.metrics import DeployMetrics
from upswing.deploy.model_loader import ModelLoader
from upswing.deploy.operator import Operator
from upswing.deploy.planner import BaselineNotServed
from upswing.deploy.reconciler import Reconciler
from upswing.errors import Damaged, Denied, Misuse, Rejected, Transient
from upswing.infra.backoff import Backoff
from upswing.infra.tasks import run_all

log = logging.getLogger(__name__)
TICK_EVERY = timedelta(minutes=5)
"""By the clock of ramps; whatever is stored or counted wakes the controller at once."""
RENEW_SECONDS = 10.0
"""Between two writes of a leased plan, in real time: four may be lost."""
_BREATH_SECONDS = 0.2
"""Between two rounds, however much is stored."""
_CANARY_SECONDS, _WATCH_SECONDS = 0.5, 5.0
"""Real time between two glances, while a canary is out and while none is."""
_RELEASE_SECONDS = 3.0
"""For a server to forget a model; one whose requests still end is asked again at the next tick."""
_POLL_SECONDS = 1.0
_STARTS = Backoff(0.5, 15.0)
"""Seconds between two tries to have the baseline served."""
_ADMIT_SECONDS = 5.0


class Controller:
    """Everything that can be asked of it; every dependency is handed in."""

    def __init__(
        self,
        env: DeployEnvironment,
        checks: CandidateChecks,
        policy: DeployPolicy,
        *,
        base: str,
        holder: str,
        metrics: DeployMetrics | None = None,
    ) -> None:
        self.executor = RolloutExecutor(env, policy, base, holder, metrics)
        self._loader = ModelLoader(self.executor, self.wake)
        self._reconciler = Reconciler(self.executor, self._loader)
        self._candidates = CandidateQueue(self.executor, self._loader, checks)
        self.operator = Operator(self.executor, self._loader, self._candidates)
        self._woken, self._trained = asyncio.Event(), asyncio.Event()
        self._ticked_at: datetime | None = None
        self._renewed: datetime | None = None
        self._checked_at: datetime | None = None
        self._stands_by = False
        self._leader_seen: tuple[LeaderRow, datetime] | None = None
        """The leader as it was last seen, and since when, by our clock."""
        self._foreign = ""
        """What was said of another loop on this bus."""
        self._idle: set[str] = set()
        self._failed_starts, self._next_start = 0, 0.0
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
        return bool(self.executor.leadership.fence) and self._renewed is not None

    async def run(self) -> None:
        """Lead, or stand by, for ever."""
        try:
            await run_all(self._lead(), self._admit(), self._follow_gateways())
        finally:
            self._loader.close()

    async def start(self) -> None:
        """Have the baseline served; take the fence; serve and judge the others; write the plan.

        Whoever led before goes on until the baseline is served here.
        """
        while not await self._take_over():
            log.info("another model is the baseline now", extra={"action": "take_over"})
        self._ticked_at, self._renewed = self.executor.env.clock(), self.executor.env.wall_clock()
        self._stands_by, self._foreign = False, ""

    async def _take_over(self) -> bool:
        """False: the baseline is another one than was served, so that one is to be loaded first."""
        executor = self.executor
        await executor.leadership.check_bus()
        why = await self._refused_baseline()
        async with executor.lock:
            await executor.take_over()
            promoted = (await executor.read()).promoted
            if promoted is not None and promoted.model_id in why:
                with contextlib.suppress(BaselineNotServed):  # the one behind it is loaded next
                    await self._reconciler.give_up(promoted, why[promoted.model_id])
            if executor.deployment.baseline not in executor.planner.served:
                return False
            await executor.planner.write_baseline()
            await self._serve()
            await self._reconciler.reconcile()
            await self._candidates.start_next()
            await executor.publish()
        return True

    async def _refused_baseline(self) -> dict[str, str]:
        """Have the baseline served. A promoted one that never can be gives way: who, and why."""
        async with self.executor.lock:
            deployment = await self.executor.read()
        try:
            await self._loader.wait_loaded(deployment.baseline)
        except Rejected as error:
            if deployment.promoted is None:
                raise
            self.executor.planner.served.pop(deployment.baseline, None)
            return {deployment.baseline: str(error)}
        return {}

    async def tick(self) -> None:
        """Evaluate everything regularly, and start whose turn it is."""
        await self._candidates.prepare()
        async with self.executor.lock:
            self.executor.leadership.require()
            await self._reconciler.reconcile()
            await self._candidates.start_next()
            await self._release_idle()
            await self.executor.publish()
        self._ticked_at = self.executor.env.clock()

    async def check_changes(self) -> None:
        """Something is new: evaluate what has traffic, and start whose turn it is."""
        await self._candidates.prepare()
        async with self.executor.lock:
            self.executor.leadership.require()
            deployment = self.executor.deployment
            await self.executor.gateways.refresh()
            wanted = self.executor.gateways.pinned - self.executor.planner.served.keys()
            if deployment.active or deployment.promoted or deployment.queued or wanted:
                await self._reconciler.reconcile(regular=False)
                await self._candidates.start_next()
            await self.executor.planner.write()
        self._checked_at = self.executor.env.wall_clock()

    async def renew(self) -> None:
        """Write the plan again, so that its lease goes on and nothing is lost that a bus forgot."""
        async with self.executor.lock:
            await self.executor.read()
            await self.executor.publish(renew=True)
        self._renewed = self.executor.env.wall_clock()

    async def admit(self) -> bool:
        """Prove one new model, if there is one."""
        return await self._candidates.admit()

    async def _serve(self) -> None:
        """A candidate that is not served gets no traffic, and is tried again."""
        deployment = self.executor.deployment
        names = [*{each.model_id: None for each in deployment.active}, self.executor.base]
        if deployment.promoted is not None:
            names.append(standby_model(deployment, deployment.promoted))
        await asyncio.gather(*map(self._try_load, names))

    async def _try_load(self, name: str) -> None:
        try:
            await self._loader.wait_briefly(name)
        except (Transient, Rejected, Misuse) as error:
            log.warning("%s: %s", name, error, extra={"action": "not_served"})

    async def _release_idle(self) -> None:
        """Let servers forget what has had no use since the last tick."""
        executor, deployment = self.executor, self.executor.deployment
        needed = {
            deployment.baseline,
            executor.base,
            self._candidates.validating,
            *self._loader.wanted,
        }
        needed |= executor.gateways.pinned
        needed |= {each.model_id for each in deployment.rollouts if each.state.value != "succeeded"}
        if deployment.promoted is not None:
            needed.add(standby_model(deployment, deployment.promoted))
        idle = executor.planner.served.keys() - needed
        for name in sorted(idle & self._idle):
            with contextlib.suppress(Transient, Rejected, TimeoutError):
                async with asyncio.timeout(_RELEASE_SECONDS):
                    await executor.env.serving.release(name)
                del executor.planner.served[name]
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
        executor, env = self.executor, self.executor.env
        if self._stands_by:
            leader = await env.store.leader()
            if leader is not None and not self._is_silent(leader):
                return
        await self._safely(self._step)  # whatever comes of it, the lease goes on
        led = self._renewed is not None
        if led and (executor.planner.outdated or self._since(self._renewed) >= RENEW_SECONDS):
            await self.renew()

    async def _begin(self) -> None:
        """Start, or wait: whoever serves the baseline and refuses is asked less and less often."""
        now = asyncio.get_running_loop().time()
        if now < self._next_start:
            return
        self._failed_starts += 1
        self._next_start = now + _STARTS.seconds(self._failed_starts)
        await self.start()
        self._failed_starts, self._next_start = 0, 0.0

    def _is_silent(self, leader: LeaderRow) -> bool:
        """Has its row stayed the same for a lease? Its clock is not compared with ours."""
        now = self.executor.env.wall_clock()
        if self._leader_seen is None or self._leader_seen[0] != leader:
            self._leader_seen = (leader, now)
        return now - self._leader_seen[1] > LEASE

    async def _step(self) -> None:
        if self._ticked_at is None or self._renewed is None:
            await self._begin()
        elif self.executor.env.clock() - self._ticked_at >= TICK_EVERY:
            await self.tick()
        elif self._woken.is_set() and self._may_check():
            self._woken.clear()
            await self.check_changes()

    def _may_check(self) -> bool:
        """A canary is evaluated at once, almost; a promoted model can wait for some seconds."""
        pause = _CANARY_SECONDS if self.executor.deployment.active else _WATCH_SECONDS
        return self._since(self._checked_at) >= pause

    def _since(self, moment: datetime | None) -> float:
        if moment is None:
            return float("inf")
        return (self.executor.env.wall_clock() - moment).total_seconds()

    async def _admit(self) -> None:
        while True:
            self._trained.clear()
            more = await self._safely(self.admit) if self.executor.leadership.fence else False
            if not more:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_ADMIT_SECONDS):
                        await self._trained.wait()

    async def _follow_gateways(self) -> None:
        while True:
            await self._safely(lambda: self.executor.env.board.follow(self.wake))
            await asyncio.sleep(_POLL_SECONDS)

    async def _safely(self, work: Any) -> Any:
        """A part that is away is waited for; a controller that was replaced stands back."""
        try:
            return await work()
        except LeadershipLost as error:
            self.executor.leadership.step_down()
            self._renewed, self._stands_by = None, True
            if isinstance(error, ForeignPlan):
                self._alert_foreign(str(error))
            else:
                log.warning("%s", error, extra={"action": "stand_back"})
        except Transient as error:
            log.warning("%s", error, extra={"action": "controller"})
        except Rejected as error:
            log.error(  # noqa: TRY400 - it is a sentence
                "a step of a rollout is refused: %s",
                error,
                extra={"action": "alert", "reason": "rollout_refused"},
            )
        except Damaged:
            raise
        except (Misuse, Denied, OSError) as error:
            log.error(  # noqa: TRY400 - it is a sentence
                "the controller goes on without it: %s",
                error,
                extra={"action": "alert", "reason": "controller_error"},
            )
        except Exception:
            log.exception(
                "a round of the controller broke",
                extra={"action": "alert", "reason": "controller_broke"},
            )
            await asyncio.sleep(_POLL_SECONDS)
        return None

    def _alert_foreign(self, sentence: str) -> None:
        """Call a person, once for each loop that is in the way."""
        if sentence != self._foreign:
            self._foreign = sentence
            self.executor.alert("foreign_plan", "the traffic plan", sentence)

    # ── operators ────────────────────────────────────────────────────────────────────────────

    async def register(
        self, model_id: str, base_model: str, checkpoint_path: str, by: str = "admin"
    ) -> dict[str, Any]:
        """Make a model known that training did not make; what its server can do, where it has one."""
        found = await self.executor.env.serving.check(model_id, checkpoint_path)
        await self.operator.register(RegisteredModel(model_id, base_model, checkpoint_path), by)
        self.wake_trained()
        known = views.model_view(
            await self.executor.repository.include_model(model_id),
            model_id,
            self.executor.deployment,
        )
        return {**known, "server": dict(found)} if found else known

    async def set_traffic(
        self, model_id: str, percentage: float, by: str = "admin"
    ) -> dict[str, Any]:
        """Hold a model at a share; 100 makes it the baseline."""
        await self.operator.set_traffic(model_id, percentage, by)
        return views.traffic_view(self.executor.deployment, self.executor.gateways.switches)

    async def split(self, percentages: Mapping[str, float], by: str = "admin") -> dict[str, Any]:
        """Models side by side at fixed shares."""
        await self.operator.split(percentages, by)
        return views.traffic_view(self.executor.deployment, self.executor.gateways.switches)

    def last_traffic(self) -> dict[str, Any]:
        """The same as it was last read: for who looks, and waits for nothing."""
        return views.traffic_view(self.executor.deployment, self.executor.gateways.switches)

    async def traffic(self) -> dict[str, Any]:
        """The plan's shares, and which gateways' switches decide otherwise."""
        gateways = self.executor.gateways.switches
        with contextlib.suppress(Transient):  # then as they were when they were last read
            gateways = await self.executor.env.board.gateways()
        async with self.executor.lock:
            return views.traffic_view(await self.executor.read(), gateways)

    async def models(self) -> list[dict[str, Any]]:
        """The base, and every model of the registry, the newest first."""
        async with self.executor.lock:
            deployment = await self.executor.read()
        rows = await self.executor.env.store.models()
        base = views.model_view(None, self.executor.base, deployment)
        return [*(views.model_view(row, row.model_id, deployment) for row in rows), base]

    async def metrics(self, model_id: str) -> dict[str, Any]:
        """How a model does; `current` is the baseline."""
        executor, store = self.executor, self.executor.env.store
        async with executor.lock:
            deployment = await executor.read()
        name = deployment.baseline if model_id == "current" else model_id
        row = await store.model(name)
        if row is None and name != executor.base:
            raise Misuse(
                f"There is no model {name}; `upswing models` and GET /admin/models list them."
            )
        found = await store.latest_rollout(name)
        bad_rows = executor.env.dead_letters.bad_rows
        rollout = bad_rows.read_one("deploy", "rollouts", found, decode_rollout)
        record = (
            await executor.repository.record(rollout.rollout_id) if rollout else RolloutRecord()
        )
        return views.metrics_view(
            name,
            row,
            deployment,
            rollout,
            record,
            await executor.gateways.tallies(),
            await store.mean_reward(name),
            executor.policy.limits,
        )

    async def rollouts(self, limit: int = 100) -> Sequence[dict[str, Any]]:
        """The newest first."""
        rows = await self.executor.env.store.list_rollouts(max(limit, views.LIVE))
        bad_rows = self.executor.env.dead_letters.bad_rows
        return views.rollout_views(
            bad_rows.read_each(
                "deploy", "rollouts", rows, decode_rollout, key=lambda row: row.rollout_id
            )
        )[:limit]
