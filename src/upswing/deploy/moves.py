"""Something was decided about one rollout: which others change with it, and what becomes of the models?

| what happens                    | the others                                                          |
|---------------------------------|---------------------------------------------------------------------|
| a model is promoted             | the baseline before it stands by; all other candidates are withdrawn |
| a promoted model is taken back  | the one that stands by answers again; candidates are withdrawn       |
| a candidate is taken back       | nothing                                                              |

So there is one baseline at all times, and every candidate is compared with it and no other.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec.structs import replace

from upswing.deploy.canary import RollBack
from upswing.deploy.events import Decided, EndHoldback, Restore, Succeed, Withdraw
from upswing.deploy.holdback import Holdback
from upswing.deploy.policy import DeployPolicy
from upswing.deploy.rollout import Rollout, step
from upswing.deploy.standing import Standing
from upswing.deploy.states import MODEL, OVERRIDABLE, Model
from upswing.deploy.states import Rollout as State
from upswing.errors import Conflict
from upswing.ports_rollout import ModelMove


def promotion(standing: Standing, after: Rollout, now: datetime) -> tuple[Rollout, ...]:
    """`after` has just got all traffic."""
    name = after.model_id
    told = f"{name} was promoted."
    others = [each for each in standing.active if each.rollout_id != after.rollout_id]
    changed = [after, *(withdrawn(other, "replaced", told, now) for other in others)]
    before = standing.promoted
    if before is not None and before.rollout_id != after.rollout_id:
        changed.append(step(before, Succeed(name), now))
    return tuple(changed)


def held_back(standing: Standing, after: Rollout, policy: DeployPolicy, now: datetime) -> Rollout:
    """`after` is about to get all traffic: the model that answers until now keeps a share for some days."""
    before = standing.baseline
    if not policy.holdback or before == after.model_id or before in standing.withdrawn:
        return after
    until = now + timedelta(days=policy.watch_days)
    return replace(after, holdback=Holdback(before, policy.holdback, until))


def holdback_ended(standing: Standing, why: str, now: datetime) -> tuple[Rollout, ...]:
    """The promoted rollout without its holdback, if it has one."""
    rollout = standing.promoted
    if rollout is None or rollout.holdback is None:
        return ()
    return (step(rollout, EndHoldback(why), now),)


def retreat(standing: Standing, after: Rollout, now: datetime) -> tuple[Rollout, ...]:
    """`after` had all traffic and is taken back: who stands by answers, and nobody else."""
    told = f"{after.model_id} was taken back."
    changed = [after]
    changed += [withdrawn(other, "baseline_rolled_back", told, now) for other in standing.active]
    behind = standby(standing, after)
    if isinstance(behind, Rollout):
        changed.append(step(behind, Restore(told), now))
    return tuple(changed)


def standby(standing: Standing, rollout: Rollout) -> Rollout | str:
    """Who answers when this one is taken back: a succeeded rollout, or the name of a model without one.

    A model that was itself taken back stands by for nobody: then it is the one before that.
    """
    name, seen = rollout.baseline_id, {rollout.model_id}
    while name not in seen and name != standing.base:
        seen.add(name)
        own = [each for each in standing.rollouts if each.model_id == name]
        rested = [each for each in own if each.state is State.SUCCEEDED]
        if standing.state_of(name) is Model.RETIRED:
            return rested[-1] if rested else name
        name = own[-1].baseline_id if own else standing.base
    return standing.base


def withdrawn(rollout: Rollout, reason: str, sentence: str, now: datetime) -> Rollout:
    """It ends without being decided; one that was never validated does not rest, it goes back."""
    if rollout.override:
        return step(rollout, Decided(RollBack(reason, sentence)), now)
    return step(rollout, Withdraw(reason, sentence), now)


def model_moves(
    standing: Standing, changed: Iterable[Rollout], now: datetime, *, reward: float | None = None
) -> tuple[ModelMove, ...]:
    """What becomes of the models; `Conflict` where the table does not allow it.

    `reward` is what a promoted model earns. The base, which has no row, stays what it is.
    """
    moves = []
    for rollout in changed:
        state = rollout.model_state
        before = standing.state_of(rollout.model_id)
        if before is None or before is state:
            continue
        moves.append(
            model_move(standing, rollout.model_id, state, override=bool(rollout.override), now=now, reward=reward)
        )  # fmt: skip
    return tuple(moves)


def model_move(
    standing: Standing, model_id: str, state: Model, *,
    override: bool = False, now: datetime | None = None, reward: float | None = None,
) -> ModelMove:  # fmt: skip
    """One model's next state."""
    before = standing.state_of(model_id)
    if before is None:
        raise Conflict(f"{model_id} is not in the registry.")
    forced = override and state is Model.CANARY and before in OVERRIDABLE
    if state not in MODEL[before] and not forced:
        raise Conflict(f"{model_id} is {before}: it cannot be {state}.")
    deployed = state is Model.DEPLOYED
    return ModelMove(
        model_id, state.value, (before.value,), now if deployed else None, reward if deployed else None
    )  # fmt: skip


def rests(standing: Standing, after: Rollout) -> tuple[ModelMove, ...]:
    """A baseline without a rollout of its own rests when another is promoted."""
    if standing.promoted is not None or standing.baseline in {standing.base, after.model_id}:
        return ()
    return (model_move(standing, standing.baseline, Model.RETIRED),)


def answers_again(
    standing: Standing, behind: Rollout | str, now: datetime
) -> tuple[ModelMove, ...]:
    """And answers again when that one is taken back."""
    if isinstance(behind, Rollout) or standing.state_of(behind) is not Model.RETIRED:
        return ()
    return (model_move(standing, behind, Model.DEPLOYED, now=now),)
