"""Is it a trajectory, what must go out of it, and what is it worth?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import msgspec

from upswing.collect.core.admit import AdmissionLimits, admit
from upswing.contracts import Feedback, Trajectory, from_builtins
from upswing.contracts.topics import TOPICS
from upswing.errors import Misuse
from upswing.records import StoredTrajectory
from upswing.redact import Redactor, default_rules
from upswing.redact.messages import redact_trajectory
from upswing.reward.core.assess import AssessedReward, RewardHistory, RewardRules, assess
from upswing.reward.core.weights import BUILT_IN, component_weights
from upswing.rl_trainer import arguments

REWARD_WEIGHTS: Mapping[str, float] = dict(BUILT_IN)
"""Task completion, efficiency, code quality, user feedback."""
_WIDE_KINDS = frozenset({"api-key", "key", "token", "secret"})
"""Words for many kinds at once: every provider's has a rule of its own."""


def validate_trajectory(
    trajectory_data: Mapping[str, Any], schema: str = "trajectory.v1.schema.json"
) -> dict[str, Any]:
    """The same message, or `Rejected` with the place and what is wrong there.

    `schema` names any of the contracts: `reward.v1.schema.json`, `training.request.v1.schema.json`, …

    >>> validate_trajectory({})
    Traceback (most recent call last):
    upswing.errors.Rejected: Object missing required field `trajectory_id`.
    """
    tree = arguments.message(trajectory_data, "trajectory_data")
    kinds = {
        f"{topic.subject.removeprefix('agent.rl.')}.schema.json": topic.message
        for topic in TOPICS
        if topic.message is not None and ">" not in topic.subject
    }
    if (kind := kinds.get(arguments.text(schema, "schema"))) is None:
        raise Misuse(f"There is no schema {schema!r}; there are: {', '.join(sorted(kinds))}.")
    checked: dict[str, Any] = msgspec.to_builtins(from_builtins(kind, tree))
    return checked


def redact_sensitive_info(
    trajectory_data: Mapping[str, Any], patterns: Iterable[str] = ()
) -> dict[str, Any]:
    """The trajectory with placeholders in place of secrets and personal data.

    Everything that Upswing looks for goes, always. `patterns` says what the caller counts on; a kind that nobody looks
    for is refused, because it would stay.
    """
    known = {rule.kind for rule in default_rules()} | _WIDE_KINDS
    counted_on = [
        arguments.text(each, "patterns") for each in arguments.several(patterns, "patterns")
    ]
    unknown = {each for each in counted_on if each.replace("_", "-") not in known}
    if unknown:
        raise Misuse(
            f"Nobody looks for {', '.join(sorted(unknown))}: write a rule of your own (docs/redaction.md)."
        )
    clean: dict[str, Any] = redact_trajectory(validate_trajectory(trajectory_data), redactor()).tree
    return clean


def compute_reward(
    trajectory: Mapping[str, Any],
    historical_data: Sequence[Mapping[str, Any]] = (),
    weights: Mapping[str, float] | None = None,
    *,
    feedback: Sequence[Mapping[str, Any]] = (),
    now: datetime | None = None,
) -> dict[str, Any]:
    """reward.v1 of a trajectory, as the loop would make it.

    `historical_data` are the trajectories before it, the oldest first: efficiency and normalisation compare with them.
    `feedback` is what users said of it, as feedback.v1.
    """
    at = now or datetime.now(UTC)  # noqa: TID251 - a person's own program has no runtime of ours
    rules = RewardRules(component_weights({}, arguments.weights_of(weights, "weights")))
    history, cleaner = RewardHistory(), redactor()
    before = arguments.several(historical_data, "historical_data")
    for number, earlier in enumerate(before):
        told = arguments.message(earlier, f"historical_data[{number}]")
        history.add(_assess(told, (), history, rules, cleaner, at, number))
    said = [
        from_builtins(Feedback, arguments.message(each, f"feedback[{number}]"))
        for number, each in enumerate(arguments.several(feedback, "feedback"))
    ]
    assessed = arguments.message(trajectory, "trajectory")
    made = _assess(assessed, said, history, rules, cleaner, at, len(before))
    reward: dict[str, Any] = msgspec.to_builtins(made.reward)
    return reward


@cache
def redactor() -> Redactor:
    """One for all calls: its rules take longer to compile than a trajectory to clean."""
    return Redactor()


def _assess(
    trajectory: Mapping[str, Any],
    feedback: Sequence[Feedback],
    history: RewardHistory,
    rules: RewardRules,
    redactor: Redactor,
    now: datetime,
    number: int,
) -> AssessedReward:
    raw = msgspec.json.encode(dict(trajectory))
    admitted = admit(raw, redactor, AdmissionLimits()).admitted
    row = StoredTrajectory(number + 1, "local", now, admitted)
    clean = msgspec.json.decode(admitted.body)
    return assess(row, from_builtins(Trajectory, clean), feedback, None, history, rules, now=now)
