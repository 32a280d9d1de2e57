"""Why was this decided? Everything that a decision depends on, and the decision made from it again.

| inputs     | the decision                                               | its kinds                          |
|------------|------------------------------------------------------------|------------------------------------|
| `Judged`   | how boldly does a validated model go out?                   | the strategy's name, or `abort`    |
| `Arrived`  | does it begin, wait, or take another's place?               | `begin`, `wait`, `replace`, `skip` |
| `Queue`    | whose turn is it?                                           | `turn`                             |
| `LookedAt` | what should the canary do next?                             | `hold`, `set_weight`, …            |
| `Watched`  | is the promoted model still what it was?                    | `keep`, `degraded`, `roll_back`    |
| `Stepped`  | an operator, or the lack of one, changes a rollout          | the event's name                   |

`replay` is pure: the same inputs lead to the same outcome, or a changed rule is to blame.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, assert_never

import msgspec
from msgspec import Struct

from upswing.contracts.typed import from_json
from upswing.deploy.arrival import Begin as Free
from upswing.deploy.arrival import Contender, Reception, Replace, Wait, next_in_line, receive
from upswing.deploy.arrival import Policy as Newcomers
from upswing.deploy.canary import Action, Canary, Hold, Promote, SetWeight, next_action
from upswing.deploy.events import Event
from upswing.deploy.evidence import Evidence
from upswing.deploy.health import Figures, Health, HealthVerdict, figures, judge
from upswing.deploy.limits import Limits
from upswing.deploy.rollout import Rollout, step
from upswing.deploy.strategy import Boldness, Strategy, choose
from upswing.deploy.watch import Answer, Watch, look
from upswing.errors import Conflict

STAGE = "deploy"
_TOLERANCE = 1e-9


class Judged(Struct, frozen=True, tag="judged"):
    """What a validation found."""

    model_id: str
    current: str
    validation_id: str
    word: str
    reasons: tuple[str, ...]
    improvement: float | None
    boldness: Boldness
    shown: bool = True
    """The whole interval of the improvement lies above 0."""
    changed: bool = True
    """Training moved it; one that it did not move is not validated."""
    estimated: str = ""
    """What training estimates, where that decides and not what was played."""


class Arrived(Struct, frozen=True, tag="arrived"):
    newcomer: Contender
    running: Contender | None
    policy: Newcomers
    barred: str = ""
    """Why no gateway may serve it; empty: one may."""


class Queue(Struct, frozen=True, tag="queue"):
    waiting: tuple[Contender, ...]


class LookedAt(Struct, frozen=True, tag="looked_at"):
    model_id: str
    rollout_id: str
    canary: Canary
    evidence: Evidence
    limits: Limits
    now: datetime
    alive: bool = True
    room: float = 1.0
    """The share that operators' other candidates leave."""
    override: bool = False
    """It has no passed validation."""
    barred: str = ""
    """Why no gateway may serve it; empty: one may."""


class Watched(Struct, frozen=True, tag="watched"):
    model_id: str
    rollout_id: str
    watch: Watch
    limits: Limits
    alive: bool = True
    standing_by: bool = True


class Stepped(Struct, frozen=True, tag="stepped"):
    rollout: Rollout
    events: tuple[Event, ...]
    now: datetime


Inputs = Judged | Arrived | Queue | LookedAt | Watched | Stepped


class Looked(Struct, frozen=True):
    action: Action
    verdict: HealthVerdict
    figures: Figures


class Turn(Struct, frozen=True):
    next: str | None
    passed_over: tuple[str, ...]
    sentence: str


class Refusal(Struct, frozen=True):
    """It may not happen in this state."""

    refused: str


def strategy_of(judged: Judged) -> Strategy:
    """Without a passed validation nothing ships, whatever else is known."""
    return choose(
        judged.improvement, judged.boldness, passed=judged.word == "pass",
        shown=judged.shown, changed=judged.changed, estimated=judged.estimated,
    )  # fmt: skip


def reception_of(arrived: Arrived) -> Reception:
    reception = receive(arrived.newcomer, arrived.running, arrived.policy)
    if arrived.barred and isinstance(reception, Free | Replace):
        return Wait(f"{arrived.newcomer.model_id} waits. {arrived.barred}")
    return reception


def turn_of(queue: Queue) -> Turn:
    first, others = next_in_line(queue.waiting)
    over = tuple(one.model_id for one in others)
    if first is None:
        return Turn(None, over, "Nobody waits.")
    verb = "is" if len(over) == 1 else "are"
    skipped = f"; {', '.join(over)} {verb} passed over" if over else ""
    return Turn(first.model_id, over, f"{first.model_id} is next{skipped}.")


def look_at(seen: LookedAt) -> Looked:
    """The verdict, and what follows from it; what has no room, no gateway or no validation holds."""
    verdict = judge(seen.evidence, seen.limits, backend_alive=seen.alive)
    action = next_action(seen.canary, verdict, seen.now)
    if seen.barred and verdict.health is not Health.FAILING:
        action = Hold(seen.barred)
    if isinstance(action, SetWeight) and action.share > seen.room + _TOLERANCE:
        action = Hold(
            f"{action.share * 100:g} % is more than operators leave, {seen.room * 100:g} %."
        )
    if isinstance(action, Promote) and seen.override:
        action = Hold("It has no passed validation, so it does not get all traffic.")
    return Looked(action, verdict, figures(seen.evidence, seen.limits))


def waits_for(seen: LookedAt, looked: Looked) -> str:
    """What a hold waits for, in a word: a journal tells a story, not the time of day."""
    canary = seen.canary
    if seen.barred:
        word = "switches"
    elif canary.paused:
        word = "operator"
    elif not seen.now - canary.since >= canary.now.dwell:
        word = "time"
    elif not looked.verdict.rewards - canary.sampled >= canary.now.sample:
        word = "sample"
    else:
        word = looked.verdict.health.value
    return f"{canary.step}:{word}"


def watched_answer(seen: Watched) -> Answer:
    return look(seen.watch, seen.limits, backend_alive=seen.alive, standing_by=seen.standing_by)


def stepped_to(stepped: Stepped) -> Rollout:
    """The rollout after these events, or `Conflict`."""
    rollout = stepped.rollout
    for event in stepped.events:
        rollout = step(rollout, event, stepped.now)
    return rollout


def decide(inputs: Inputs) -> tuple[Any, str]:
    """The outcome and its sentence."""
    match inputs:
        case Judged():
            strategy = strategy_of(inputs)
            return strategy, strategy.sentence
        case Arrived():
            reception = reception_of(inputs)
            return reception, reception.sentence
        case Queue():
            turn = turn_of(inputs)
            return turn, turn.sentence
        case LookedAt():
            looked = look_at(inputs)
            return looked, looked.action.sentence
        case Watched():
            answer = watched_answer(inputs)
            return answer, answer.sentence
        case Stepped():
            try:
                after = stepped_to(inputs)
            except Conflict as error:
                return Refusal(error.detail), error.detail
            return after, after.sentence
        case _:
            assert_never(inputs)


def kind_of(inputs: Inputs, outcome: Any) -> str:
    """The word that the decision is listed under."""
    match inputs:
        case Queue():
            return "turn"
        case Stepped():
            return _tag(inputs.events[-1])
        case LookedAt():
            return _tag(outcome.action)
        case Judged() | Arrived() | Watched():
            return _tag(outcome)
        case _:
            assert_never(inputs)


def _tag(value: Struct) -> str:
    return str(value.__struct_config__.tag)


def replay(kind: str, inputs: bytes) -> tuple[bytes, str]:  # noqa: ARG001 - the inputs know their kind
    """What today's rules make of journalled inputs: the outcome and its sentence."""
    outcome, sentence = decide(from_json(inputs, Inputs))
    return msgspec.json.encode(outcome), sentence
