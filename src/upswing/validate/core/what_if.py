"""Would a validation have passed under another policy?

The journal keeps what a verdict follows from, with the policy of its time. What the changed policy names takes its
place. Which tasks were done cannot be changed afterwards: knobs about them are not replayed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from msgspec import Struct, field

from upswing.contracts.backtest import PolicyReplay, ReplayedDecision
from upswing.contracts.typed import from_json
from upswing.records import Decision
from upswing.validate.core.replay import VerdictInputs, verdict_of
from upswing.validate.core.verdict import ValidationPolicy, Verdict

REPLAYED = frozenset({"validate.floors", "validate.safety_reach"})
"""Knobs of the config that a journalled verdict depends on."""


class _JournalledVerdict(Struct, frozen=True):
    verdict: str = field(name="word")


def validation_policy_under(policy: ValidationPolicy, knobs: Mapping[str, Any]) -> ValidationPolicy:
    """The policy with what the changed one names; the rest stays as it was."""
    names = ("floors", "safety_reach")
    changes = {name: knobs[f"validate.{name}"] for name in names if f"validate.{name}" in knobs}
    return replace(policy, **changes)


class ValidationBacktest:
    """Takes the journal in its order."""

    def __init__(self, knobs: Mapping[str, Any]) -> None:
        self._knobs = knobs
        self.changed: dict[str, str] = {}
        """Validation → its verdict under the changed policy, where that is another one."""

    def replay(self, decision: Decision) -> PolicyReplay:
        """One verdict under both policies."""
        seen = from_json(decision.inputs, VerdictInputs)
        then = verdict_of(seen, seen.policy)
        changed = validation_policy_under(seen.policy, self._knobs)
        now = then if changed == seen.policy else verdict_of(seen, changed)
        if then.status != now.status:
            self.changed[seen.run_id] = now.status
        journalled = from_json(decision.outcome, _JournalledVerdict)
        as_journalled = journalled.verdict == then.status
        return PolicyReplay(seen.candidate, _replayed(then), _replayed(now), as_journalled)


def _replayed(verdict: Verdict) -> ReplayedDecision:
    return ReplayedDecision(verdict.status, "", " ".join(verdict.reasons))
