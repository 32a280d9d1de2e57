"""What do the switches of the gateways mean for rollouts?

| the gateways that live                              | a rollout                                                |
|-----------------------------------------------------|----------------------------------------------------------|
| one at least may serve a candidate                 | goes on                                                  |
| all are off, pinned, or capped at 0 %               | does not begin; one on its way holds, and no time passes |
| nobody has heard of any                             | goes on                                                  |

A model that a gateway is pinned to is kept served, and stands in the plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from upswing.contracts.traffic import Switches
from upswing.errors import count_phrase
from upswing.model_flags import PINNABLE, is_version
from upswing.records import ModelRow


def blocked_reason(gateways: Mapping[str, Switches]) -> str:
    """Why no gateway may serve a candidate, as a sentence; empty: one may, or none is known.

    >>> blocked_reason({"a": Switches(enabled=False), "b": Switches(version="v3")})
    'No gateway may serve it: USE_RL_MODEL at 1, RL_MODEL_VERSION at 1.'
    >>> blocked_reason({"a": Switches(enabled=False), "b": Switches()}), blocked_reason({})
    ('', '')
    """
    bars = Counter(switches.bar for switches in gateways.values())
    if not bars or "" in bars:
        return ""
    order = ("USE_RL_MODEL", "RL_MODEL_VERSION", "RL_ROLLOUT_PERCENTAGE")
    counts = ", ".join(f"{name} at {bars[name]}" for name in order if bars[name])
    return f"No gateway may serve it: {counts}."


def exceptions(gateways: Mapping[str, Switches]) -> list[str]:
    """A sentence for each kind of switch by which gateways do not answer as the plan says.

    >>> exceptions({"a": Switches(), "b": Switches()})
    []
    >>> exceptions({"a": Switches(enabled=False), "b": Switches(version="v3"), "c": Switches()})[1]
    'RL_MODEL_VERSION is v3 at 1 of 3 gateways: that model alone answers there.'
    """
    found = Counter(filter(None, map(_exception, gateways.values())))
    return [
        f"{switch} at {count} of {count_phrase(len(gateways), 'gateway')}: {effect}."
        for (switch, effect), count in found.items()
    ]


def _exception(switches: Switches) -> tuple[str, str] | None:
    """Which switch decides at a gateway, and what follows; None: the plan decides."""
    base = "the base model answers everything there"
    match switches.bar:
        case "USE_RL_MODEL":
            return "USE_RL_MODEL is off (the default under UPSWING_ENV=production)", base
        case "RL_MODEL_VERSION":
            return f"RL_MODEL_VERSION is {switches.version}", "that model alone answers there"
        case "RL_ROLLOUT_PERCENTAGE":
            return "RL_ROLLOUT_PERCENTAGE is 0", base
        case _:
            pass
    if switches.percentage < 100:
        most = f"{switches.percentage:g}"
        effect = f"trained models get at most {most} % there, the base model the rest"
        return f"RL_ROLLOUT_PERCENTAGE is {most}", effect
    return None


def pinned_versions(gateways: Mapping[str, Switches]) -> frozenset[str]:
    """What gateways are pinned to, in their words."""
    return frozenset(
        switches.version
        for switches in gateways.values()
        if switches.enabled and switches.version is not None
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
