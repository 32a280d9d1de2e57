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

A model that the plan names as withdrawn is had by no way at all, whatever was known of it before. Where a
switch gives everything to one model (`upswing.gateway.allowance`), every episode goes to that one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from upswing.contracts.traffic import HOLDBACK
from upswing.errors import Transient
from upswing.gateway.allowance import Allowance, Shares, Sole, allotted, sole
from upswing.gateway.plan import Candidate, Model, Plan
from upswing.rl_models import PERCENTAGE, VERSION


@dataclass(frozen=True, slots=True)
class Choice:
    """Who answers, and in which part."""

    model: Model
    candidate: bool
    switch: str = ""
    """The switch because of which it answers: then it is nobody's evidence."""


@dataclass(frozen=True, slots=True)
class Table:
    """A plan with everything worked in that does not depend on the episode."""

    plan: Plan
    candidates: tuple[Candidate, ...]
    baseline: Choice
    first: Choice | None
    below: float
    """Buckets below it are the first candidate's."""
    others: tuple[tuple[float, Choice], ...]
    """(where it begins, who), from the top down."""
    withdrawn: frozenset[str] = frozenset()
    holdback: Candidate | None = None
    base: Choice | None = None
    """The untrained model, where a cap keeps trained ones from some episodes."""
    beyond: float = 0.0
    """The share of those."""
    most: float = 1.0
    """The cap."""
    switch: str = ""
    """The one that gives everything to `baseline`."""
    missing: str = ""
    """What a person should hear of."""

    def by_id(self, model_id: str) -> Choice | None:
        if model_id == self.baseline.model.model_id:
            return self.baseline
        for candidate in self.candidates:
            if candidate.model.model_id == model_id:
                return Choice(candidate.model, candidate=True)
        if self.holdback is not None and model_id == self.holdback.model.model_id:
            return Choice(self.holdback.model, candidate=False)
        return self.base if self.base and model_id == self.base.model.model_id else None

    def named(self, model_id: str) -> Choice | None:
        """Whom a client gets by asking: nobody is had so whom only chance may give, or who has retired."""
        held = self.holdback is not None and model_id == self.holdback.model.model_id
        return None if held else self.by_id(model_id)

    def models(self) -> tuple[Model, ...]:
        """Who can be asked for here."""
        if self.switch:
            return (self.baseline.model,)
        return self.plan.models()

    def beside(self, model: Model) -> bool:
        """Would a server that is away take the others with it that this model is compared with?"""
        other = self.baseline.model
        if model.model_id == other.model_id and self.holdback is not None:
            other = self.holdback.model
        return model.backend == other.backend

    def is_trained(self, model: Model) -> bool:
        base = self.plan.untrained
        return base is None or model.model_id != base.model_id

    def instead_of(self, choice: Choice, switch: str = "") -> Choice | None:
        """Who answers when this one fails; `switch`: what its episode was drawn by. None: nobody.

        A trained model never stands in for the base where a switch wants that.
        """
        base = self.plan.untrained
        if self.switch == VERSION and base is not None and choice.model != base:
            return Choice(base, candidate=False, switch=VERSION)
        if self.switch:
            return None if choice.model == self.baseline.model else self.baseline
        if not self.is_trained(choice.model) and (switch or self.most < 1):
            return None
        return self.baseline if choice.candidate or choice.model != self.baseline.model else None


def table_of(plan: Plan, allowance: Allowance, *, leased: bool = True) -> Table:
    """What holds now; without a lease no candidate does. `Transient` when the base is wanted and not served."""
    if (only := sole(plan, allowance)) is not None:
        return _alone(plan, only)
    shares = allotted(plan, allowance, leased=leased)
    base = plan.untrained
    if base is None and shares.beyond:
        raise _unserved(PERCENTAGE)
    capped = base is not None and allowance.most < 1
    first, others = _placed(shares)
    return Table(
        plan,
        shares.candidates,
        Choice(plan.baseline, candidate=False),
        Choice(first.model, candidate=True) if first else None,
        first.share if first else 0.0,
        others,
        frozenset(plan.withdrawn),
        shares.holdback,
        Choice(base, candidate=False, switch=PERCENTAGE) if base and capped else None,
        shares.beyond,
        allowance.most,
    )


def _alone(plan: Plan, only: Sole) -> Table:
    """One model answers everybody."""
    if only.model is None:
        raise _unserved(only.switch)
    choice = Choice(only.model, candidate=False, switch=only.switch)
    gone = frozenset(plan.withdrawn)
    return Table(plan, (), choice, None, 0.0, (), gone, switch=only.switch, missing=only.missing)


def _placed(shares: Shares) -> tuple[Candidate | None, tuple[tuple[float, Choice], ...]]:
    """The first candidate from below, all others from above; below those, what a cap leaves the base."""
    first, *rest = shares.candidates or (None,)
    others, top = [], 1.0
    for candidate in rest:
        if candidate is not None:
            top -= candidate.share
            others.append((top, Choice(candidate.model, candidate=True)))
    if shares.holdback is not None:
        top -= shares.holdback.share
        others.append((top, Choice(shares.holdback.model, candidate=False)))
    return first, tuple(others)


def _unserved(switch: str) -> Transient:
    return Transient(f"{switch} wants the base model to answer, and no server has it yet.")


def bucket(salt: str, user: str) -> float:
    """Where a user lies in [0, 1): the same wherever it is asked.

    >>> round(bucket("rollout-7", "ann"), 6)
    0.059919
    """
    digest = sha256(f"{salt}\0{user}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def choose(table: Table, place: float) -> Choice:
    """Who answers an episode that nobody has answered yet and that lies there in [0, 1)."""
    if table.first is not None and place < table.below:
        return table.first
    top = 1.0
    for top, choice in table.others:
        if place >= top:
            return choice
    if table.base is not None and place >= top - table.beyond:
        return table.base
    return table.baseline


def stay(table: Table, model_id: str, retired: Mapping[str, Model]) -> Choice | None:
    """Who goes on answering an episode of `model_id`; None: it has to change to the baseline."""
    if (choice := table.by_id(model_id)) is not None or table.switch:
        return choice
    model = None if model_id in table.withdrawn else retired.get(model_id)
    return Choice(model, candidate=False) if model else None


def retire(held: Plan, new: Plan, retired: Mapping[str, Model]) -> dict[str, Model]:
    """The former baselines whose episodes may end where they began.

    A baseline that comes back takes its successor's place: that one is withdrawn, not retired. A
    gateway that was started since then knows it from the plan alone.
    """
    gone = {new.baseline.model_id, *new.withdrawn}
    kept = {name: model for name, model in retired.items() if name not in gone}
    if new.baseline.model_id not in retired and held.baseline.model_id not in gone:
        kept[held.baseline.model_id] = held.baseline
    return kept


def step_of(table: Table) -> str:
    """What the shares are, of the episodes that no cap decides: those that began under the same can be compared.

    >>> base = Model("m", "http://h", "m")
    >>> new = Candidate(Model("n", "http://h", "n"), 0.05)
    >>> step_of(table_of(Plan(1, "r", "s", base, (new,)), Allowance()))
    '0.05'
    """
    drawn = 1 - table.beyond
    told = [f"{each.share / drawn:g}" for each in table.candidates if drawn > 0]
    if table.holdback is not None and drawn > 0:
        told.append(f"{HOLDBACK}{table.holdback.share / drawn:g}")
    return "+".join(told)


def shares(table: Table) -> dict[str, float]:
    """Model → its share of the new episodes; they sum to 1."""
    parts = (*table.candidates, *((table.holdback,) if table.holdback else ()))
    told = {part.model.model_id: part.share for part in parts}
    rest = max(0.0, 1 - math.fsum((*told.values(), table.beyond)))
    told = {table.baseline.model.model_id: rest, **told}
    if table.base is not None and table.beyond:
        name = table.base.model.model_id
        told[name] = told.get(name, 0.0) + table.beyond
    return told
