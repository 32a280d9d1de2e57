"""Which values do knobs get that nobody set? Those that were measured to learn, for such a base.

| base                       | what is known                                                          |
|----------------------------|------------------------------------------------------------------------|
| below 20 million weights   | measured: `tiny` in three worlds, five seeds (docs/measured.md)        |
| below a billion            | measured: `smollm2` with an adapter; with all weights: extrapolated    |
| larger                     | 1e-5, 3 passes, 32 a step: the usual settings, extrapolated            |

A knob that somebody set stays as it is. The number of steps follows from the data, between bounds:
a job takes about as long whether it has 500 trajectories or 5,000.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

import msgspec

from upswing.train.recipe import FITTED, Lora, Recipe

SMALL, LARGE = 20_000_000, 1_000_000_000
"""Weights: below the first all is quick and rates are high, from the second on caution rules."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A recipe in which nothing is open, and why each fitted knob has its value."""

    recipe: Recipe
    reasons: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Pace:
    """How a kind of base is trained."""

    rate: float
    batch: int
    passes: int
    most_steps: int
    """Of a job; passes are cut until it fits, down to one."""
    micro_tokens: int
    why: str


_PACES: Mapping[tuple[str, bool], _Pace] = {
    ("small", True): _Pace(
        7e-4, 64, 12, 400, 8192,
        "measured with `tiny` in the worlds desk, market and triage",
    ),
    ("small", False): _Pace(
        1e-3, 64, 12, 400, 8192,
        "extrapolated from `tiny`: an adapter takes a somewhat higher rate than all weights",
    ),
    ("middle", False): _Pace(
        5e-4, 24, 3, 120, 1024,
        "measured with `smollm2` (135 million weights) and an adapter of rank 16",
    ),
    ("middle", True): _Pace(
        2e-5, 32, 2, 120, 1024,
        "extrapolated: all weights of a language model take a rate far below an adapter's",
    ),
    ("large", False): _Pace(1e-5, 32, 3, 400, 1024, "the usual settings of large models"),
    ("large", True): _Pace(1e-5, 32, 3, 400, 1024, "the usual settings of large models"),
}  # fmt: skip


def fitted(
    recipe: Recipe, *, parameters: int, full: bool, trajectories: int, groups: int
) -> Fitted:
    """The recipe with a value for every knob that nobody set.

    `parameters` are the base's; `trajectories` and `groups` those that are trained on.

    >>> asked = Recipe(epochs=5, unset=("learning_rate", "batch_size"))
    >>> found = fitted(asked, parameters=900_000, full=True, trajectories=800, groups=100)
    >>> found.recipe.learning_rate, found.recipe.batch_size, found.recipe.epochs, found.recipe.unset
    (0.0007, 64, 5, ())
    >>> print(found.reasons["learning_rate"])
    measured with `tiny` in the worlds desk, market and triage
    """
    size = _size(parameters)
    pace = _PACES[size, full]
    chosen: dict[str, tuple[Any, str]] = {
        "learning_rate": (pace.rate, pace.why),
        "micro_tokens": (pace.micro_tokens, "as many tokens a pass as keep a core busy"),
        "lora": (Lora(), "rank 16 on all linear layers: measured with `smollm2`"),
        "schedule": ("constant", "a job may stop at any evaluation, so no step counts less"),
        "warmup": (
            0.1 if size != "large" else 0.03,
            "the first steps of a fresh optimizer are as large as later ones and know less",
        ),
        "kl_beta": (recipe.kl_beta, "clip and KL budget hold it near its start"),
        "scale_rewards": (recipe.scale_rewards, "the usual scale"),
        "weight_decay": (0.0, "the KL budget bounds how far weights go"),
        **_by_algorithm(recipe, size),
    }
    chosen["batch_size"] = _batch(pace, trajectories)
    batch = recipe.batch_size if "batch_size" not in recipe.unset else chosen["batch_size"][0]
    passes, why = chosen.get("epochs", (pace.passes, pace.why))
    chosen["epochs"] = _passes(passes, why, pace.most_steps, batch, trajectories)
    epochs = recipe.epochs if "epochs" not in recipe.unset else chosen["epochs"][0]
    steps = max(1, ceil(trajectories / batch) * epochs)
    chosen["save_interval"] = (max(5, steps // 4), f"four times in some {steps} steps")
    mine = {name: chosen[name] for name in FITTED if name in recipe.unset and name in chosen}
    values = {name: value for name, (value, _) in mine.items()}
    return Fitted(
        msgspec.structs.replace(recipe, **values, unset=()),
        {name: f"{reason}" for name, (_, reason) in mine.items()}
        | ({"groups": _few(groups)} if 0 < groups < 16 else {}),
    )


def _size(parameters: int) -> str:
    if parameters < SMALL:
        return "small"
    return "middle" if parameters < LARGE else "large"


def _by_algorithm(recipe: Recipe, size: str) -> dict[str, tuple[Any, str]]:
    """What belongs to the loss rather than to the base."""
    none = "an entropy bonus is over the whole vocabulary: it feeds words that are no answers"
    found: dict[str, tuple[Any, str]] = {
        "entropy": (0.0, none),
        "clip_low": (recipe.clip_low, "the usual lower clip"),
        "clip_high": (recipe.clip_high, "a little farther up than down, so that rare good actions grow"),
    }  # fmt: skip
    match recipe.algorithm:
        case "grpo" | "rloo":
            found["scale_rewards"] = (
                "none",
                "dividing by a group's deviation makes lucky outliers of easy tasks the loudest",
            )
        case "reinforce":
            found["kl_beta"] = (0.3, "nothing else holds it near its start: measured on triage")
            found["epochs"] = (4, "as measured on triage")
        case "ppo":
            found["kl_beta"] = (0.05, "without, it fell back after its best: measured on triage")
        case "dpo":
            found["epochs"] = (2, "pairs are learned quickly: measured on triage")
        case "sft" | "rft" | "kto":
            found["epochs"] = (2, "imitation over and over learns single answers by heart")
    if size != "small" and recipe.algorithm in ("reinforce", "dpo"):
        found["epochs"] = (2, "pairs and plain gradients are learned quickly")
    return found


def _batch(pace: _Pace, trajectories: int) -> tuple[int, str]:
    """Smaller where there is little data, so that there are steps at all."""
    size = max(8, min(pace.batch, trajectories // 8))
    if size == pace.batch:
        return size, pace.why
    return size, f"{trajectories} trajectories: an eighth of them a step, instead of {pace.batch}"


def _passes(
    wanted: int, why: str, most_steps: int, batch: int, trajectories: int
) -> tuple[int, str]:
    fitting = max(1, most_steps * batch // max(1, trajectories))
    if fitting >= wanted:
        return wanted, why
    return (
        fitting,
        f"more than {most_steps} steps bring little: {fitting} passes over {trajectories}",
    )


def _few(groups: int) -> str:
    return f"only {groups} groups: expect a noisy gain, and record more tasks"
