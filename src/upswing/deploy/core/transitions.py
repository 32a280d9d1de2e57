"""Something was decided about one rollout: which others change with it, and what becomes of the models?

| what happens                    | the others                                                          |
|---------------------------------|---------------------------------------------------------------------|
| a model is promoted             | the baseline before it stands by; all other candidates are withdrawn |
| a promoted model is rolled back | the one that stands by answers again; candidates are withdrawn       |
| a candidate is rolled back      | nothing                                                              |

So there is one baseline at all times, and every candidate is compared with it and no other.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec.structs import replace

from upswing.deploy.core.canary import RollBack
from upswing.deploy.core.deployment_state import DeploymentState
from upswing.deploy.core.events import (
    ActionDecided,
    EndHoldback,
    RestoreRollout,
    SuccessorPromoted,
    WithdrawRollout,
)
from upswing.deploy.core.holdback import Holdback
from upswing.deploy.core.policy import DeployPolicy
from upswing.deploy.core.rollout import Rollout, apply_event
from upswing.deploy.core.rows import ModelStateChange
from upswing.deploy.core.states import MODEL_TRANSITIONS, OVERRIDABLE, ModelState, RolloutState
from upswing.errors import Conflict


def promotion_changes(
    deployment: DeploymentState, after: Rollout, now: datetime
) -> tuple[Rollout, ...]:
    """`after` has just got all traffic."""
    name = after.model_id
    sentence = f"{name} was promoted."
    others = [each for each in deployment.active if each.rollout_id != after.rollout_id]
    changed = [after, *(withdraw(other, "replaced", sentence, now) for other in others)]
    before = deployment.promoted
    if before is not None and before.rollout_id != after.rollout_id:
        changed.append(apply_event(before, SuccessorPromoted(name), now))
    return tuple(changed)


def with_holdback(
    deployment: DeploymentState, after: Rollout, policy: DeployPolicy, now: datetime
) -> Rollout:
    """`after` is about to get all traffic: the model that answers until now keeps a share for some days."""
    before = deployment.baseline
    if not policy.holdback or before == after.model_id or before in deployment.withdrawn:
        return after
    until = now + timedelta(days=policy.watch_days)
    return replace(after, holdback=Holdback(before, policy.holdback, until))


def without_holdback(deployment: DeploymentState, why: str, now: datetime) -> tuple[Rollout, ...]:
    """The promoted rollout without its holdback, if it has one."""
    rollout = deployment.promoted
    if rollout is None or rollout.holdback is None:
        return ()
    return (apply_event(rollout, EndHoldback(why), now),)


def rollback_changes(
    deployment: DeploymentState, after: Rollout, now: datetime
) -> tuple[Rollout, ...]:
    """`after` had all traffic and is rolled back: who stands by answers, and nobody else."""
    sentence = f"{after.model_id} was rolled back."
    changed = [after]
    changed += [
        withdraw(other, "baseline_rolled_back", sentence, now) for other in deployment.active
    ]
    standby = standby_of(deployment, after)
    if isinstance(standby, Rollout):
        changed.append(apply_event(standby, RestoreRollout(sentence), now))
    return tuple(changed)


def standby_of(deployment: DeploymentState, rollout: Rollout) -> Rollout | str:
    """Who answers when this one is rolled back: a succeeded rollout, or the name of a model without one.

    A model that was itself rolled back stands by for nobody: then it is the one before that.
    """
    name, seen = rollout.baseline_id, {rollout.model_id}
    while name not in seen and name != deployment.base:
        seen.add(name)
        own = [each for each in deployment.rollouts if each.model_id == name]
        rested = [each for each in own if each.state is RolloutState.SUCCEEDED]
        if deployment.model_state_of(name) is ModelState.RETIRED:
            return rested[-1] if rested else name
        name = own[-1].baseline_id if own else deployment.base
    return deployment.base


def standby_model(deployment: DeploymentState, rollout: Rollout) -> str:
    """The model that answers when this one is rolled back."""
    standby = standby_of(deployment, rollout)
    return standby.model_id if isinstance(standby, Rollout) else standby


def withdraw(rollout: Rollout, reason: str, sentence: str, now: datetime) -> Rollout:
    """It ends without being decided; one that was never validated does not rest, it goes back."""
    if rollout.override:
        return apply_event(rollout, ActionDecided(RollBack(reason, sentence)), now)
    return apply_event(rollout, WithdrawRollout(reason, sentence), now)


def model_state_changes(
    deployment: DeploymentState,
    changed: Iterable[Rollout],
    now: datetime,
    *,
    reward: float | None = None,
) -> tuple[ModelStateChange, ...]:
    """What becomes of the models; `Conflict` where the table does not allow it.

    `reward` is what a promoted model earns. The base, which has no row, stays what it is.
    """
    moves = []
    for rollout in changed:
        state = rollout.model_state
        before = deployment.model_state_of(rollout.model_id)
        if before is None or before is state:
            continue
        moves.append(
            model_state_change(
                deployment,
                rollout.model_id,
                state,
                override=bool(rollout.override),
                now=now,
                reward=reward,
            )
        )
    return tuple(moves)


def model_state_change(
    deployment: DeploymentState,
    model_id: str,
    state: ModelState,
    *,
    override: bool = False,
    now: datetime | None = None,
    reward: float | None = None,
) -> ModelStateChange:
    """One model's next state."""
    before = deployment.model_state_of(model_id)
    if before is None:
        raise Conflict(f"{model_id} is not in the registry.")
    forced = override and state is ModelState.CANARY and before in OVERRIDABLE
    if state not in MODEL_TRANSITIONS[before] and not forced:
        raise Conflict(f"{model_id} is {before}: it cannot be {state}.")
    deployed = state is ModelState.DEPLOYED
    return ModelStateChange(
        model_id,
        state.value,
        (before.value,),
        now if deployed else None,
        reward if deployed else None,
    )


def retire_baseline(deployment: DeploymentState, after: Rollout) -> tuple[ModelStateChange, ...]:
    """A baseline without a rollout of its own rests when another is promoted."""
    if deployment.promoted is not None or deployment.baseline in {deployment.base, after.model_id}:
        return ()
    return (model_state_change(deployment, deployment.baseline, ModelState.RETIRED),)


def restore_standby(
    deployment: DeploymentState, standby: Rollout | str, now: datetime
) -> tuple[ModelStateChange, ...]:
    """And answers again when that one is rolled back."""
    if isinstance(standby, Rollout) or deployment.model_state_of(standby) is not ModelState.RETIRED:
        return ()
    return (model_state_change(deployment, standby, ModelState.DEPLOYED, now=now),)
