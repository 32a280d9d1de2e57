"""What is the traffic plan? It is made from the rows and from nothing else, and written under the fence.

The one thing ahead of the rows is a rollback whose transaction did not end in time: in memory its model stays
withdrawn until a row says so. The next controller judges before it gives anybody traffic that the board does not
give, so a crash in just that moment changes nothing either.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from upswing.contracts.traffic import Model as Served
from upswing.contracts.traffic import Plan
from upswing.deploy.core.deployment_state import (
    DeploymentState,
    apply_changes,
    make_traffic_plan,
    traffic_shares,
    without_candidates,
)
from upswing.deploy.core.rollout import Rollout
from upswing.deploy.core.rows import LEASE, LeadershipLost, ModelStateChange
from upswing.deploy.core.states import ACTIVE, RolloutState
from upswing.deploy.core.transitions import standby_model
from upswing.deploy.deployment_repository import DeploymentRepository
from upswing.deploy.environment import DeployEnvironment
from upswing.deploy.gateway_reports import GatewayReports
from upswing.deploy.leadership import Leadership
from upswing.deploy.metrics import DeployMetrics
from upswing.errors import Transient


class BaselineNotServed(Transient):
    """Nobody serves the baseline, so there is no plan: it has to be loaded first, outside the lock."""


@dataclass(frozen=True, slots=True)
class PendingRollback:
    """A rollback that is traffic, and no row yet."""

    before: RolloutState
    """Of the rollout that is rolled back."""
    changed: tuple[Rollout, ...]
    moves: tuple[ModelStateChange, ...]

    def holds(self, row: Rollout | None) -> bool:
        """Do the rows still give traffic to the one that is rolled back?"""
        if row is None:
            return False
        return row.state in ACTIVE if self.before in ACTIVE else row.state is self.before


class TrafficPlanner:
    """The plan that follows from the rows, as gateways read it."""

    def __init__(
        self,
        env: DeployEnvironment,
        leadership: Leadership,
        gateways: GatewayReports,
        repository: DeploymentRepository,
        metrics: DeployMetrics | None = None,
    ) -> None:
        self._env, self._leadership, self._gateways = env, leadership, gateways
        self._repository, self._metrics = repository, metrics
        self.served: dict[str, Served] = {}
        """Where each model answers: a plan names no other."""
        self._pending: dict[str, PendingRollback] = {}
        self._plan: Plan | None = None
        self._version = 0

    def reset(self) -> None:
        """Another controller may have written since: what is on the board is not ours."""
        self._plan, self._version = None, 0
        self._pending.clear()

    # ── rows ahead of the plan, and the plan ahead of the rows ───────────────────────────────

    @property
    def outdated(self) -> bool:
        """Do the rows say something that no plan says yet?"""
        return self._plan is None

    def mark_outdated(self) -> None:
        """The next write is a new plan, whatever is on the board."""
        self._plan = None

    def withdraw(self, changed: tuple[Rollout, ...], moves: tuple[ModelStateChange, ...]) -> None:
        """From now on the plan is without the first that changes, though no row says so."""
        name = changed[0].rollout_id
        if (row := self._repository.state.find_rollout(name)) is not None:
            self._pending[name] = PendingRollback(row.state, changed, moves)

    def forget_settled(self) -> None:
        """A pending rollback that the rows know, or have overtaken, is over."""
        find = self._repository.state.find_rollout
        self._pending = {
            name: pending for name, pending in self._pending.items() if pending.holds(find(name))
        }

    @property
    def planned(self) -> DeploymentState:
        """The rows, and the rollbacks that are ahead of them."""
        deployment = self._repository.state
        for pending in self._pending.values():
            deployment = apply_changes(deployment, pending.changed, pending.moves)
        return deployment

    @property
    def is_fully_served(self) -> bool:
        """Does everybody get the share that the rows say? What no gateway may serve gets none."""
        names = {each.model_id for each in self._repository.state.active}
        blocked = self._gateways.blocked_reason
        return names <= self.served.keys() and not self._pending and not blocked

    # ── writing ──────────────────────────────────────────────────────────────────────────────

    async def write(self, *, renew: bool = False) -> None:
        """Write the plan if it is another one than before, or its lease is to be renewed; needs no store."""
        await self._write(self.planned, renew=renew)

    async def write_baseline(self) -> None:
        """Write a plan without candidates, unless gateways reach a baseline already.

        One that the rows do not name may be a rollback that they do not know: it answers until all is judged.
        """
        self._leadership.require()
        deployment, inherited = self._repository.state, self._leadership.inherited_plan
        served = self.served[deployment.baseline]
        held = inherited.baseline if inherited else None
        if held == served:
            return
        if held and held.model_id != served.model_id and await self._env.serving.alive(held):
            return
        await self._write(without_candidates(deployment))

    async def _write(self, deployment: DeploymentState, *, renew: bool = False) -> None:
        self._leadership.require()
        if deployment.baseline not in self.served:
            raise BaselineNotServed(
                f"{deployment.baseline} is to answer, and no server has it yet."
            )
        plan = self._plan_for(deployment)
        if (
            renew
            or self._plan is None
            or _comparable_fields(plan) != _comparable_fields(self._plan)
        ):
            self._version += 1
            plan = self._leadership.sign(msgspec.structs.replace(plan, version=self._version))
            try:
                await self._env.board.write(plan)
            except LeadershipLost:
                raise
            except Transient:
                self._plan = None  # whatever is there now, it is written anew
                raise
            self._plan = plan
        if self._metrics:
            self._metrics.traffic(traffic_shares(deployment))

    def _plan_for(self, deployment: DeploymentState) -> Plan:
        promoted = deployment.promoted
        return make_traffic_plan(
            deployment,
            self.served,
            fence=self._leadership.fence,
            version=self._version,
            lease_until=self._env.wall_clock() + LEASE,
            lease_seconds=LEASE.total_seconds(),
            standby=standby_model(deployment, promoted) if promoted else "",
            pinned=self._gateways.pinned,
        )


def _comparable_fields(plan: Plan) -> tuple[object, ...]:
    """What makes two plans different: not who wrote it and when."""
    leased = plan.lease_until is not None
    beside = plan.holdback, plan.base, plan.trained, plan.pinned
    return (
        plan.rollout,
        plan.baseline,
        plan.candidates,
        leased,
        plan.operator,
        plan.withdrawn,
        beside,
    )
