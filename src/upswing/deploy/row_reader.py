"""Which rows of rollouts can be read, and what of a rollout whose evidence cannot?"""

from __future__ import annotations

from upswing.contracts.traffic import is_model_name
from upswing.deploy.core.deployment_state import decode_rollout
from upswing.deploy.core.journal import STAGE
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.record import RolloutRecord, Tallies, begin_record, begin_watching
from upswing.deploy.core.rollout import Rollout
from upswing.deploy.core.rows import DeploymentRows, RolloutRow
from upswing.deploy.core.states import ACTIVE, ModelState, RolloutState
from upswing.infra.dead_letters import BadRows
from upswing.records import ModelRow


def readable_rows(rows: DeploymentRows, bad_rows: BadRows) -> DeploymentRows:
    """Without those that nobody can read: they are set aside, and the rest goes on."""
    rollouts = bad_rows.read_each(
        STAGE,
        "rollouts",
        rows.rollouts,
        _rollout,
        key=lambda row: row.rollout_id,
        raw=lambda row: row.body,
    )
    models = bad_rows.read_each(STAGE, "models", rows.models, _model, key=lambda row: row.model_id)
    withdrawn = tuple(name for name in rows.withdrawn if is_model_name(name))
    return DeploymentRows(tuple(rollouts), tuple(models), withdrawn)


def restarted_record(
    rollout: Rollout, limits: RolloutLimits, tallies: Tallies, lead: str, newest: tuple[int, int]
) -> RolloutRecord:
    """The record of a rollout whose own was lost: it shows from now on how it does."""
    if rollout.state in ACTIVE:
        return begin_record(rollout, limits, tallies, lead=lead, newest=newest)
    record = RolloutRecord()
    if rollout.state is RolloutState.PROMOTED:
        begin_watching(record, rollout, limits, tallies, frozen=None, newest=newest[0])
    return record


def _rollout(row: RolloutRow) -> RolloutRow:
    decode_rollout(row)
    return row


def _model(row: ModelRow) -> ModelRow:
    ModelState(row.state)
    return row
