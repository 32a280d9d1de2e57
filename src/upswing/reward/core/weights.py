"""How much does each component count?

| stated                                  | the four built-in ones        | plugins             |
|-----------------------------------------|-------------------------------|---------------------|
| nothing, no plugins                     | 0.40, 0.20, 0.15, 0.25        | –                   |
| nothing, plugins that ask for w in all  | those, times (1 − w)          | what they ask for   |
| any of the four                         | as stated, the rest as above  | what they ask for   |

In the last row nothing is scaled: whoever states a weight states them all, and they sum to 1. A
plugin's weight is stated like the others, `REWARD_WEIGHT_SAFETY` for `safety`. The environment
wins over the file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from upswing.errors import Misuse
from upswing.reward.core import completion, efficiency, feedback, quality

BUILT_IN = {
    "task_completion": completion.WEIGHT,
    "efficiency": efficiency.WEIGHT,
    "code_quality": quality.WEIGHT,
    "user_feedback": feedback.WEIGHT,
}
_TOLERANCE = 1e-6


def component_weights(
    environment: Mapping[str, str],
    configured: Mapping[str, float] | None = None,
    plugins: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """The weight of every component, summing to 1; or `Misuse` with what is wrong.

    >>> component_weights({}, plugins={"safety": 0.2})["task_completion"]
    0.32
    >>> component_weights({"REWARD_WEIGHT_EFFICIENCY": "0.3"})
    Traceback (most recent call last):
    upswing.errors.Misuse: The reward weights sum to 1.1, not 1: task_completion 0.4, efficiency 0.3, code_quality 0.15, user_feedback 0.25.
    """
    stated: dict[str, float] = {}
    plugin_weights = dict(plugins or {})
    unknown = set(configured or {}) - set(BUILT_IN) - set(plugin_weights)
    if unknown:
        raise Misuse(f"There is no reward component called {', '.join(sorted(unknown))}.")
    for name in (*BUILT_IN, *plugin_weights):
        variable = f"REWARD_WEIGHT_{name.upper().replace('-', '_')}"
        if environment.get(variable, "").strip():
            stated[name] = _parse_weight(variable, environment[variable])
        elif configured and name in configured:
            stated[name] = _parse_weight(f"The weight of {name}", configured[name])
    extra = {
        name: stated.get(name, _parse_weight(f"The weight of {name}", w))
        for name, w in plugin_weights.items()
    }
    left = 1 - math.fsum(extra.values())
    if not stated.keys() & BUILT_IN.keys() and left >= -_TOLERANCE:
        return {name: round(max(0.0, left) * w, 12) for name, w in BUILT_IN.items()} | extra
    return _check_sum({name: stated.get(name, w) for name, w in BUILT_IN.items()} | extra)


def _check_sum(found: dict[str, float]) -> dict[str, float]:
    total = math.fsum(found.values())
    if not abs(total - 1) <= _TOLERANCE:
        listed = ", ".join(f"{name} {weight:g}" for name, weight in found.items())
        raise Misuse(f"The reward weights sum to {total:.6g}, not 1: {listed}.")
    return found


def _parse_weight(what: str, value: Any) -> float:
    try:
        weight = float(value)
    except (TypeError, ValueError, OverflowError):
        raise Misuse(f"{what} is a number from 0 to 1, not {str(value)[:40]!r}.") from None
    if isinstance(value, bool) or not 0 <= weight <= 1:
        raise Misuse(f"{what} is a number from 0 to 1, not {value}.")
    return weight
