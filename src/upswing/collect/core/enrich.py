"""What do we know of a trajectory that it did not say? Domain, complexity, agent type, window."""

from __future__ import annotations

import re
from typing import Any

from msgspec import UnsetType

from upswing.contracts import Trajectory
from upswing.contracts.steps import window_id_at
from upswing.dataset.evaluation import is_evaluation, is_practice
from upswing.dataset.task import actions_digest, is_continuous, request_digest, short_id, task_key
from upswing.records import Admitted

_HINTS: dict[str, re.Pattern[str]] = {
    domain: re.compile(rf"\b(?:{words})", re.IGNORECASE)
    for domain, words in {
        "debugging": r"debug|traceback|stack trace|fix (?:the |a |this )?bug|failing test|crash|root cause",
        "coding": r"implement|refactor|function|class|unit test|python|javascript|typescript|rust|code|compile|repo",
        "data_analysis": r"dataset|csv|sql|query|chart|plot|statistic|regression|dataframe|pandas|correlat|analy[sz]e",
        "research": r"research|literature|survey|find out|compare sources|cite|papers?\b|investigate|summari[sz]e",
        "writing": r"write (?:a|an|the)\b|draft|essay|blog|e-?mail|letter|article|translate|proofread",
    }.items()
}
_WINDOW = re.compile(r"\d{4}-\d\d-\d\dT\d\d:00\Z")


def enrich(
    trajectory: Trajectory,
    clean: dict[str, Any],
    body: bytes,
    content_hash: bytes,
    window_hours: int,
) -> Admitted:
    """The stored form of a trajectory: what it says, and beside it what follows from it."""
    metadata, task = clean["metadata"], clean["task_context"]
    window = _text(metadata, "window_id")
    if window is None or not _WINDOW.match(window):
        window = window_id_at(trajectory.start_timestamp, window_hours)
    task_id, continuous = task_key(clean), is_continuous(clean)
    return Admitted(
        trajectory_id=str(trajectory.trajectory_id),
        content_hash=content_hash,
        body=body,
        agent_id=short_id(clean["agent_id"]),
        session_id=short_id(clean["session_id"]),
        user_id=_text(metadata, "user_id"),
        agent_type=short_id(clean.get("subordinate_profile") or "main"),
        domain=task.get("domain") or domain_of(trajectory),
        complexity=float(task.get("complexity_score", complexity_of(trajectory))),
        window_id=window,
        scenario_id=short_id(_text(metadata, "scenario_id") or (window if continuous else task_id)),
        episode_id=_text(metadata, "episode_id"),
        model=short_id(metadata["model"]),
        started=trajectory.start_timestamp,
        ended=trajectory.end_timestamp,
        turns=len(trajectory.turns),
        infra_error=bool(metadata.get("infra_error")),
        task_id=task_id,
        evaluation=is_evaluation(metadata),
        continuous=continuous,
        answers=actions_digest(clean),
        request=request_digest(clean),
        practice=is_practice(metadata),
        **key_of(metadata),
    )


def key_of(metadata: Any) -> dict[str, Any]:
    """Whose key it was, as a gateway says it; whoever takes it knows whether one did.

    >>> key_of({"gateway": {"key": "k1"}}), key_of({"gateway": {"key": "k1", "many": True}})
    ({'key_id': 'k1', 'many': False}, {'key_id': 'k1', 'many': True})
    >>> key_of({})
    {'key_id': '', 'many': True}
    """
    about = metadata.get("gateway") if isinstance(metadata, dict) else None
    gateway: dict[str, Any] = about if isinstance(about, dict) else {}
    key = gateway.get("key")
    if not isinstance(key, str) or not key:
        return {"key_id": "", "many": True}
    return {"key_id": short_id(key), "many": gateway.get("many") is True}


def domain_of(trajectory: Trajectory) -> str:
    """The domain whose words the task uses most; `general` when it uses none.

    The more telling domain is named first in the table and wins a tie.
    """
    tools = {turn.action.tool_name for turn in trajectory.turns}
    text = " ".join(
        [
            trajectory.task_context["instructions"][:4000],
            *(tool for tool in tools if isinstance(tool, str)),
        ]
    )
    scores = {domain: len(hint.findall(text)) for domain, hint in _HINTS.items()}
    best = max(scores, key=lambda domain: scores[domain])
    return best if scores[best] else "general"


def complexity_of(trajectory: Trajectory) -> float:
    """How hard the task looks, in [0, 1].

    Four parts of ten for many turns (20 is many), three for different tools (5), two for long
    instructions (2000 characters), one for the share of turns that failed.
    """
    turns = trajectory.turns
    tools = {
        turn.action.tool_name for turn in turns if not isinstance(turn.action.tool_name, UnsetType)
    }
    failed = sum(not turn.result.success for turn in turns) / len(turns)
    score = (
        0.4 * min(len(turns) / 20, 1)
        + 0.3 * min(len(tools) / 5, 1)
        + 0.2 * min(len(trajectory.task_context["instructions"]) / 2000, 1)
        + 0.1 * failed
    )
    return round(score, 4)


def _text(metadata: dict[str, Any], key: str) -> str | None:
    value = metadata.get(key)
    return short_id(value) if isinstance(value, str) and value else None
