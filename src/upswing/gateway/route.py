"""Which model answers this episode?

A number from 0 to 1 decides at its first request, drawn by chance for this episode alone:

    0 ────────────┬─────────────────────────────┬────────────── 1
     1st candidate│          baseline           │ other candidates
                  └▶ grows into the baseline    ◀┘ in their order

So episodes are independent of each other whoever asks, which is what a canary's test rests on. Where users
are to keep their model from one episode to the next, the number is a bucket of the user instead, salted with
the rollout; raising the share of the first candidate then moves users toward it and no other, and two models
side by side never take from each other. Afterwards the episode stays with its model:

| its model is now                           | the episode                                |
|--------------------------------------------|--------------------------------------------|
| in the plan, as baseline or candidate      | stays                                      |
| replaced as baseline by a promotion        | stays, where that model was last           |
| withdrawn (rollback, lease over, not allowed) | goes to the baseline, and is marked     |

A model that the plan names as withdrawn is had by no way at all, whatever was known of it before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from upswing.gateway.allowance import Allowance, allowed
from upswing.gateway.plan import Candidate, Model, Plan


@dataclass(frozen=True, slots=True)
class Choice:
    """Who answers, and in which part."""

    model: Model
    candidate: bool


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

    def by_id(self, model_id: str) -> Choice | None:
        if model_id == self.plan.baseline.model_id:
            return self.baseline
        for candidate in self.candidates:
            if candidate.model.model_id == model_id:
                return Choice(candidate.model, candidate=True)
        return None


def table_of(plan: Plan, allowance: Allowance, *, leased: bool = True) -> Table:
    """What holds now; without a lease only the baseline does."""
    candidates = allowed(plan, allowance) if leased else ()
    first, *rest = candidates or (None,)
    others = []
    top = 1.0
    for candidate in rest:
        if candidate is not None:
            top -= candidate.share
            others.append((top, Choice(candidate.model, candidate=True)))
    return Table(
        plan,
        candidates,
        Choice(plan.baseline, candidate=False),
        Choice(first.model, candidate=True) if first else None,
        first.share if first else 0.0,
        tuple(others),
        frozenset(plan.withdrawn),
    )


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
    for begins, choice in table.others:
        if place >= begins:
            return choice
    return table.baseline


def stay(table: Table, model_id: str, retired: Mapping[str, Model]) -> Choice | None:
    """Who goes on answering an episode of `model_id`; None: it has to change to the baseline."""
    if (choice := table.by_id(model_id)) is not None:
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
    """What the candidates' shares are: episodes that began under the same ones can be compared.

    >>> base = Model("m", "http://h", "m")
    >>> new = Candidate(Model("n", "http://h", "n"), 0.05)
    >>> step_of(table_of(Plan(1, "r", "s", base, (new,)), Allowance()))
    '0.05'
    """
    return "+".join(f"{candidate.share:g}" for candidate in table.candidates)


def shares(table: Table) -> dict[str, float]:
    """Model → its share of the new episodes; they sum to 1."""
    told = {candidate.model.model_id: candidate.share for candidate in table.candidates}
    return {table.plan.baseline.model_id: max(0.0, 1 - math.fsum(told.values())), **told}
