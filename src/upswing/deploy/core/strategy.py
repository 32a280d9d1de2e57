"""A model is this much better: how boldly is it rolled out?

| improvement                      | strategy                                                   |
|----------------------------------|------------------------------------------------------------|
| 0.15 or more                     | blue-green: all traffic at once, the old model stands by    |
| 0.05 or more                     | canary, from the usual initial share (10 %)                 |
| 0 or more                        | canary, from 5 %                                            |
| 0 or more, by an estimate alone  | canary, from 5 %, whatever the policy                       |
| 0 or more, but not shown         | canary, from 5 %, once an operator approves                 |
| less than 0                      | abort                                                       |
| NaN, infinite, beyond 1, missing | abort                                                       |

Scores lie between 0 and 1, so an improvement beyond 1 is a mistake of whoever measured it. Without a
passed validation the answer is abort, whatever the improvement; an abort calls a person. An improvement
is shown when its whole interval lies above 0; one that is only probable (`offline.py`) counts as an
estimate, which a canary puts to the test. What may be chance never ships by itself. A policy may
name one strategy for all that would ship, forbid blue-green, or ask for a person's approval first.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

MUCH_BETTER = 0.15
BETTER = 0.05
CAUTIOUS = 0.05
"""The share that a model starts from which is hardly better."""

StrategyName = Literal["auto", "canary", "blue_green", "immediate"]


class StrategyPolicy(Struct, frozen=True, forbid_unknown_fields=True):
    """What the operator decided about strategies."""

    strategy: StrategyName = "auto"
    """`auto`: by improvement. Any other holds for every model that is not worse."""
    initial: Annotated[float, Meta(gt=0, le=0.5)] = 0.10
    """Share of new episodes that a better model starts from, up to 0.5; CANARY_INITIAL_TRAFFIC wins."""
    blue_green: bool = True
    """Whether a much better model may take all traffic at once."""
    approval: bool = False
    """Whether a person has to agree before a model gets its first traffic."""


class CanaryStrategy(Struct, frozen=True, tag="canary"):
    """A canary that grows step by step."""

    share: float
    sentence: str
    approval: bool = False
    shown: bool = True
    """Whether it was shown to be better; if not, a newer model need not wait for it."""


class BlueGreenStrategy(Struct, frozen=True, tag="blue_green"):
    """All traffic at once; the old model stands by and takes over when errors show."""

    sentence: str
    approval: bool = False
    shown: bool = True


class ImmediateStrategy(Struct, frozen=True, tag="immediate"):
    """All traffic at once because the operator's policy says so."""

    sentence: str
    approval: bool = False
    shown: bool = True


class AbortStrategy(Struct, frozen=True, tag="abort"):
    """It does not ship, and a person hears of it."""

    sentence: str


RolloutStrategy = CanaryStrategy | BlueGreenStrategy | ImmediateStrategy
Strategy = CanaryStrategy | BlueGreenStrategy | ImmediateStrategy | AbortStrategy


def choose_strategy(
    improvement: float | None,
    boldness: StrategyPolicy | None = None,
    *,
    passed: bool = True,
    shown: bool = True,
    changed: bool = True,
    estimated: str = "",
) -> Strategy:
    """How a model of this improvement is rolled out.

    `shown`: the whole interval of the improvement lies above 0. `changed`: training moved the model.
    `estimated`: what training says of it, where that decides and not what was played.

    >>> choose_strategy(0.04).sentence
    'It is better by 0.040, less than 0.05: a canary from 5 %.'
    >>> choose_strategy(0.0, shown=False).sentence
    'It is better by 0.000, which may be chance: a canary from 5 %, once an operator approves.'
    >>> choose_strategy(float("nan")).sentence
    'Its improvement is nan, which is no difference of two scores: it does not ship.'
    """
    policy = boldness or StrategyPolicy()
    if not changed:
        return AbortStrategy("Training did not change it: it is not validated, and does not ship.")
    if not passed:
        return AbortStrategy("Its validation did not pass: it does not ship.")
    if improvement is None:
        return AbortStrategy("Nobody has measured its improvement: it does not ship.")
    if not -1 <= improvement <= 1:
        return AbortStrategy(
            f"Its improvement is {improvement:g}, which is no difference of two scores: "
            "it does not ship."
        )
    if not improvement >= 0:
        return AbortStrategy(f"It is worse by {-improvement:.3f}: it does not ship.")
    if not shown:
        return _strategy_when_unproven(improvement, policy)
    if estimated:
        share = min(CAUTIOUS, policy.initial)
        sentence = f"{estimated} A canary from {share * 100:g} % tells whether that is so."
        return CanaryStrategy(share, sentence, policy.approval)
    return _strategy_for_improvement(improvement, policy)


def _strategy_when_unproven(improvement: float, policy: StrategyPolicy) -> CanaryStrategy:
    """Whatever the policy is, what may be chance waits for a person, and begins with little."""
    share = min(CAUTIOUS, policy.initial)
    sentence = (
        f"It is better by {improvement:.3f}, which may be chance: "
        f"a canary from {share * 100:g} %, once an operator approves."
    )
    return CanaryStrategy(share, sentence, approval=True, shown=False)


def _strategy_for_improvement(improvement: float, policy: StrategyPolicy) -> RolloutStrategy:
    claim = f"It is better by {improvement:.3f}"
    if policy.strategy == "immediate":
        return ImmediateStrategy(f"{claim}, and the policy is to ship at once.", policy.approval)
    allowed = policy.blue_green and improvement >= MUCH_BETTER
    if policy.strategy == "blue_green" or (policy.strategy == "auto" and allowed):
        why = "0.15 or more" if allowed else "and the policy is blue-green"
        return BlueGreenStrategy(f"{claim}, {why}: blue-green.", policy.approval)
    if improvement >= BETTER:
        share, why = policy.initial, "0.05 or more"
    else:
        share, why = min(CAUTIOUS, policy.initial), "less than 0.05"
    return CanaryStrategy(
        share, f"{claim}, {why}: a canary from {share * 100:g} %.", policy.approval
    )
