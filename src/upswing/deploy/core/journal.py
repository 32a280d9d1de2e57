"""Why was this decided? Everything that a decision depends on, and the decision made from it again.

| inputs     | the decision                                               | its kinds                          |
|------------|------------------------------------------------------------|------------------------------------|
| `StrategyInputs`   | how boldly is a validated model rolled out?                 | the strategy's name, or `abort`    |
| `StartInputs`  | does it begin, wait, or take another's place?               | `begin`, `wait`, `replace`, `skip` |
| `QueueInputs`    | whose turn is it?                                           | `turn`                             |
| `CanaryInputs` | what should the canary do next?                             | `hold`, `set_weight`, …            |
| `WatchInputs`  | is the promoted model still what it was?                    | `keep`, `degraded`, `roll_back`    |
| `TransitionInputs`  | an operator, or the lack of one, changes a rollout          | the event's name                   |

`replay` is pure: the same inputs lead to the same outcome, or a changed rule is to blame.
"""

from __future__ import annotations

from datetime import datetime
from typing import assert_never

import msgspec
from msgspec import Struct, field

from upswing.contracts.typed import from_json
from upswing.deploy.core.canary import Canary, CanaryAction, Hold, Promote, SetWeight, next_action
from upswing.deploy.core.events import RolloutEvent
from upswing.deploy.core.evidence import CanaryEvidence
from upswing.deploy.core.health import (
    CanaryFigures,
    HealthStatus,
    HealthVerdict,
    canary_figures,
    judge_health,
)
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.queueing import (
    NewcomerPolicy,
    ReplaceRunning,
    RolloutContender,
    StartDecision,
    StartNow,
    WaitForRunning,
    decide_start,
    next_in_line,
)
from upswing.deploy.core.rollout import Rollout, apply_event
from upswing.deploy.core.strategy import Strategy, StrategyPolicy, choose_strategy
from upswing.deploy.core.watch import PromotionWatch, WatchVerdict, judge_watch
from upswing.errors import Conflict

STAGE = "deploy"
_TOLERANCE = 1e-9


class StrategyInputs(Struct, frozen=True, tag="judged"):
    """What a validation found."""

    model_id: str
    current: str
    validation_id: str
    verdict: str = field(name="word")
    reasons: tuple[str, ...]
    improvement: float | None
    boldness: StrategyPolicy
    shown: bool = True
    """The whole interval of the improvement lies above 0."""
    changed: bool = True
    """Training moved it; one that it did not move is not validated."""
    estimated: str = ""
    """What training estimates, where that decides and not what was played."""


class StartInputs(Struct, frozen=True, tag="arrived"):
    newcomer: RolloutContender
    running: RolloutContender | None
    policy: NewcomerPolicy
    blocked: str = field(default="", name="barred")
    """Why no gateway may serve it; empty: one may."""


class QueueInputs(Struct, frozen=True, tag="queue"):
    waiting: tuple[RolloutContender, ...]


class CanaryInputs(Struct, frozen=True, tag="looked_at"):
    model_id: str
    rollout_id: str
    canary: Canary
    evidence: CanaryEvidence
    limits: RolloutLimits
    now: datetime
    alive: bool = True
    room: float = 1.0
    """The share that operators' other candidates leave."""
    override: bool = False
    """It has no passed validation."""
    blocked: str = field(default="", name="barred")
    """Why no gateway may serve it; empty: one may."""


class WatchInputs(Struct, frozen=True, tag="watched"):
    model_id: str
    rollout_id: str
    watch: PromotionWatch
    limits: RolloutLimits
    alive: bool = True
    standby: bool = field(default=True, name="standing_by")


class TransitionInputs(Struct, frozen=True, tag="stepped"):
    rollout: Rollout
    events: tuple[RolloutEvent, ...]
    now: datetime


DecisionInputs = (
    StrategyInputs | StartInputs | QueueInputs | CanaryInputs | WatchInputs | TransitionInputs
)


class CanaryEvaluation(Struct, frozen=True):
    action: CanaryAction
    verdict: HealthVerdict
    figures: CanaryFigures


class QueueTurn(Struct, frozen=True):
    next: str | None
    passed_over: tuple[str, ...]
    sentence: str


class RefusedTransition(Struct, frozen=True):
    """It may not happen in this state."""

    refused: str


DecisionOutcome = (
    Strategy
    | StartDecision
    | QueueTurn
    | CanaryEvaluation
    | WatchVerdict
    | Rollout
    | RefusedTransition
)


def strategy_for(judged: StrategyInputs) -> Strategy:
    """Without a passed validation nothing ships, whatever else is known."""
    return choose_strategy(
        judged.improvement,
        judged.boldness,
        passed=judged.verdict == "pass",
        shown=judged.shown,
        changed=judged.changed,
        estimated=judged.estimated,
    )


def start_decision_of(arrived: StartInputs) -> StartDecision:
    reception = decide_start(arrived.newcomer, arrived.running, arrived.policy)
    if arrived.blocked and isinstance(reception, StartNow | ReplaceRunning):
        return WaitForRunning(f"{arrived.newcomer.model_id} waits. {arrived.blocked}")
    return reception


def next_turn(queue: QueueInputs) -> QueueTurn:
    first, others = next_in_line(queue.waiting)
    over = tuple(one.model_id for one in others)
    if first is None:
        return QueueTurn(None, over, "Nobody waits.")
    verb = "is" if len(over) == 1 else "are"
    skipped = f"; {', '.join(over)} {verb} passed over" if over else ""
    return QueueTurn(first.model_id, over, f"{first.model_id} is next{skipped}.")


def evaluate_canary(seen: CanaryInputs) -> CanaryEvaluation:
    """The verdict, and what follows from it; what has no room, no gateway or no validation holds."""
    verdict = judge_health(seen.evidence, seen.limits, backend_alive=seen.alive)
    action = next_action(seen.canary, verdict, seen.now)
    if seen.blocked and verdict.health is not HealthStatus.FAILING:
        action = Hold(seen.blocked)
    if isinstance(action, SetWeight) and action.share > seen.room + _TOLERANCE:
        action = Hold(
            f"{action.share * 100:g} % is more than operators leave, {seen.room * 100:g} %."
        )
    if isinstance(action, Promote) and seen.override:
        action = Hold("It has no passed validation, so it does not get all traffic.")
    return CanaryEvaluation(action, verdict, canary_figures(seen.evidence, seen.limits))


def hold_reason(seen: CanaryInputs, evaluation: CanaryEvaluation) -> str:
    """What a hold waits for, in a word: a journal tells a story, not the time of day."""
    canary = seen.canary
    if seen.blocked:
        reason = "switches"
    elif canary.paused:
        reason = "operator"
    elif not seen.now - canary.since >= canary.current_step.dwell:
        reason = "time"
    elif not evaluation.verdict.rewards - canary.sampled >= canary.current_step.sample:
        reason = "sample"
    else:
        reason = evaluation.verdict.health.value
    return f"{canary.step}:{reason}"


def evaluate_promoted(seen: WatchInputs) -> WatchVerdict:
    return judge_watch(seen.watch, seen.limits, backend_alive=seen.alive, standby=seen.standby)


def apply_events(stepped: TransitionInputs) -> Rollout:
    """The rollout after these events, or `Conflict`."""
    rollout = stepped.rollout
    for event in stepped.events:
        rollout = apply_event(rollout, event, stepped.now)
    return rollout


def decide(inputs: DecisionInputs) -> DecisionOutcome:
    """What these inputs lead to."""
    match inputs:
        case StrategyInputs():
            return strategy_for(inputs)
        case StartInputs():
            return start_decision_of(inputs)
        case QueueInputs():
            return next_turn(inputs)
        case CanaryInputs():
            return evaluate_canary(inputs)
        case WatchInputs():
            return evaluate_promoted(inputs)
        case TransitionInputs():
            try:
                return apply_events(inputs)
            except Conflict as error:
                return RefusedTransition(error.detail)
        case _:
            assert_never(inputs)


def outcome_sentence(outcome: DecisionOutcome) -> str:
    """What was decided, for a reader."""
    match outcome:
        case CanaryEvaluation():
            return outcome.action.sentence
        case RefusedTransition():
            return outcome.refused
        case _:
            return outcome.sentence


def decision_kind(inputs: DecisionInputs, outcome: DecisionOutcome) -> str:
    """The name that the decision is listed under."""
    match inputs:
        case QueueInputs():
            return "turn"
        case TransitionInputs():
            return _tag(inputs.events[-1])
        case CanaryInputs() | StrategyInputs() | StartInputs() | WatchInputs():
            return _tag(outcome.action if isinstance(outcome, CanaryEvaluation) else outcome)
        case _:
            assert_never(inputs)


def subject_of(inputs: DecisionInputs) -> str:
    """The model that a decision is about; empty: about several."""
    match inputs:
        case QueueInputs():
            return ""
        case StartInputs():
            return inputs.newcomer.model_id
        case TransitionInputs():
            return inputs.rollout.model_id
        case CanaryInputs() | StrategyInputs() | WatchInputs():
            return inputs.model_id
        case _:
            assert_never(inputs)


def _tag(value: Struct) -> str:
    return str(value.__struct_config__.tag)


def replay(kind: str, inputs: bytes) -> tuple[bytes, str]:  # noqa: ARG001 - the inputs know their kind
    """What today's rules make of journalled inputs: the outcome and its sentence."""
    outcome = decide(from_json(inputs, DecisionInputs))
    return msgspec.json.encode(outcome), outcome_sentence(outcome)
