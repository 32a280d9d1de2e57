"""How good is the code? As linters, tests and scanners report, or as our own linter finds.

| part     | counts | read from                        | value                                     |
|----------|--------|----------------------------------|-------------------------------------------|
| linter   | 0.5    | `metadata.linter_results`        | of its scale: pylint 9.0 of 10 is 0.90    |
|          |        | … violations (and lines)         | 1 − violations / lines; without lines, 0.05 off for each |
| tests    | 0.3    | `metadata.test_results`          | passed / total                            |
| security | 0.2    | `metadata.security_scan`         | 1 − 0.5 high − 0.2 medium − 0.05 low      |

The weighted mean over the parts that are there, so one part alone is its own value. When none of
the three is reported, the lint report of the code found stands in. No code, no score.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from upswing.contracts import Trajectory
from upswing.contracts.steps import finite_number_or_none
from upswing.dataset.outcome import test_pass_rate
from upswing.records import LintReport
from upswing.reward.core.score import Score

WEIGHT = 0.15
PARTS = {"linter": 0.5, "tests": 0.3, "security": 0.2}
_SEVERITY = {"critical": 0.5, "high": 0.5, "medium": 0.2, "moderate": 0.2, "low": 0.05}
_VIOLATIONS = ("violations", "errors", "issues", "count", "total")
_LINES = ("lines", "statements", "loc")
_OWN = ("score", "rating", "max", *_VIOLATIONS)
"""Keys that say: this object is one linter's result, not a table of linters."""
_LIST_LIMIT = 10_000


def quality_score(trajectory: Trajectory, lint: LintReport | None) -> Score | None:
    """How good the code is; None when there is no code, or nobody could look at it."""
    parts, notes = _reported_parts(trajectory)
    note = f" ({'; '.join(notes)}.)" if notes else ""
    if parts:
        summary = ", ".join(f"{name} {value:.2f}" for name, value in parts.items())
        return _combine_parts(parts, f"Reported: {summary}.{note}", {"reported": True}, 1.0)
    if lint is None:
        return None
    if lint.score is not None:
        parts["linter"] = min(1.0, max(0.0, lint.score / 10))
    if lint.security is not None:
        parts["security"] = _severity_score(lint.security)
    data = {"statements": lint.statements, "lint": lint.counts, "security_scan": lint.security}
    return _combine_parts(parts, lint.sentence + note, data, 0.8) if parts else None


def is_reported(trajectory: Trajectory) -> bool:
    """Whether the agent's side reported enough, so that nothing needs to be linted."""
    return bool(_reported_parts(trajectory)[0])


def _combine_parts(
    parts: dict[str, float], reasoning: str, data: dict[str, Any], confidence: float
) -> Score:
    whole = sum(PARTS[name] for name in parts)
    value = sum(PARTS[name] * part for name, part in parts.items()) / whole
    return Score(
        value=min(1.0, max(0.0, round(value, 12))),
        source="test_results" if "tests" in parts and "linter" not in parts else "linter",
        reasoning=reasoning,
        raw_data={"parts": {k: round(v, 6) for k, v in parts.items()}, **data},
        confidence=confidence,
    )


def _reported_parts(trajectory: Trajectory) -> tuple[dict[str, float], list[str]]:
    readers: dict[str, tuple[str, Callable[[Any], float | None]]] = {
        "linter": ("linter_results", linter_score),
        "tests": ("test_results", test_pass_rate),
        "security": ("security_scan", security_score),
    }
    parts: dict[str, float] = {}
    notes: list[str] = []
    for part, (key, read) in readers.items():
        reported = trajectory.metadata.get(key)
        if reported is None:
            continue
        value = read(reported)
        if value is None:
            notes.append(f"{key} could not be read, so it is left out")
        else:
            parts[part] = value
    return parts, notes


def linter_score(reported: Any) -> float | None:
    """In [0, 1], or None.

    >>> linter_score({"pylint": 9.0}), linter_score({"score": 4, "max": 5}), linter_score(8.5)
    (0.9, 0.8, 0.85)
    >>> linter_score({"flake8": {"violations": 3, "lines": 60}}), linter_score({"flake8": 2})
    (0.95, 0.9)
    """
    if not isinstance(reported, dict) or not reported.keys().isdisjoint(_OWN):
        return _tool_score("", reported)
    values = [
        v
        for tool, reported in reported.items()
        if (v := _tool_score(tool.lower(), reported)) is not None
    ]
    return sum(values) / len(values) if values else None


def _tool_score(tool: str, reported: Any) -> float | None:
    plain = finite_number_or_none(reported)
    if plain is not None:
        counts = tool in ("flake8", "ruff", "pycodestyle", "pyflakes", "eslint", "mypy")
        return _violation_score(plain, None) if counts else _clamp(plain / 10)
    if isinstance(reported, list) and tool:
        return _violation_score(min(len(reported), _LIST_LIMIT), None)
    if not isinstance(reported, dict):
        return None
    score, top = (
        finite_number_or_none(reported.get("score", reported.get("rating"))),
        finite_number_or_none(reported.get("max", 10)),
    )
    if score is not None:
        return _clamp(score / top) if top is not None and top > 0 else None
    for key in _VIOLATIONS:
        found = reported.get(key)
        count = len(found) if isinstance(found, list) else finite_number_or_none(found)
        if count is not None:
            lines = next(
                (n for k in _LINES if (n := finite_number_or_none(reported.get(k))) is not None),
                None,
            )
            return _violation_score(count, lines)
    return None


def _violation_score(count: float, lines: float | None) -> float | None:
    if count < 0 or (lines is not None and lines <= 0):
        return None
    return _clamp(1 - 0.05 * count if lines is None else 1 - count / lines)


def security_score(reported: Any) -> float | None:
    """In [0, 1]: the worse the findings, the less; or None.

    >>> security_score({"high": 0, "medium": 1}), security_score([{"severity": "HIGH"}]), security_score({})
    (0.8, 0.5, None)
    """
    if isinstance(reported, dict):
        inside = next(
            (reported[k] for k in ("findings", "results", "issues") if k in reported), None
        )
        if inside is None:
            counts = {
                k: n for k in _SEVERITY if (n := finite_number_or_none(reported.get(k))) is not None
            }
            return _severity_score(counts) if counts and min(counts.values()) >= 0 else None
        reported = inside
    if not isinstance(reported, list):
        return None
    found: dict[str, int] = {}
    for one in reported[:_LIST_LIMIT]:
        severity = one.get("severity", one.get("issue_severity")) if isinstance(one, dict) else None
        name = (
            severity.lower()
            if isinstance(severity, str) and severity.lower() in _SEVERITY
            else "low"
        )
        found[name] = found.get(name, 0) + 1
    return _severity_score(found)


def _severity_score(counts: dict[str, Any]) -> float:
    return _clamp(1 - sum(_SEVERITY[name] * count for name, count in counts.items()))


def _clamp(value: float) -> float:
    return min(1.0, max(0.0, round(value, 12)))
