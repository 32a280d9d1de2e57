"""Is it time to train, and why?

| degraded | asked | enough | due | reason                  | priority |
|----------|-------|--------|-----|-------------------------|----------|
| yes      | any   | any    | any | performance_degradation | urgent   |
| no       | yes   | any    | any | manual                  | high     |
| no       | no    | yes    | any | threshold_reached       | normal   |
| no       | no    | no     | yes | scheduled               | normal   |
| no       | no    | no     | no  | wait                    |          |

- *degraded*: the deployed model's raw reward is below its baseline by the margin or more, over
  enough trajectories, and by more than chance explains, for both are means of some people's rewards; those
  that a job was already asked for on count no more. And there is something to learn from.
- *asked*: a person wants it, and there is something to learn from, or the person insists.
- *enough*: so many trajectories of the current policy came since the last training, and there is
  something to learn from in them. Half of the groups that comparing needs are worth waiting for the
  others, until twice as many trajectories came.
- *due*: the schedule's time has come, something is new, and there is something to learn from. Times
  that were slept through are made up for once; a time that comes while a job is on its way is passed
  over.

One model at a time: while one is trained, validated, queued or in rollout, everything waits except
a person who insists. A reason waits a while after a job of its own has failed. A number that is
missing or not a number never starts a training.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import isfinite
from typing import Literal

from upswing.contracts.training import Algorithm
from upswing.trigger.core.cron import parse_cron
from upswing.trigger.core.inputs import TriggerInputs
from upswing.trigger.core.readiness import pick_algorithm, training_readiness

Reason = Literal["scheduled", "threshold_reached", "manual", "performance_degradation"]
Priority = Literal["low", "normal", "high", "urgent"]
_ERRORS = 3.0
"""Standard errors that a fall must have: a look every few seconds would find two of them by chance."""
DEGRADED: Reason = "performance_degradation"
MANUAL: Reason = "manual"
ENOUGH: Reason = "threshold_reached"
SCHEDULED: Reason = "scheduled"


class WaitReason(StrEnum):
    """What a wait is for."""

    DATA = "wait_for_data"
    JOB = "wait_for_job"
    PAUSE = "wait_after_failure"
    READY = "wait_until_ready"
    BASE = "wait_for_base_model"
    MODEL = "wait_for_rollout"


@dataclass(frozen=True, slots=True)
class TrainNow:
    """Ask for a job."""

    reason: Reason
    priority: Priority
    sentence: str
    force: bool = False
    sample_size: int | None = None
    requester: str = "trigger"
    slot: datetime | None = None
    """The time of the schedule that this deals with."""
    algorithm: Algorithm | None = None
    """What fits the data; None: the usual one."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Not now."""

    kind: WaitReason
    sentence: str
    slot: datetime | None = None


TriggerDecision = TrainNow | Wait


def decide_training(inputs: TriggerInputs) -> TriggerDecision:
    """The first reason that holds, or what is waited for."""
    slot = due_slot(inputs)
    answers = (
        _decide_degraded(inputs),
        _decide_manual(inputs),
        _decide_threshold(inputs),
        _decide_scheduled(inputs, slot) if slot else None,
    )
    for answer in answers:
        if isinstance(answer, TrainNow):
            return answer
    degraded, asked, enough, due = answers
    held = asked or degraded or enough or due  # whoever asked is answered first
    return held if isinstance(held, Wait) else _wait_for_data(inputs)


def due_slot(inputs: TriggerInputs) -> datetime | None:
    """The time of the schedule that has come and was not dealt with."""
    if inputs.rules.schedule is None or inputs.last_slot is None:
        return None
    return parse_cron(inputs.rules.schedule).newest(inputs.last_slot, inputs.now)


def _decide_degraded(inputs: TriggerInputs) -> TriggerDecision | None:
    model, rules = inputs.deployed, inputs.rules
    if model is None or model.mean is None or model.baseline is None:
        return None
    numbers = (model.mean, model.baseline, model.error)
    if not (all(map(isfinite, numbers)) and model.count >= rules.min_sample):
        return None
    if not round(model.baseline - model.mean, 9) >= max(rules.drop, _ERRORS * model.error):
        return None
    reason = (
        f"{model.model_id} earns {model.mean:.3f} over its last {model.count} trajectories, "
        f"{model.baseline - model.mean:.3f} below its baseline of {model.baseline:.3f}"
    )
    held = _wait_if_held(inputs, TrainNow(DEGRADED, "urgent", reason))
    return held if isinstance(held, Wait) else _wait_until_ready(inputs, reason) or held


def has_degraded(inputs: TriggerInputs) -> bool:
    """Whether the deployed model is below its baseline, and nothing but data is waited for."""
    held = _decide_degraded(inputs)
    return isinstance(held, TrainNow) or (held is not None and held.kind is WaitReason.READY)


def _decide_manual(inputs: TriggerInputs) -> TriggerDecision | None:
    if not inputs.manual:
        return None
    request = inputs.manual[0]
    reason = f"{request.requester} asked for it" + (", ready or not" if request.force else "")
    wanted = TrainNow(MANUAL, "high", reason, request.force, request.sample_size, request.requester)
    if request.force:
        return _require_trainable_here(inputs, wanted)
    if (held := _wait_until_ready(inputs, "Not ready to train")) is not None:
        return held
    covering = [job for job in inputs.active if job.covers_seq >= inputs.newest_seq]
    if covering:
        return Wait(
            WaitReason.JOB, f"Job {covering[0].job_id} is on its way and covers all there is."
        )
    return _wait_if_held(inputs, wanted)


def _wait_until_ready(
    inputs: TriggerInputs, reason: str, slot: datetime | None = None
) -> Wait | None:
    """What there is not enough of to learn from."""
    if inputs.pool is None:
        looked = "nobody has looked whether there is something to learn from."
        return Wait(WaitReason.READY, f"{reason}: {looked}", slot)
    state = training_readiness(inputs.pool, inputs.rules.minimums, inputs.rules.algorithm)
    return None if state.ready else Wait(WaitReason.READY, f"{reason}: {state.reason}", slot)


def _decide_threshold(inputs: TriggerInputs) -> TriggerDecision | None:
    if not inputs.new >= inputs.rules.threshold:
        return None
    reason = f"{inputs.new} new trajectories since the last training, {inputs.rules.threshold} are enough"
    wanted = TrainNow(ENOUGH, "normal", reason)
    held = _wait_if_held(inputs, wanted)
    if isinstance(held, Wait):
        return held
    return _wait_until_ready(inputs, reason) or _wait_for_groups(inputs, reason) or held


def _wait_for_groups(inputs: TriggerInputs, reason: str) -> Wait | None:
    """Comparing attempts teaches more than judging each alone.

    Where half of the groups are there when the threshold is, the others are waited for until twice as much
    has come.
    """
    pool, rules = inputs.pool, inputs.rules
    least = rules.minimums.groups
    if pool is None or rules.algorithm is not None or inputs.new >= 2 * rules.threshold:
        return None
    if not least <= 2 * pool.usable < 2 * least:
        return None
    return Wait(
        WaitReason.READY,
        f"{reason}, but only {pool.usable} of {least} groups of attempts have a difference in them: waits "
        f"for the others, or for {2 * rules.threshold} trajectories.",
    )


def _decide_scheduled(inputs: TriggerInputs, slot: datetime) -> TriggerDecision:
    at = f"The schedule's {slot:%Y-%m-%d %H:%M} UTC"
    if inputs.active:
        job = inputs.active[0].job_id
        return Wait(WaitReason.JOB, f"{at} is passed over: job {job} is on its way.", slot)
    if not inputs.new >= 1:
        return Wait(
            WaitReason.DATA, f"{at} is passed over: nothing is new since the last training.", slot
        )
    if inputs.pending is not None:
        return Wait(WaitReason.MODEL, f"{at} is passed over: {inputs.pending} is on its way.", slot)
    if (held := _wait_until_ready(inputs, f"{at} is passed over", slot)) is not None:
        return held
    reason = f"{at} has come, and {inputs.new} trajectories are new"
    return _wait_if_held(inputs, TrainNow(SCHEDULED, "normal", reason, slot=slot))


def _wait_if_held(inputs: TriggerInputs, wanted: TrainNow) -> TriggerDecision:
    """One model at a time, and a pause after a failure."""
    for job in inputs.active:
        return Wait(
            WaitReason.JOB, f"{wanted.sentence}: job {job.job_id} is on its way.", wanted.slot
        )
    if inputs.pending is not None:
        waits = f"{wanted.sentence}: it waits until {inputs.pending} is decided."
        return Wait(WaitReason.MODEL, waits, wanted.slot)
    failed = inputs.failed.get(wanted.reason)
    if failed is not None and wanted.reason != MANUAL and inputs.now < failed + inputs.rules.pause:
        again = f"{failed + inputs.rules.pause:%Y-%m-%d %H:%M} UTC"
        return Wait(
            WaitReason.PAUSE, f"{wanted.sentence}, but the last such job failed: again at {again}."
        )
    return _require_trainable_here(inputs, wanted)


def _require_trainable_here(inputs: TriggerInputs, wanted: TrainNow) -> TriggerDecision:
    """Can it be asked for at all, and who will do it?"""
    if inputs.rules.base_model is None:
        sentence = "but no base model is named: set RL_BASE_MODEL or `base_model` in [train]."
        return Wait(WaitReason.BASE, f"{wanted.sentence}, {sentence}")
    if inputs.rules.elsewhere and inputs.train_here:
        sentence = not_trainable_here(inputs.rules.base_model)
        return Wait(WaitReason.BASE, f"{wanted.sentence}, but {sentence}")
    algorithm, why = None, ""
    if inputs.pool is not None and inputs.rules.algorithm is None:
        algorithm, why = pick_algorithm(inputs.pool, inputs.rules.minimums)
    chosen = f"; {algorithm}, because {why}" if algorithm is not None else ""
    elsewhere = (
        ""
        if inputs.train_here
        else "; this machine does not train, so the job waits for another worker"
    )
    return TrainNow(
        wanted.reason,
        wanted.priority,
        f"{wanted.sentence}{chosen}{elsewhere}.",
        wanted.force,
        wanted.sample_size,
        wanted.requester,
        wanted.slot,
        algorithm,
    )


def not_trainable_here(base_model: str) -> str:
    """Why a base that answers elsewhere is not trained, and what its owner can do."""
    return (
        f"{base_model} answers at a server of somebody else's and its weights are not here, so it cannot be "
        "trained here: `upswing export --layout sft` (or dpo, openai, hf) writes what its owner can fine-tune with."
    )


def _wait_for_data(inputs: TriggerInputs) -> Wait:
    rules = inputs.rules
    coming = parse_cron(rules.schedule).next(inputs.now) if rules.schedule else None
    sentence = f"{inputs.new} of {rules.threshold} new trajectories"
    if coming:
        sentence += f"; the schedule's next time is {coming:%Y-%m-%d %H:%M} UTC"
    return Wait(WaitReason.DATA, sentence + ".")
