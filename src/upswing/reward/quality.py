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
from upswing.contracts.steps import number
from upswing.dataset.outcome import tests_passed
from upswing.ports import LintReport
from upswing.reward.score import Score

WEIGHT = 0.15
PARTS = {"linter": 0.5, "tests": 0.3, "security": 0.2}
_SEVERITY = {"critical": 0.5, "high": 0.5, "medium": 0.2, "moderate": 0.2, "low": 0.05}
_VIOLATIONS = ("violations", "errors", "issues", "count", "total")
_LINES = ("lines", "statements", "loc")
_OWN = ("score", "rating", "max", *_VIOLATIONS)
"""Keys that say: this object is one linter's result, not a table of linters."""
_LIST_LIMIT = 10_000


def quality(trajectory: Trajectory, lint: LintReport | None) -> Score | None:
    """How good the code is; None when there is no code, or nobody could look at it."""
    parts, notes = _reported(trajectory)
    note = f" ({'; '.join(notes)}.)" if notes else ""
    if parts:
        said = ", ".join(f"{name} {value:.2f}" for name, value in parts.items())
        return _score(parts, f"Reported: {said}.{note}", {"reported": True}, 1.0)
    if lint is None:
        return None
    if lint.score is not None:
        parts["linter"] = min(1.0, max(0.0, lint.score / 10))
    if lint.security is not None:
        parts["security"] = _of_counts(lint.security)
    data = {"statements": lint.statements, "lint": lint.counts, "security_scan": lint.security}
    return _score(parts, lint.sentence + note, data, 0.8) if parts else None


def is_reported(trajectory: Trajectory) -> bool:
    """Whether the agent's side told enough, so that nothing needs to be linted."""
    return bool(_reported(trajectory)[0])


def _score(
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


def _reported(trajectory: Trajectory) -> tuple[dict[str, float], list[str]]:
    readers: dict[str, tuple[str, Callable[[Any], float | None]]] = {
        "linter": ("linter_results", read_linter),
        "tests": ("test_results", tests_passed),
        "security": ("security_scan", read_security),
    }
    parts: dict[str, float] = {}
    notes: list[str] = []
    for part, (key, read) in readers.items():
        told = trajectory.metadata.get(key)
        if told is None:
            continue
        value = read(told)
        if value is None:
            notes.append(f"{key} could not be read, so it is left out")
        else:
            parts[part] = value
    return parts, notes


def read_linter(told: Any) -> float | None:
    """In [0, 1], or None.

    >>> read_linter({"pylint": 9.0}), read_linter({"score": 4, "max": 5}), read_linter(8.5)
    (0.9, 0.8, 0.85)
    >>> read_linter({"flake8": {"violations": 3, "lines": 60}}), read_linter({"flake8": 2})
    (0.95, 0.9)
    """
    if not isinstance(told, dict) or not told.keys().isdisjoint(_OWN):
        return _of_tool("", told)
    values = [v for tool, said in told.items() if (v := _of_tool(tool.lower(), said)) is not None]
    return sum(values) / len(values) if values else None


def _of_tool(tool: str, said: Any) -> float | None:
    plain = number(said)
    if plain is not None:
        counts = tool in ("flake8", "ruff", "pycodestyle", "pyflakes", "eslint", "mypy")
        return _of_violations(plain, None) if counts else _clamp(plain / 10)
    if isinstance(said, list) and tool:
        return _of_violations(min(len(said), _LIST_LIMIT), None)
    if not isinstance(said, dict):
        return None
    score, top = number(said.get("score", said.get("rating"))), number(said.get("max", 10))
    if score is not None:
        return _clamp(score / top) if top is not None and top > 0 else None
    for key in _VIOLATIONS:
        found = said.get(key)
        count = len(found) if isinstance(found, list) else number(found)
        if count is not None:
            lines = next((n for k in _LINES if (n := number(said.get(k))) is not None), None)
            return _of_violations(count, lines)
    return None


def _of_violations(count: float, lines: float | None) -> float | None:
    if count < 0 or (lines is not None and lines <= 0):
        return None
    return _clamp(1 - 0.05 * count if lines is None else 1 - count / lines)


def read_security(told: Any) -> float | None:
    """In [0, 1]: the worse the findings, the less; or None.

    >>> read_security({"high": 0, "medium": 1}), read_security([{"severity": "HIGH"}]), read_security({})
    (0.8, 0.5, None)
    """
    if isinstance(told, dict):
        inside = next((told[k] for k in ("findings", "results", "issues") if k in told), None)
        if inside is None:
            counts = {k: n for k in _SEVERITY if (n := number(told.get(k))) is not None}
            return _of_counts(counts) if counts and min(counts.values()) >= 0 else None
        told = inside
    if not isinstance(told, list):
        return None
    found: dict[str, int] = {}
    for one in told[:_LIST_LIMIT]:
        word = one.get("severity", one.get("issue_severity")) if isinstance(one, dict) else None
        name = word.lower() if isinstance(word, str) and word.lower() in _SEVERITY else "low"
        found[name] = found.get(name, 0) + 1
    return _of_counts(found)


def _of_counts(counts: dict[str, Any]) -> float:
    return _clamp(1 - sum(_SEVERITY[name] * count for name, count in counts.items()))


def _clamp(value: float) -> float:
    return min(1.0, max(0.0, round(value, 12)))
