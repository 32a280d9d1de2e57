"""Why was a trajectory worth what it was? A reward.v1 as terms, and its revisions in a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from upswing.dashboard.answers import ApiRevision
from upswing.dashboard.core.wording import score


@dataclass(frozen=True, slots=True)
class ShownTerm:
    """One component."""

    name: str
    score: float | None
    weight: float | None
    source: str
    reasoning: str

    @property
    def percent(self) -> float:
        """How full its bar is."""
        return min(100.0, max(0.0, 100 * (self.score or 0.0)))


@dataclass(frozen=True, slots=True)
class ShownTerms:
    """All components, the heaviest first."""

    terms: tuple[ShownTerm, ...]
    raw_total: float | None
    total: float | None


def reward_terms(reward: Mapping[str, Any]) -> ShownTerms:
    """A reward.v1 as terms, the heaviest first.

    >>> found = reward_terms({"reward_components": {"efficiency": {"score": 0.5, "weight": 0.2, "source": "automated"}}})
    >>> found.terms[0].name, found.raw_total
    ('efficiency', None)
    """
    components = reward.get("reward_components") or {}
    terms = [
        ShownTerm(
            str(name),
            _number(each.get("score")),
            _number(each.get("weight")),
            str(each.get("source") or ""),
            str(each.get("reasoning") or ""),
        )
        for name, each in components.items()
        if isinstance(each, Mapping)
    ]
    terms.sort(key=lambda term: -(term.weight or 0.0))
    metadata = reward.get("metadata") or {}
    return ShownTerms(
        tuple(terms), _number(metadata.get("raw_total")), _number(reward.get("total_reward"))
    )


def revision_words(revisions: Sequence[ApiRevision]) -> str:
    """How the raw total went from revision to revision.

    >>> revision_words([ApiRevision(0, None, {"metadata": {"raw_total": 0.5}}), ApiRevision(1, None, {"metadata": {"raw_total": 0.7}})])
    'Revision 1: 0.500 → 0.700.'
    """
    totals = [score(reward_terms(each.reward).raw_total) for each in revisions]
    newest = revisions[-1].revision
    return (
        f"Revision {newest}: {' → '.join(totals[-6:])}."
        if len(totals) > 1
        else "As it was first scored."
    )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
