"""May this controller write? One leads, by its fence; whoever starts last does.

Whoever takes over raises the fence, and from then on the store takes no row and the board no plan of an older
controller, however late it comes. The plan is signed with the name of its store, so that of two loops on
one bus the first keeps it.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

import msgspec

from upswing.contracts.traffic import Plan
from upswing.deploy.core.rows import LEASE, LeaderRow, LeadershipLost
from upswing.deploy.environment import DeployEnvironment

log = logging.getLogger(__name__)


class Leadership:
    """The fence of this controller, and since when its plan has held."""

    def __init__(self, env: DeployEnvironment, holder: str) -> None:
        self._env, self._holder = env, holder
        self.fence = 0
        """0: it does not lead."""
        self.inherited_plan: Plan | None = None
        """What gateways followed when this controller took over."""
        self._origin = ""
        self._held: datetime | None = None
        """When the plan last held, by the clock of ramps."""
        self._written: datetime | None = None
        """When that was, in real time; None: it did not hold since."""

    async def take_over(self) -> LeaderRow | None:
        """From now on this controller writes, and no older one does.

        A store that was put back from a copy may know an older fence than the board does.
        """
        env, plan = self._env, await self.check_bus()
        self.inherited_plan, above = plan, plan.fence if plan else 0
        self.fence, before = await env.store.take_over(self._holder, env.wall_clock(), above)
        self._held, self._written = before.held if before else None, None
        log.info("leading with fence %d", self.fence, extra={"action": "take_over"})
        return before

    async def check_bus(self) -> Plan | None:
        """The plan on the bus; `ForeignPlan` when it is of another store that keeps it up."""
        plan = await self._env.board.read()
        self._origin = self._origin or await self._env.store.origin(str(self._env.new_id()))
        if plan is not None:
            await self._env.board.check(self.sign(plan))
        return plan

    def sign(self, plan: Plan) -> Plan:
        """The plan with the name of its store, and when it was written."""
        return msgspec.structs.replace(plan, origin=self._origin, written=self._env.wall_clock())

    def require(self) -> None:
        """`LeadershipLost` unless it leads."""
        if not self.fence:
            raise LeadershipLost("This controller does not lead: another one does, or nobody yet.")

    def step_down(self) -> None:
        """It writes nothing more until it takes over again."""
        self.fence = 0

    # ── how long the plan has held ───────────────────────────────────────────────────────────

    async def heartbeat(self, *, complete: bool) -> None:
        """The leader lives; `complete`: everybody gets the share that the rows say."""
        now, wall_clock = self._env.clock(), self._env.wall_clock()
        self._written = wall_clock if complete else None
        self._held = now if complete else self._held
        await self._env.store.heartbeat(self.fence, wall_clock, now if complete else None)

    @property
    def lapsed(self) -> bool:
        """Was there a time without the plan since it last held?"""
        return self._written is None or self._env.wall_clock() - self._written > LEASE

    def outage_since(self, since: datetime, now: datetime) -> timedelta:
        """For how long after `since` the plan has not held."""
        return now - max(since, self._held or since)

    def end_outage(self, now: datetime) -> None:
        """From `now` on the plan holds again."""
        self._held, self._written = now, self._env.wall_clock()
