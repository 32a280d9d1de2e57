"""How does everything stand, and what plan follows from it?

The rollouts are the truth, and the plan is a function of them:

    promoted            ─▶ baseline; without one, the model that was deployed before, or the base
    its holdback        ─▶ a share for the model before it, while nobody is a candidate
    ramping, paused     ─▶ candidates, the one that ramps first
    ramping             ─▶ a lease: without its controller nobody watches it, so it gets no traffic
    nothing but paused  ─▶ no lease: an operator's word does not run out
    rolled back, aborted, retired ─▶ withdrawn: answers nobody; who stands by may end what it began
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

import msgspec

from upswing.contracts.traffic import Candidate, Plan
from upswing.contracts.traffic import Model as Served
from upswing.contracts.typed import json_decoder
from upswing.deploy.core.holdback import Holdback
from upswing.deploy.core.rollout import Rollout
from upswing.deploy.core.rows import DeploymentRows, ModelStateChange, RolloutRow
from upswing.deploy.core.states import ACTIVE, OVER, WITHDRAWN, ModelState, RolloutState
from upswing.model_flags import PINNABLE
from upswing.records import ModelRow

NO_ROLLOUT = "base"
"""The plan's rollout when none ever was."""
_DECODER = json_decoder(Rollout)


def decode_rollout(row: RolloutRow) -> Rollout:
    return _DECODER.decode(row.body)


def rollout_row(rollout: Rollout) -> RolloutRow:
    return RolloutRow(
        rollout.rollout_id,
        rollout.model_id,
        rollout.baseline_id,
        rollout.state.value,
        rollout.share,
        msgspec.json.encode(rollout),
    )


@dataclass(frozen=True, slots=True)
class DeploymentState:
    """All rollouts that are not over, the oldest first, and the models they are about."""

    base: str
    rollouts: tuple[Rollout, ...] = ()
    models: Mapping[str, ModelRow] = field(default_factory=dict)
    withdrawn_names: tuple[str, ...] = ()
    """Names of models that were withdrawn, by the rows."""

    @property
    def promoted(self) -> Rollout | None:
        found = [each for each in self.rollouts if each.state is RolloutState.PROMOTED]
        return found[-1] if found else None

    @property
    def holdback(self) -> Holdback | None:
        """Who keeps a share beside the promoted model: one that rests, and was not withdrawn since."""
        found = self.promoted.holdback if self.promoted else None
        if found is None or self.active:
            return None
        rests = (
            found.model_id == self.base or self.model_state_of(found.model_id) is ModelState.RETIRED
        )
        return found if rests else None

    @property
    def ramping(self) -> Rollout | None:
        return next((each for each in self.rollouts if each.state is RolloutState.RAMPING), None)

    @property
    def active(self) -> tuple[Rollout, ...]:
        """Those with traffic beside the baseline; whoever ramps comes first."""
        found = [each for each in self.rollouts if each.state in ACTIVE]
        return tuple(sorted(found, key=lambda each: each.state is not RolloutState.RAMPING))

    @property
    def in_progress(self) -> Rollout | None:
        """Whom a newcomer meets: the one that ramps, waits for approval, or is held."""
        waiting = [each for each in self.rollouts if each.state is RolloutState.AWAITING]
        return next(iter((*self.active, *waiting)), None)

    @property
    def queued(self) -> tuple[Rollout, ...]:
        return tuple(each for each in self.rollouts if each.state is RolloutState.QUEUED)

    @property
    def waiting(self) -> tuple[Rollout, ...]:
        """For their turn, or for a person's word."""
        before = {RolloutState.QUEUED, RolloutState.AWAITING}
        return tuple(each for each in self.rollouts if each.state in before)

    @property
    def baseline(self) -> str:
        """Who gets what the candidates leave: always exactly one."""
        if self.promoted is not None:
            return self.promoted.model_id
        answers = [row for row in self.models.values() if row.state == ModelState.DEPLOYED]
        return answers[-1].model_id if answers else self.base

    @property
    def plan_rollout_id(self) -> str:
        """The name that the plan bears."""
        if self.active:
            return self.active[0].rollout_id
        return self.promoted.rollout_id if self.promoted else NO_ROLLOUT

    @property
    def candidate_share(self) -> float:
        return math.fsum(each.share for each in self.active)

    @property
    def withdrawn(self) -> frozenset[str]:
        """Who may answer nobody; a change that no row knows yet counts."""
        known = {name: row.state in WITHDRAWN for name, row in self.models.items()}
        named = {*self.withdrawn_names, *(name for name, gone in known.items() if gone)}
        return frozenset(name for name in named if known.get(name, True))

    def find_rollout(self, rollout_id: str) -> Rollout | None:
        """The rollout of this id, if it is not over."""
        return next((each for each in self.rollouts if each.rollout_id == rollout_id), None)

    def rollout_of(self, model_id: str) -> Rollout | None:
        """The rollout of a model that is being rolled out, or has all of the traffic."""
        live = {RolloutState.QUEUED, RolloutState.AWAITING, RolloutState.PROMOTED, *ACTIVE}
        found = [each for each in self.rollouts if each.model_id == model_id and each.state in live]
        return found[-1] if found else None

    def share_left_for(self, rollout: Rollout) -> float:
        """The share that the others leave."""
        others = [each for each in self.active if each.rollout_id != rollout.rollout_id]
        return 1 - math.fsum(each.share for each in others)

    def version_of(self, model_id: str) -> int:
        row = self.models.get(model_id)
        return row.version if row else 0

    def may_be_pinned(self, model_id: str) -> bool:
        """A change that no row knows yet counts; of one that is not part of the picture the rows have said it."""
        row = self.models.get(model_id)
        return row is None or row.state in PINNABLE

    def model_state_of(self, model_id: str) -> ModelState | None:
        row = self.models.get(model_id)
        return ModelState(row.state) if row else None


def deployment_state_of(rows: DeploymentRows, base: str) -> DeploymentState:
    return DeploymentState(
        base,
        tuple(decode_rollout(row) for row in rows.rollouts),
        {row.model_id: row for row in rows.models},
        rows.withdrawn,
    )


def apply_changes(
    deployment: DeploymentState, changed: Iterable[Rollout], moves: Iterable[ModelStateChange] = ()
) -> DeploymentState:
    """How everything stands after these changes."""
    by_id = {each.rollout_id: each for each in deployment.rollouts}
    by_id |= {each.rollout_id: each for each in changed}
    live = tuple(each for each in by_id.values() if each.state not in OVER)
    models = dict(deployment.models)
    for move in moves:
        if move.model_id in models:
            models[move.model_id] = replace(models[move.model_id], state=move.state)
    return replace(deployment, rollouts=live, models=models)


def without_candidates(deployment: DeploymentState) -> DeploymentState:
    """As if no candidate had traffic."""
    rest = tuple(each for each in deployment.rollouts if each.state not in ACTIVE)
    return replace(deployment, rollouts=rest)


def make_traffic_plan(
    deployment: DeploymentState,
    served: Mapping[str, Served],
    *,
    fence: int,
    version: int,
    lease_until: datetime,
    lease_seconds: float,
    standby: str = "",
    pinned: Iterable[str] = (),
) -> Plan:
    """The plan.

    A candidate that nobody serves is left out; without a served baseline there is no plan (KeyError).
    `standing_by` is the baseline before this one: what began with it may end with it. `pinned` are models
    that gateways are pinned to; what was rolled back since answers there no more either.
    """
    candidates = tuple(
        Candidate(served[each.model_id], each.share)
        for each in deployment.active
        if each.model_id in served
    )
    leased, held = deployment.ramping is not None, deployment.holdback
    trained = deployment.baseline != deployment.base
    named = {deployment.baseline, deployment.base, *(each.model_id for each in deployment.active)}
    pinned_names = sorted(
        name for name in {*pinned} - named if name in served and deployment.may_be_pinned(name)
    )
    return Plan(
        fence=fence,
        rollout=deployment.plan_rollout_id,
        salt=deployment.plan_rollout_id,
        baseline=served[deployment.baseline],
        candidates=candidates,
        lease_until=lease_until if leased else None,
        lease_seconds=lease_seconds if leased else None,
        operator=bool(candidates) and not leased,
        version=version,
        withdrawn=tuple(
            sorted(
                deployment.withdrawn
                - {
                    deployment.baseline,
                    standby,
                    *pinned_names,
                    *(each.model_id for each in deployment.active),
                }
            )
        ),
        holdback=Candidate(served[held.model_id], held.share)
        if held and held.model_id in served
        else None,
        base=served.get(deployment.base) if trained else None,
        trained=trained,
        pinned=tuple(served[name] for name in pinned_names),
    )


def traffic_shares(deployment: DeploymentState) -> dict[str, float]:
    """Model → share; they sum to 1."""
    shares = {each.model_id: each.share for each in deployment.active}
    if (held := deployment.holdback) is not None:
        shares[held.model_id] = held.share
    return {deployment.baseline: max(0.0, 1 - math.fsum(shares.values())), **shares}


def share_against_baseline(deployment: DeploymentState, rollout: Rollout) -> float:
    """The candidate's part of what it and the baseline get together."""
    rest = max(0.0, 1 - deployment.candidate_share)
    both = rollout.share + rest
    return rollout.share / both if both > 0 else 0.0
