"""How do rows become the state of the deployment, and how does a change become rows?"""

from __future__ import annotations

from dataclasses import replace

from upswing.deploy.core.deployment_state import DeploymentState, deployment_state_of
from upswing.deploy.core.journal import STAGE
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.record import RolloutRecord, read_record, record_row
from upswing.deploy.core.rows import DeploymentChange
from upswing.deploy.core.states import RolloutState
from upswing.deploy.environment import DeployEnvironment
from upswing.deploy.gateway_reports import GatewayReports
from upswing.deploy.leadership import Leadership
from upswing.deploy.row_reader import readable_rows, restarted_record
from upswing.records import ModelRow


class DeploymentRepository:
    """The state as the rows last said it; changes are taken from the leader alone."""

    def __init__(
        self,
        env: DeployEnvironment,
        leadership: Leadership,
        gateways: GatewayReports,
        limits: RolloutLimits,
        base: str,
    ) -> None:
        self._env, self._leadership, self._gateways = env, leadership, gateways
        self._limits = limits
        self.state = DeploymentState(base)

    async def read(self) -> DeploymentState:
        """The state, from the rows; a row that cannot be read becomes a dead letter."""
        rows = await self._env.store.deployment_rows()
        await self._gateways.read_pins()
        readable = readable_rows(rows, self._env.dead_letters.bad_rows)
        self.state = deployment_state_of(readable, self.state.base)
        return self.state

    async def include_model(self, model_id: str) -> ModelRow | None:
        """A model that may have been over long ago becomes part of the state."""
        row = await self._env.store.model(model_id)
        if row is not None:
            self.state = replace(self.state, models={**self.state.models, model_id: row})
        return row

    async def record(self, rollout_id: str) -> RolloutRecord:
        """What a rollout has shown; what cannot be read it has to show again."""
        body = await self._env.store.record(rollout_id)
        found = self._env.dead_letters.bad_rows.read_each(
            STAGE,
            "evidence",
            [body],
            read_record,
            key=lambda _: rollout_id,
            raw=lambda _: body or b"",
        )
        rollout = self.state.find_rollout(rollout_id)
        unseen = rollout is not None and rollout.state is RolloutState.RAMPING
        if found and not (unseen and found[0].evidence is None and body is not None):
            return found[0]
        return await self._restart_record(rollout_id)

    async def _restart_record(self, rollout_id: str) -> RolloutRecord:
        """Whoever has traffic is judged from now on, as if it had just begun."""
        rollout = self.state.find_rollout(rollout_id)
        if rollout is None:
            return RolloutRecord()
        tallies, newest = await self._gateways.tallies(), await self._env.store.newest_sequences()
        record = restarted_record(
            rollout, self._limits, tallies, self.state.plan_rollout_id, newest
        )
        if self._leadership.fence:
            await self._env.dead_letters.flush()
            row = record_row(rollout_id, record)
            await self.commit(DeploymentChange(self._env.clock(), records=(row,)))
        return record

    async def commit(self, change: DeploymentChange) -> None:
        """One transaction, under this controller's fence; `LeadershipLost` when a newer one leads."""
        self._leadership.require()
        await self._env.store.commit(self._leadership.fence, change)
        self._env.on_commit()
