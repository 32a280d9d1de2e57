"""What is the demo going to do? A model, a world, and sizes that fit them; and the loop's settings for it.

| model     | world    | agents | trajectories that trigger | held-out tasks               |
|-----------|----------|--------|---------------------------|------------------------------|
| `tiny`    | desk     | 8      | 1,152                     | 176, greedily                |
| `smollm2` | workshop | 6      | 480                       | 48, three samples of each    |

How it trains and validates are everybody's defaults: nothing is set here but sizes.

A language model of 135 million weights explains itself when it is asked for one word, so it gets a world
of its own, and is measured as it is used: at temperature 1. Greedily it says the same to everybody.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from msgspec import Struct

from upswing.contracts.typed import from_json
from upswing.errors import Misuse

SPEED = 600
"""The loop's clock runs so many times faster than the wall's: a ramp of four hours takes 24 seconds."""


@dataclass(frozen=True, slots=True)
class DemoSizes:
    """How much of everything, for one model."""

    threshold: int
    """New trajectories that trigger a training."""
    agents: int
    held_out: int
    at_once: int
    round: int
    """Tasks that all agents do between two looks at the loop."""
    stage_seconds: float
    """Seconds of real time that a stage may take before the story goes on without it."""
    world: str = "desk"
    temperature: float = 0.0
    """Of whoever is measured on held-out tasks."""
    samples: int = 1
    """Of every held-out task."""
    slow: bool = False
    """Whether the model answers so slowly that agents take no rest while a canary waits for rewards, and
    a long one while the processors are needed elsewhere."""


SIZES = {
    "tiny": DemoSizes(1152, 8, 176, 8, 6, 240.0),
    "smollm2": DemoSizes(480, 6, 48, 6, 4, 900.0, "workshop", 1.0, 3, slow=True),
}


class DemoPlan(Struct, frozen=True):
    """One run of the demo; kept in the data directory, so that the next start goes on with it."""

    model: str = "tiny"
    world: str = "desk"
    seed: int = 0

    @property
    def sizes(self) -> DemoSizes:
        return SIZES[self.model]


def load_plan(folder: Path, model: str | None, seed: int | None) -> DemoPlan:
    """The plan of this data directory, made if there is none; `Misuse` when another one lies there."""
    path = folder / "demo" / "plan.json"
    if not path.exists():
        if (folder / "secrets.json").exists():
            raise Misuse(
                f"{folder} holds a loop of your own, and the demo would write into it: "
                "give the demo another --data."
            )
        name = _known_model(model or "tiny")
        return DemoPlan(name, SIZES[name].world, seed or 0)
    try:
        plan = from_json(path.read_bytes(), DemoPlan)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Misuse(f"{path} cannot be read ({error}): take another --data.") from None
    for name, wanted, there in (("--model", model, plan.model), ("--seed", seed, plan.seed)):
        if wanted is not None and wanted != there:
            raise Misuse(
                f"{folder} was made with {name} {there}: leave {name} out to go on with it, or give "
                "another --data."
            )
    return plan


def save_plan(folder: Path, plan: DemoPlan) -> None:
    """Write the plan and the loop's settings down, where they are not there yet."""
    (folder / "demo").mkdir(exist_ok=True, mode=0o700)
    for path, text in (
        (folder / "demo" / "plan.json", msgspec.json.encode(plan).decode()),
        (folder / "upswing.toml", settings_text(plan)),
    ):
        if not path.exists():
            path.write_text(text)


def settings_text(plan: DemoPlan) -> str:
    """The loop's own settings, as a person would write them.

    >>> "blue_green = false" in settings_text(DemoPlan())
    True
    """
    sizes = plan.sizes
    return f"""\
# Written by `upswing demo`; `upswing up --data` goes on with it.

[trigger]
threshold = {sizes.threshold}
schedule = "off"

[train]
base_model = "{plan.model}"

[train.recipe]
seed = {plan.seed}

[deploy]
# A fifth of the usual rewards at each step: the demo's agents are few.
samples = 0.2

[deploy.boldness]
# A much better model would take all traffic at once; so the ramp is seen.
blue_green = false
"""


def accelerated_clock(
    start: datetime, monotonic: Callable[[], float], speed: int = SPEED
) -> Callable[[], datetime]:
    """A clock that begins at `start` and runs `speed` times faster than the wall's.

    >>> ticks = iter([100.0, 106.0])
    >>> accelerated_clock(datetime(2026, 1, 5), lambda: next(ticks))()
    datetime.datetime(2026, 1, 5, 1, 0)
    """
    began = monotonic()
    return lambda: start + timedelta(seconds=speed * (monotonic() - began))


def _known_model(model: str) -> str:
    if model not in SIZES:
        raise Misuse(f"The demo has no plan for the model {model!r}: take {' or '.join(SIZES)}.")
    return model
