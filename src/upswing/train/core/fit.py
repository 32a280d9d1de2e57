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

from upswing.train.core.recipe import FITTED, Lora, Recipe

SMALL, LARGE = 20_000_000, 1_000_000_000
"""Weights: below the first all is quick and rates are high, from the second on caution rules."""

_WARMUP_STEPS = 10
"""In which the rate rises: with three, a small job of `tiny` was 1.5 nats away after seven steps."""
_BASE_REFERENCE_REASON = (
    "a small pull to the base keeps words alive that do not pay yet: measured with `tiny`, which "
    "forgets `read` and `lookup` without it"
)


@dataclass(frozen=True, slots=True)
class FittedRecipe:
    """A recipe in which nothing is open, and why each fitted knob has its value."""

    recipe: Recipe
    reasons: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Preset:
    """How a kind of base is trained."""

    learning_rate: float
    batch_bounds: tuple[int, int]
    """The least and the most trajectories of a step: a quarter of those that train, in between."""
    epochs: int
    trajectories_for_full_epochs: int
    """Trajectories that bear all passes; fewer get fewer passes, so that they are not memorised."""
    max_steps: int
    """Of a job; passes are cut until it fits, down to one."""
    micro_tokens: int
    reason: str
    evaluations: int = 5
    """Of a job: one costs as much as two or three steps of a language model, next to nothing of a small one."""


_PRESETS: Mapping[tuple[str, bool], _Preset] = {
    ("small", True): _Preset(
        5e-4,
        (64, 128),
        30,
        600,
        200,
        8192,
        "measured with `tiny` in the worlds desk and market",
        evaluations=8,
    ),
    ("small", False): _Preset(
        7e-4,
        (64, 128),
        30,
        600,
        200,
        8192,
        "extrapolated from `tiny`: an adapter takes a somewhat higher rate than all weights",
        evaluations=8,
    ),
    ("middle", False): _Preset(
        5e-4,
        (24, 24),
        3,
        120,
        120,
        1024,
        "measured with `smollm2` (135 million weights) and an adapter of rank 16",
    ),
    ("middle", True): _Preset(
        2e-5,
        (32, 32),
        2,
        200,
        120,
        1024,
        "extrapolated: all weights of a language model take a rate far below an adapter's",
    ),
    ("large", False): _Preset(
        1e-5, (32, 32), 3, 200, 400, 1024, "the usual settings of large models"
    ),
    ("large", True): _Preset(
        1e-5, (32, 32), 3, 200, 400, 1024, "the usual settings of large models"
    ),
}
_SMALL_BASE_PRESET = _Preset(
    3e-4, (32, 32), 8, 300, 300, 8192, "measured with `tiny` in the world triage", evaluations=8
)
"""Small bases, and algorithms other than GRPO."""


def fit_recipe(
    recipe: Recipe, *, parameters: int, full: bool, trajectories: int, groups: int
) -> FittedRecipe:
    """The recipe with a value for every knob that nobody set.

    `parameters` are the base's; `trajectories` and `groups` those that there is something to learn
    from: in groups whose rewards differ, for algorithms that compare.

    >>> asked = Recipe(epochs=5, unset=("learning_rate", "batch_size"))
    >>> found = fit_recipe(asked, parameters=900_000, full=True, trajectories=800, groups=100)
    >>> found.recipe.learning_rate, found.recipe.batch_size, found.recipe.epochs, found.recipe.unset
    (0.0005, 128, 5, ())
    >>> print(found.reasons["learning_rate"])
    measured with `tiny` in the worlds desk and market
    """
    size = _size_class(parameters)
    other = size == "small" and recipe.algorithm != "grpo"
    pace = _SMALL_BASE_PRESET if other else _PRESETS[size, full]
    chosen: dict[str, tuple[Any, str]] = {
        "learning_rate": (pace.learning_rate, pace.reason),
        "micro_tokens": (pace.micro_tokens, "as many tokens a pass as keep a core busy"),
        "lora": (Lora(), "rank 16 on all linear layers: measured with `smollm2`"),
        "schedule": ("constant", "a job may stop at any evaluation, so no step counts less"),
        "kl_beta": (recipe.kl_beta, "clip and KL budget hold it near its start"),
        "reference": (recipe.reference, "the usual one"),
        "scale_rewards": (recipe.scale_rewards, "the usual scale"),
        "weight_decay": (0.0, "the KL budget bounds how far weights go"),
        "evaluations": (pace.evaluations, "one takes as long as two steps of a language model"),
        **_algorithm_settings(recipe, size),
    }
    chosen["batch_size"] = _fit_batch_size(pace, trajectories)
    batch = recipe.batch_size if "batch_size" not in recipe.unset else chosen["batch_size"][0]
    passes, why = chosen.get("epochs", (pace.epochs, pace.reason))
    chosen["epochs"] = _fit_epochs(passes, why, pace, batch, trajectories)
    epochs = recipe.epochs if "epochs" not in recipe.unset else chosen["epochs"][0]
    steps = max(1, ceil(trajectories / batch) * epochs)
    share = min(0.5, max(0.1, _WARMUP_STEPS / steps))
    chosen["warmup"] = (
        round(share, 3),
        "the first steps of a fresh optimizer are as large as later ones and know less",
    )
    chosen["save_interval"] = (max(5, steps // 4), f"four times in some {steps} steps")
    mine = {name: chosen[name] for name in FITTED if name in recipe.unset and name in chosen}
    values = {name: value for name, (value, _) in mine.items()}
    return FittedRecipe(
        msgspec.structs.replace(recipe, **values, unset=()),
        {name: f"{reason}" for name, (_, reason) in mine.items()}
        | ({"groups": _few_groups_note(groups)} if 0 < groups < 16 else {}),
    )


def _size_class(parameters: int) -> str:
    if parameters < SMALL:
        return "small"
    return "middle" if parameters < LARGE else "large"


def _algorithm_settings(recipe: Recipe, size: str) -> dict[str, tuple[Any, str]]:
    """What belongs to the loss rather than to the base."""
    none = "an entropy bonus is over the whole vocabulary: it feeds words that are no answers"
    found: dict[str, tuple[Any, str]] = {
        "entropy": (0.0, none)
        if recipe.algorithm == "grpo" or size != "small"
        else (recipe.entropy, "as measured on triage"),
        "clip_low": (recipe.clip_low, "the usual lower clip"),
        "clip_high": (
            recipe.clip_high,
            "a little farther up than down, so that rare good actions grow",
        ),
    }
    match recipe.algorithm:
        case "grpo":
            found["scale_rewards"] = (
                "none",
                "dividing by a group's deviation makes lucky outliers of easy tasks the loudest",
            )
            if size == "small":
                found["clip_high"] = (
                    0.6,
                    "0.28 learns slower, 1 and more collapses: measured with `tiny`",
                )
                found["kl_beta"] = (0.02, _BASE_REFERENCE_REASON)
                found["reference"] = ("base", _BASE_REFERENCE_REASON)
        case "reinforce":
            found["kl_beta"] = (0.3, "nothing else holds it near its start: measured on triage")
            found["epochs"] = (4, "as measured on triage")
        case "ppo":
            found["kl_beta"] = (0.05, "without, it fell back after its best: measured on triage")
        case "dpo":
            found["epochs"] = (2, "pairs are learned quickly: measured on triage")
        case "rloo":
            pass
        case "sft" | "rft" | "kto":
            found["epochs"] = (2, "imitation over and over learns single answers by heart")
    if size != "small" and recipe.algorithm in ("reinforce", "dpo"):
        found["epochs"] = (2, "pairs and plain gradients are learned quickly")
    return found


def _fit_batch_size(preset: _Preset, trajectories: int) -> tuple[int, str]:
    least, most = preset.batch_bounds
    size = max(least, min(most, trajectories // 4))
    if least == most:
        return size, preset.reason
    return size, f"between {least} and {most}: smaller steps are too noisy at this rate"


def _fit_epochs(
    wanted: int, reason: str, preset: _Preset, batch_size: int, trajectories: int
) -> tuple[int, str]:
    borne = max(1, min(wanted, -(-wanted * trajectories // preset.trajectories_for_full_epochs)))
    fitting = max(1, preset.max_steps * batch_size // max(1, trajectories))
    if fitting < borne:
        return (
            fitting,
            f"{trajectories} trajectories: more than {preset.max_steps} steps bring little",
        )
    if borne < wanted:
        return borne, f"only {trajectories} trajectories: more passes would memorise them"
    return wanted, reason


def _few_groups_note(groups: int) -> str:
    return f"only {groups} groups: expect a noisy gain, and record more tasks"
