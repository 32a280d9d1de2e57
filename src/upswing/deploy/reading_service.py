"""Which rows of rollouts can be read, and what of a rollout whose evidence cannot?"""

from __future__ import annotations

from upswing.aside import Aside
from upswing.contracts.traffic import is_name
from upswing.deploy.journal import STAGE
from upswing.deploy.limits import Limits
from upswing.deploy.record import Record, Tallies, begin_record, begin_watching
from upswing.deploy.rollout import Rollout
from upswing.deploy.standing import decoded
from upswing.deploy.states import ACTIVE, Model
from upswing.deploy.states import Rollout as State
from upswing.ports import ModelRow
from upswing.ports_rollout import RolloutRow, Rows


def readable(rows: Rows, aside: Aside) -> Rows:
    """Without those that nobody can read: they are set aside, and the rest goes on."""
    rollouts = aside.sound(
        STAGE, "rollouts", rows.rollouts, _rollout,
        key=lambda row: row.rollout_id, raw=lambda row: row.body,
    )  # fmt: skip
    models = aside.sound(STAGE, "models", rows.models, _model, key=lambda row: row.model_id)
    withdrawn = tuple(name for name in rows.withdrawn if is_name(name))
    return Rows(tuple(rollouts), tuple(models), withdrawn)


def begun_anew(
    rollout: Rollout, limits: Limits, tallies: Tallies, lead: str, newest: tuple[int, int]
) -> Record:
    """The record of a rollout whose own was lost: it shows from now on how it does."""
    if rollout.state in ACTIVE:
        return begin_record(rollout, limits, tallies, lead=lead, newest=newest)
    record = Record()
    if rollout.state is State.PROMOTED:
        begin_watching(record, rollout, limits, tallies, frozen=None, newest=newest[0])
    return record


def _rollout(row: RolloutRow) -> RolloutRow:
    decoded(row)
    return row


def _model(row: ModelRow) -> ModelRow:
    Model(row.state)
    return row
