"""Which model answers this episode?

A number from 0 to 1 decides at its first request, drawn by chance for this episode alone:

    0 ────────────┬────────────────────┬──────────────┬────────────── 1
     1st candidate│      baseline      │ base, because│ holdback, other
                  └▶ grows into it     │ of a cap     │ candidates

So episodes are independent of each other whoever asks, which is what a canary's test rests on. Where users
are to keep their model from one episode to the next, the number is a bucket of the user instead, salted with
the rollout; raising the share of the first candidate then moves users toward it and no other, and two models
side by side never take from each other. Afterwards the episode stays with its model:

| its model is now                           | the episode                                |
|--------------------------------------------|--------------------------------------------|
| in the plan, as baseline or candidate      | stays                                      |
| replaced as baseline by a promotion        | stays, where that model was last           |
| withdrawn (rollback, lease over, not allowed) | goes to the baseline, and is marked     |

A model that the plan names as withdrawn cannot be requested at all, whatever was known of it before. Where a
switch gives everything to one model (`upswing.gateway.core.serving_policy`), every episode goes to that one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from upswing.contracts.traffic import HOLDBACK, Candidate, Model, Plan
from upswing.errors import Transient
from upswing.gateway.core.serving_policy import (
    CappedShares,
    ServingPolicy,
    SoleModel,
    capped_shares,
    sole_model,
)
from upswing.model_flags import PERCENTAGE, VERSION


@dataclass(frozen=True, slots=True)
class RouteTarget:
    """Who answers, and in which part."""

    model: Model
    candidate: bool
    switch: str = ""
    """The switch because of which it answers: then it is nobody's evidence."""


@dataclass(frozen=True, slots=True)
class RoutingTable:
    """A plan with everything worked in that does not depend on the episode."""

    plan: Plan
    candidates: tuple[Candidate, ...]
    baseline: RouteTarget
    first_candidate: RouteTarget | None
    first_share: float
    """Buckets below it are the first candidate's."""
    others: tuple[tuple[float, RouteTarget], ...]
    """(where it begins, who), from the top down."""
    withdrawn: frozenset[str] = frozenset()
    holdback: Candidate | None = None
    base: RouteTarget | None = None
    """The untrained model, where a cap keeps trained ones from some episodes."""
    base_share: float = 0.0
    """The share of those."""
    max_share: float = 1.0
    """The cap."""
    switch: str = ""
    """The one that gives everything to `baseline`."""
    alert: str = ""
    """For an operator; empty: nothing."""

    def target_by_id(self, model_id: str) -> RouteTarget | None:
        if model_id == self.baseline.model.model_id:
            return self.baseline
        for candidate in self.candidates:
            if candidate.model.model_id == model_id:
                return RouteTarget(candidate.model, candidate=True)
        if self.holdback is not None and model_id == self.holdback.model.model_id:
            return RouteTarget(self.holdback.model, candidate=False)
        return self.base if self.base and model_id == self.base.model.model_id else None

    def requestable_target(self, model_id: str) -> RouteTarget | None:
        """Whom a client gets by asking: nobody is had so whom only chance may give, or who has retired."""
        held_back = self.holdback is not None and model_id == self.holdback.model.model_id
        return None if held_back else self.target_by_id(model_id)

    def listed_models(self) -> tuple[Model, ...]:
        """Who can be asked for here."""
        if self.switch:
            return (self.baseline.model,)
        return self.plan.models()

    def shares_baseline_server(self, model: Model) -> bool:
        """Would a server that is away take the others with it that this model is compared with?"""
        other = self.baseline.model
        if model.model_id == other.model_id and self.holdback is not None:
            other = self.holdback.model
        return model.backend == other.backend

    def is_trained(self, model: Model) -> bool:
        base = self.plan.untrained
        return base is None or model.model_id != base.model_id

    def fallback_for(self, target: RouteTarget, switch: str = "") -> RouteTarget | None:
        """Who answers when this one fails; `switch`: what its episode was drawn by. None: nobody.

        A trained model never stands in for the base where a switch wants that.
        """
        base = self.plan.untrained
        if self.switch == VERSION and base is not None and target.model != base:
            return RouteTarget(base, candidate=False, switch=VERSION)
        if self.switch:
            return None if target.model == self.baseline.model else self.baseline
        if not self.is_trained(target.model) and (switch or self.max_share < 1):
            return None
        return self.baseline if target.candidate or target.model != self.baseline.model else None


def build_routing_table(plan: Plan, policy: ServingPolicy, *, leased: bool = True) -> RoutingTable:
    """What holds now; without a lease no candidate does. `Transient` when the base is wanted and not served."""
    if (sole := sole_model(plan, policy)) is not None:
        return _single_model_table(plan, sole)
    shares = capped_shares(plan, policy, leased=leased)
    base = plan.untrained
    if base is None and shares.base_share:
        raise _base_not_served(PERCENTAGE)
    capped = base is not None and policy.max_share < 1
    first_candidate, others = _scale_positions(shares)
    return RoutingTable(
        plan,
        shares.candidates,
        RouteTarget(plan.baseline, candidate=False),
        RouteTarget(first_candidate.model, candidate=True) if first_candidate else None,
        first_candidate.share if first_candidate else 0.0,
        others,
        frozenset(plan.withdrawn),
        shares.holdback,
        RouteTarget(base, candidate=False, switch=PERCENTAGE) if base and capped else None,
        shares.base_share,
        policy.max_share,
    )


def _single_model_table(plan: Plan, sole: SoleModel) -> RoutingTable:
    """One model answers everybody."""
    if sole.model is None:
        raise _base_not_served(sole.switch)
    target = RouteTarget(sole.model, candidate=False, switch=sole.switch)
    gone = frozenset(plan.withdrawn)
    return RoutingTable(plan, (), target, None, 0.0, (), gone, switch=sole.switch, alert=sole.alert)


def _scale_positions(
    shares: CappedShares,
) -> tuple[Candidate | None, tuple[tuple[float, RouteTarget], ...]]:
    """The first candidate from below, all others from above; below those, what a cap leaves the base."""
    first_candidate, *rest = shares.candidates or (None,)
    others, top = [], 1.0
    for candidate in rest:
        if candidate is not None:
            top -= candidate.share
            others.append((top, RouteTarget(candidate.model, candidate=True)))
    if shares.holdback is not None:
        top -= shares.holdback.share
        others.append((top, RouteTarget(shares.holdback.model, candidate=False)))
    return first_candidate, tuple(others)


def _base_not_served(switch: str) -> Transient:
    return Transient(f"{switch} wants the base model to answer, and no server has it yet.")


def user_bucket(salt: str, user: str) -> float:
    """Where a user lies in [0, 1): the same wherever it is asked.

    >>> round(user_bucket("rollout-7", "ann"), 6)
    0.059919
    """
    digest = sha256(f"{salt}\0{user}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def draw_target(table: RoutingTable, position: float) -> RouteTarget:
    """Who answers an episode that nobody has answered yet and that lies there in [0, 1)."""
    if table.first_candidate is not None and position < table.first_share:
        return table.first_candidate
    top = 1.0
    for top, target in table.others:
        if position >= top:
            return target
    if table.base is not None and position >= top - table.base_share:
        return table.base
    return table.baseline


def continuing_target(
    table: RoutingTable, model_id: str, retired: Mapping[str, Model]
) -> RouteTarget | None:
    """Who goes on answering an episode of `model_id`; None: it has to change to the baseline."""
    if (target := table.target_by_id(model_id)) is not None or table.switch:
        return target
    model = None if model_id in table.withdrawn else retired.get(model_id)
    return RouteTarget(model, candidate=False) if model else None


def retired_baselines(current: Plan, new: Plan, retired: Mapping[str, Model]) -> dict[str, Model]:
    """The former baselines whose episodes may end where they began.

    A baseline that comes back takes its successor's place: that one is withdrawn, not retired. A
    gateway that was started since then knows it from the plan alone.
    """
    gone = {new.baseline.model_id, *new.withdrawn}
    kept = {name: model for name, model in retired.items() if name not in gone}
    if new.baseline.model_id not in retired and current.baseline.model_id not in gone:
        kept[current.baseline.model_id] = current.baseline
    return kept


def shares_label(table: RoutingTable) -> str:
    """What the shares are, of the episodes that no cap decides: those that began under the same can be compared.

    >>> base = Model("m", "http://h", "m")
    >>> new = Candidate(Model("n", "http://h", "n"), 0.05)
    >>> shares_label(build_routing_table(Plan(1, "r", "s", base, (new,)), ServingPolicy()))
    '0.05'
    """
    drawn = 1 - table.base_share
    labels = [f"{each.share / drawn:g}" for each in table.candidates if drawn > 0]
    if table.holdback is not None and drawn > 0:
        labels.append(f"{HOLDBACK}{table.holdback.share / drawn:g}")
    return "+".join(labels)


def traffic_shares(table: RoutingTable) -> dict[str, float]:
    """Model → its share of the new episodes; they sum to 1."""
    parts = (*table.candidates, *((table.holdback,) if table.holdback else ()))
    shares = {part.model.model_id: part.share for part in parts}
    rest = max(0.0, 1 - math.fsum((*shares.values(), table.base_share)))
    shares = {table.baseline.model.model_id: rest, **shares}
    if table.base is not None and table.base_share:
        name = table.base.model.model_id
        shares[name] = shares.get(name, 0.0) + table.base_share
    return shares
