"""Did it take more than tasks of this kind usually take?

Turns, seconds and tokens, each beside the last thousand of the same domain and difficulty:

| deviations from the mean | 2 fewer | 1 fewer | as usual | 1 more | 2 more |
|--------------------------|---------|---------|----------|--------|--------|
| score                    | 1.0     | 0.75    | 0.5      | 0.25   | 0.0    |

The mean over what is known; a measure with fewer than 30 samples is not known, and when none is,
the score is a neutral 0.5. A tool call that repeats an earlier one and gets the same result costs
0.05, at most 0.3: it cost time and taught nothing, with or without a history to compare with.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from upswing.contracts import Trajectory, canonical
from upswing.reward.core.baseline import MIN_HISTORY, TrailingWindow
from upswing.reward.core.score import Score
from upswing.reward.core.stats import TaskStatistics, facts_of

WEIGHT = 0.20
REPEAT_COST, REPEAT_LIMIT = 0.05, 0.3
SPREAD_FLOOR = 0.1
"""Of the mean: where everybody takes nearly the same, a tenth more or less is no merit."""
_CAP = 2.0


def efficiency_score(trajectory: Trajectory, statistics: TaskStatistics | None) -> Score:
    """How little it took, beside others of its kind."""
    facts = facts_of(trajectory)
    repeats = count_repeats(trajectory)
    measures: dict[str, tuple[float, TrailingWindow]] = {}
    if statistics is not None:
        measures = {
            name: (taken, window)
            for name, taken, window in (
                ("turns", facts.turns, statistics.turns),
                ("seconds", facts.seconds, statistics.seconds),
                ("tokens", facts.tokens, statistics.tokens),
            )
            if taken is not None and window.count >= MIN_HISTORY
        }
    parts = {name: _score_measure(taken, window) for name, (taken, window) in measures.items()}
    value = sum(parts.values()) / len(parts) if parts else 0.5
    value -= min(REPEAT_LIMIT, REPEAT_COST * repeats)
    return Score(
        value=min(1.0, max(0.0, round(value, 12))),
        source="automated",
        reasoning=_efficiency_sentence(measures, repeats),
        raw_data=_raw_data(measures, parts, repeats),
        confidence=1.0 if parts else 0.5,
    )


def _score_measure(taken: float, window: TrailingWindow) -> float:
    z = window.z(taken, floor=SPREAD_FLOOR * window.mean)
    return (_CAP - min(_CAP, max(-_CAP, z))) / (2 * _CAP)


def count_repeats(trajectory: Trajectory) -> int:
    """Tool calls that were made before, word for word, and got the same result then."""
    seen: set[tuple[object, ...]] = set()
    repeats = 0
    for turn in trajectory.turns:
        action, result = turn.action, turn.result
        if action.type != "tool_call":
            continue
        call = (
            action.tool_name,
            _to_hashable(action.tool_args),
            _to_hashable(result.output),
            _to_hashable(result.error),
        )
        repeats += call in seen
        seen.add(call)
    return repeats


def _to_hashable(value: Any) -> object:
    return canonical(value) if isinstance(value, dict) else None if value is UNSET else value


def _efficiency_sentence(measures: dict[str, tuple[float, TrailingWindow]], repeats: int) -> str:
    measured = ", ".join(
        f"{_format_number(x)} {name} (average {_format_number(w.mean)})"
        for name, (x, w) in measures.items()
    )
    again = f" {repeats} tool calls were repeated and brought nothing new." if repeats else ""
    if not measured:
        return f"Too few tasks of this kind are known to compare with, so it is neutral.{again}"
    return f"It took {measured}.{again}"


def _format_number(x: float) -> str:
    return f"{x:.0f}" if x >= 100 or float(x).is_integer() else f"{x:.3g}"


def _raw_data(
    measures: dict[str, tuple[float, TrailingWindow]], parts: dict[str, float], repeats: int
) -> dict[str, Any]:
    compared = {
        name: {
            "value": taken,
            "mean": round(window.mean, 6),
            "std": round(window.std, 6),
            "samples": window.count,
            "score": round(parts[name], 6),
        }
        for name, (taken, window) in measures.items()
    }
    return {**compared, **({"repeated_calls": repeats} if repeats else {})}
