"""How far has a policy moved from where the job began, is it better, and should the job go on?

| the job stops, and that is a normal end  | when                                                   |
|------------------------------------------|--------------------------------------------------------|
| `kl_budget`                              | a reply is farther from the start policy than allowed  |
| `diversity`                              | every prompt gets the same reply, and it was not so    |
| `no_gain`                                | `PATIENCE` times the value was below its best, beyond  |
|                                          | what chance explains                                   |

The checkpoint that ships is the best by fresh samples, where tasks can be played; else by an estimate
from logged episodes that rests on `MIN_EFFECTIVE` of them or more; else the last one within the budget.
Of several that chance alone may tell apart, the last ships: it has learned most.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isnan, sqrt
from typing import Literal

import msgspec

from upswing.train.core.recipe import KL_PER_REPLY, KL_PER_TOKEN, Recipe

PATIENCE = 3
"""Evaluations without a gain after which a job stops."""
MIN_EFFECTIVE = 50.0
"""Episodes that an estimate from logged data must really rest on to decide anything."""
UNKNOWN_KL = 1e6
"""Nats a reply of a policy whose words are no numbers any more: no budget allows that."""
UNCHANGED_KL = 1e-3
"""Nats a reply below which a policy counts as the one it began as."""
_VARIED, _CONSTANT = 1.5, 1.1
"""Effective number of different replies: a start above the first that falls below the second has
collapsed to a constant."""

EvaluationSource = Literal["fresh", "logged"]
StopReason = Literal["kl_budget", "diversity", "no_gain"]


class PolicyEvaluation(msgspec.Struct, frozen=True):
    """What was measured after a step; step 0 is the start policy itself."""

    step: int
    kl: float
    """KL(new ‖ start), in nats a reply: exact over the vocabulary at every token of logged replies."""
    diversity: float
    """Effective number of different first tokens over the prompts: e to the entropy of their mean."""
    value: float | None = None
    """Mean reward on held-out tasks."""
    effective: float = 0.0
    """Episodes that the value rests on."""
    source: EvaluationSource = "logged"

    @property
    def noise(self) -> float:
        """How far chance alone may move the value: a standard error of rewards from 0 to 1."""
        return 0.5 / sqrt(max(1.0, self.effective))

    @property
    def reliable(self) -> bool:
        """Whether its value may decide anything."""
        measured = self.value is not None and isfinite(self.value)
        return measured and (self.source == "fresh" or self.effective >= MIN_EFFECTIVE)


def kl_budget(recipe: Recipe, tokens_per_reply: float) -> float:
    """How far a reply may be from what the start policy would have said, in nats.

    >>> kl_budget(Recipe(), 2), kl_budget(Recipe(), 200), kl_budget(Recipe(kl_budget=3), 200)
    (3.0, 20.0, 3)
    """
    if recipe.kl_budget is not None:
        return recipe.kl_budget
    return max(KL_PER_REPLY, KL_PER_TOKEN * tokens_per_reply)


def early_stop(history: Sequence[PolicyEvaluation], kl_budget: float) -> StopReason | None:
    """Why the job should end after the last of these evaluations; None: it goes on."""
    if len(history) < 2:
        return None
    start, last = history[0], history[-1]
    if not _within_budget(last, kl_budget):
        return "kl_budget"
    if start.diversity > _VARIED and not last.diversity >= _CONSTANT:
        return "diversity"
    alike = [each for each in history if each.source == last.source]
    best = _highest_value(alike[:-PATIENCE])
    recent = alike[-PATIENCE:]
    if best is not None and all(_is_worse(each, best) for each in recent):
        return "no_gain"
    return None


def best_evaluation(history: Sequence[PolicyEvaluation], kl_budget: float) -> PolicyEvaluation:
    """The evaluation whose weights ship; never the start policy, which is there already.

    >>> start, one, two = (PolicyEvaluation(step, kl, 4.0) for step, kl in ((0, 0.0), (5, 1.0), (9, 2.0)))
    >>> best_evaluation([start, one, two], 1.5).step, best_evaluation([start, two], 1.5).step
    (5, 9)
    """
    moved = history[1:] or history
    varied = history[0].diversity > _VARIED
    within = [
        each
        for each in moved
        if _within_budget(each, kl_budget) and (not varied or each.diversity >= _CONSTANT)
    ]
    if not within:
        return min(moved, key=lambda each: UNKNOWN_KL if isnan(each.kl) else each.kl)
    best = _highest_value([each for each in within if each.source == within[-1].source])
    if best is None or not within[-1].reliable:
        return within[-1]
    return next(
        each
        for each in reversed(within)
        if each.source == best.source and each.reliable and not _is_worse(each, best)
    )


def _within_budget(evaluation: PolicyEvaluation, budget: float) -> bool:
    return evaluation.kl <= budget and evaluation.kl < UNKNOWN_KL


def _highest_value(evaluations: Sequence[PolicyEvaluation]) -> PolicyEvaluation | None:
    measured = [each for each in evaluations if each.reliable]
    return max(measured, key=lambda each: each.value or 0.0, default=None)


def _is_worse(evaluation: PolicyEvaluation, best: PolicyEvaluation) -> bool:
    """Whether it is certainly worse; who has no reliable value is not."""
    return evaluation.reliable and (evaluation.value or 0.0) < (best.value or 0.0) - best.noise


def is_unchanged(kl: float | None, changed: float | None) -> bool:
    """Whether nothing came of a job: the policy is the one it began as, as far as can be seen."""
    return kl is not None and kl < UNCHANGED_KL and not changed


def no_change_advice(recipe: Recipe, *, usable_groups: int, steps: int) -> str:
    """What to try when nothing came of a job."""
    if usable_groups < 8:
        return (
            f"Only {usable_groups} groups had a difference to learn from: record more attempts at "
            "tasks that are solved sometimes, and sample at a temperature above 0."
        )
    if steps < 10:
        return f"It took only {steps} steps: set a smaller `batch_size` or more `epochs`, or record more."
    return (
        f"Nothing moved at a learning rate of {recipe.learning_rate:g}: try ten times as much, or "
        "leave it unset so that it is fitted to the base."
    )
