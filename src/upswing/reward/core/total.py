"""What is it worth in all, and how did that number come about?

    raw total = Σ weight × score            what monitoring, canaries and triggers read
    total     = Σ weight × normalised score what training reads

A component that is absent gives its weight to the others, in proportion to theirs. (When only
components of weight 0 are there, they count alike.) Each component is normalised against its own
history; `normalization` of the reward says how, and what the last raw totals were: their mean,
deviation and extremes, from `baselines["raw_total"]`. The numbers of each component stand in its
`raw_data`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import fsum
from typing import Any, Literal
from uuid import UUID, uuid5

import msgspec
from msgspec import UNSET, UnsetType

from upswing.contracts import Reward, Trajectory
from upswing.contracts.reward import Component, Normalization
from upswing.contracts.steps import finite_number_or_none
from upswing.reward.core.baseline import (
    Method,
    NormalisedScore,
    TrailingWindow,
    Used,
    normalise,
    renormalise,
)
from upswing.reward.core.score import Score

RAW_TOTAL = "raw_total"
"""The name of the raw totals' own window among the baselines."""


@dataclass(frozen=True, slots=True)
class RewardTerm:
    """One component's part of the total."""

    name: str
    score: Score
    weight: float
    """As used: with its share of what absent components left."""
    normalised: NormalisedScore


@dataclass(frozen=True, slots=True)
class RewardTotal:
    """The reward as a sum, term by term."""

    terms: tuple[RewardTerm, ...]
    raw_total: float
    total: float
    method: Used
    absent: tuple[str, ...]
    history: NormalisedScore
    """Where the raw total stands among the last ones."""


def scale_weights(present: Mapping[str, float]) -> dict[str, float]:
    """These weights, scaled to sum to 1.

    >>> scale_weights({"a": 0.4, "b": 0.1}), scale_weights({"a": 0.0, "b": 0.0})
    ({'a': 0.8, 'b': 0.2}, {'a': 0.5, 'b': 0.5})
    """
    whole = fsum(present.values())
    if whole > 0:
        return {name: round(weight / whole, 12) for name, weight in present.items()}
    return {name: 1 / len(present) for name in present}


def combine_scores(
    scores: Mapping[str, Score | None],
    weights: Mapping[str, float],
    baselines: Mapping[str, TrailingWindow],
    method: Method = "z-score",
) -> RewardTotal:
    """The total of the scores that are there."""
    present = {name: score for name, score in scores.items() if score is not None}
    if not present:
        raise ValueError("a reward needs at least one component")
    used = scale_weights({name: weights[name] for name in present})
    terms = tuple(
        RewardTerm(name, score, used[name], normalise(score.value, baselines.get(name), method))
        for name, score in present.items()
    )
    raw_total = _rounded_sum(term.weight * term.score.value for term in terms)
    return RewardTotal(
        terms=terms,
        raw_total=raw_total,
        total=_rounded_sum(term.weight * term.normalised.value for term in terms),
        method=method if any(term.normalised.method == method for term in terms) else "none",
        absent=tuple(name for name in weights if name not in present),
        history=normalise(raw_total, baselines.get(RAW_TOTAL), method),
    )


def _rounded_sum(parts: Any) -> float:
    return min(1.0, max(0.0, round(fsum(parts), 12)))


def reward_id(trajectory_id: UUID, revision: int) -> UUID:
    """The same for the same trajectory and revision, whoever computes it."""
    return uuid5(trajectory_id, f"reward/{revision}")


def build_reward(
    total: RewardTotal,
    trajectory: Trajectory,
    *,
    now: datetime,
    revision: int = 1,
    evaluator: str = "upswing",
    metadata: Mapping[str, Any] | None = None,
) -> Reward:
    """The message. `metadata` adds what the store knows: window_id, scenario_id, …"""
    history = total.history
    return Reward(
        reward_id=reward_id(trajectory.trajectory_id, revision),
        trajectory_id=trajectory.trajectory_id,
        session_id=trajectory.session_id,
        timestamp=now,
        reward_components={term.name: _component_of_term(term) for term in total.terms},
        total_reward=total.total,
        reward_type="dense",
        normalization=Normalization(
            method=total.method,
            mean=_number_or_unset(history.mean),
            std=_number_or_unset(history.std),
            min=_number_or_unset(history.min),
            max=_number_or_unset(history.max),
        ),
        metadata={
            **(metadata or {}),
            "evaluator": evaluator,
            "evaluation_method": evaluation_method(total),
            "confidence": _rounded_sum(term.weight * term.score.confidence for term in total.terms),
            "revision": revision,
            "raw_total": total.raw_total,
            "model": trajectory.metadata["model"],
            **({"absent": list(total.absent)} if total.absent else {}),
        },
    )


def evaluation_method(total: RewardTotal) -> Literal["automated", "human", "hybrid"]:
    """Whether people had a say: a neutral score because nobody spoke is no say."""
    spoke = {
        term.score.source == "human"
        and (finite_number_or_none(term.score.raw_data.get("voices", 1)) or 0) > 0
        for term in total.terms
    }
    return "automated" if spoke == {False} else "human" if spoke == {True} else "hybrid"


def _component_of_term(term: RewardTerm) -> Component:
    beside = term.normalised
    known = {"mean": beside.mean, "std": beside.std, "min": beside.min, "max": beside.max}
    compared = known if beside.method != "none" else {}
    return Component(
        score=term.score.value,
        weight=term.weight,
        source=term.score.source,
        reasoning=term.score.reasoning,
        raw_data={
            **term.score.raw_data,
            "normalised": beside.value,
            "normalisation": {"method": beside.method, **compared},
            "confidence": term.score.confidence,
        },
    )


def next_revision(
    reward: Reward, changed: Mapping[str, Component], *, now: datetime, metadata: Mapping[str, Any]
) -> Reward:
    """The next revision: some components are new, everything else stays as it was.

    What a component was compared with stands in its `raw_data`, so the history of that time is
    used, however long ago it was, and every replica comes to the same number.
    """
    components = {**reward.reward_components, **changed}
    revision = int(finite_number_or_none(reward.metadata.get("revision")) or 1) + 1
    raw = _rounded_sum(one.weight * one.score for one in components.values())
    total = _rounded_sum(one.weight * _normalised_value(one) for one in components.values())
    return msgspec.structs.replace(
        reward,
        reward_id=reward_id(reward.trajectory_id, revision),
        timestamp=now,
        reward_components=components,
        total_reward=total,
        metadata={**reward.metadata, **metadata, "revision": revision, "raw_total": raw},
    )


def rescore_component(old: Component, score: Score) -> Component:
    """A component with another score, beside the same history as before."""
    data = {} if isinstance(old.raw_data, UnsetType) else old.raw_data
    how = data.get("normalisation")
    normalisation = how if isinstance(how, dict) else {"method": "none"}
    beside = renormalise(score.value, normalisation)
    return Component(
        score=score.value,
        weight=old.weight,
        source=score.source,
        reasoning=score.reasoning,
        raw_data={
            **score.raw_data,
            "normalised": beside,
            "normalisation": normalisation,
            "confidence": score.confidence,
        },
    )


def _normalised_value(one: Component) -> float:
    data = {} if isinstance(one.raw_data, UnsetType) else one.raw_data
    value = finite_number_or_none(data.get("normalised"))
    return one.score if value is None else value


def _number_or_unset(value: float | None) -> float | UnsetType:
    return UNSET if value is None else value


def explain_reward(reward: Reward) -> list[str]:
    """The sum as lines for a person; also of rewards that others made."""
    components = reward.reward_components
    width = max([len(name) for name in components], default=0)
    lines = [_component_line(name.ljust(width), one) for name, one in components.items()]
    raw = finite_number_or_none(reward.metadata.get("raw_total"))
    if raw is not None:
        lines.append(f"raw total {raw:.4g}, the sum of weight × score")
    normalization = reward.normalization
    method = "none" if isinstance(normalization, UnsetType) else normalization.method
    beside = "" if method in ("none", UNSET) else f", normalised by {method} against its history"
    lines.append(f"total {reward.total_reward:.4g}{beside}")
    absent = reward.metadata.get("absent")
    if isinstance(absent, list) and absent:
        lines.append(f"absent, weight shared out: {', '.join(map(str, absent))}")
    return lines


def _component_line(name: str, one: Component) -> str:
    data = {} if isinstance(one.raw_data, UnsetType) else one.raw_data
    normal, how = finite_number_or_none(data.get("normalised")), data.get("normalisation")
    method = how.get("method") if isinstance(how, dict) else "none"
    beside = "" if normal is None or method == "none" else f" (normalised {normal:.3f})"
    why = "" if isinstance(one.reasoning, UnsetType) else f"  {one.reasoning}"
    return f"{name}  {one.weight:.3f} × {one.score:.3f} = {one.weight * one.score:.4f}{beside}{why}"
