"""What do the switches of the gateways mean for rollouts?

| the gateways that live                              | a rollout                                                |
|-----------------------------------------------------|----------------------------------------------------------|
| one at least may serve what goes out                | goes on                                                  |
| all are off, pinned, or capped at 0 %               | does not begin; one on its way holds, and no time passes |
| nobody has heard of any                             | goes on                                                  |

A model that a gateway is pinned to is kept served, and stands in the plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from upswing.contracts.traffic import Switches
from upswing.ports import ModelRow
from upswing.rl_models import PINNABLE, is_version


def barred(gateways: Mapping[str, Switches]) -> str:
    """Why no gateway may serve what goes out, as a sentence; empty: one may, or none is known.

    >>> barred({"a": Switches(enabled=False), "b": Switches(version="v3")})
    'No gateway may serve it: USE_RL_MODEL at 1, RL_MODEL_VERSION at 1.'
    >>> barred({"a": Switches(enabled=False), "b": Switches()}), barred({})
    ('', '')
    """
    bars = Counter(told.bar for told in gateways.values())
    if not bars or "" in bars:
        return ""
    order = ("USE_RL_MODEL", "RL_MODEL_VERSION", "RL_ROLLOUT_PERCENTAGE")
    counts = ", ".join(f"{name} at {bars[name]}" for name in order if bars[name])
    return f"No gateway may serve it: {counts}."


def versions(gateways: Mapping[str, Switches]) -> frozenset[str]:
    """What gateways are pinned to, in their words."""
    return frozenset(
        told.version for told in gateways.values() if told.enabled and told.version is not None
    )


def pinned_models(wanted: Iterable[str], rows: Iterable[ModelRow]) -> frozenset[str]:
    """The models that these pins mean, as far as they may answer; an exact id comes before an ending."""
    fit = [row for row in rows if row.state in PINNABLE]
    found = set()
    for version in wanted:
        named = [row for row in fit if is_version(row.model_id, version)]
        if named:
            found.add(max(named, key=lambda row: (row.model_id == version, row.version)).model_id)
    return frozenset(found)
