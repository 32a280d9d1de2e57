"""Where did training stop? Step, optimizer and random state as tensors and scalars, and back again.

Everything is exact: training that goes on from here gives the same bits as if it had never
stopped.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from upswing.errors import Misuse
from upswing.train.checkpoints.manifest import (
    InvalidCheckpoint,
    OptimizerGroup,
    Scalar,
    TrainerFile,
)


@dataclass(frozen=True, slots=True)
class TrainerState:
    """What training needs besides weights and optimizer to go on."""

    step: int
    """Optimizer steps that are done."""
    epoch: int = 0
    position: int = 0
    """How far the order of the data has been walked in this epoch."""
    seed: int = 0
    best: float | None = None
    """The best held-out measure so far."""
    best_step: int | None = None
    scalars: Mapping[str, Scalar] = field(default_factory=dict)
    """Whatever else the trainer counts."""
    value: Mapping[str, Tensor] = field(default_factory=dict)
    """PPO: the value head's weights."""
    rng: Mapping[str, Tensor] = field(default_factory=dict)
    """Where chance stood; filled in when it is saved."""


def pack_state(
    state: TrainerState, optimizer: torch.optim.Optimizer | None
) -> tuple[TrainerFile, dict[str, Tensor]]:
    """The scalars and the tensors of a state."""
    groups, tensors = _pack_optimizer(optimizer) if optimizer is not None else ([], {})
    tensors |= {f"value.{name}": tensor for name, tensor in state.value.items()}
    tensors |= {f"rng.{name}": tensor for name, tensor in (state.rng or rng_state()).items()}
    trainer_file = TrainerFile(
        step=state.step,
        epoch=state.epoch,
        position=state.position,
        seed=state.seed,
        best=state.best,
        best_step=state.best_step,
        scalars=dict(state.scalars),
        groups=groups,
    )
    for each in (trainer_file.best, *trainer_file.scalars.values()):
        if isinstance(each, float) and not math.isfinite(each):
            raise Misuse(f"{each} is no number that a checkpoint can keep.")
    return trainer_file, {
        name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()
    }


def unpack_state(file: TrainerFile, tensors: Mapping[str, Tensor]) -> TrainerState:
    """The state, without the optimizer's part."""
    parts: dict[str, dict[str, Tensor]] = {"value": {}, "rng": {}, "optimizer": {}}
    for name, tensor in tensors.items():
        kind, _, rest = name.partition(".")
        parts[kind][rest] = tensor
    return TrainerState(
        file.step,
        file.epoch,
        file.position,
        file.seed,
        file.best,
        file.best_step,
        dict(file.scalars),
        parts["value"],
        parts["rng"],
    )


def _pack_optimizer(
    optimizer: torch.optim.Optimizer,
) -> tuple[list[OptimizerGroup], dict[str, Tensor]]:
    state_dict: dict[str, Any] = optimizer.state_dict()
    groups = [
        OptimizerGroup(
            len(group["params"]),
            {key: _plain_option(key, value) for key, value in group.items() if key != "params"},
        )
        for group in state_dict["param_groups"]
    ]
    tensors: dict[str, Tensor] = {}
    for index, state in state_dict["state"].items():
        for key, value in state.items():
            if not isinstance(value, Tensor):
                raise Misuse(f"The optimizer keeps {key} as {type(value).__name__}, not a tensor.")
            tensors[f"optimizer.{index}.{key}"] = value
    return groups, tensors


def _plain_option(key: str, value: Any) -> Scalar | list[float]:
    match value:
        case bool() | int() | str() | None:
            return value
        case float() if math.isfinite(value):
            return value
        case tuple() | list() if all(isinstance(each, int | float) for each in value):
            return [float(each) for each in value]
        case _:
            raise Misuse(f"The optimizer's option {key}={value!r} cannot be kept in a checkpoint.")


def load_optimizer(
    optimizer: torch.optim.Optimizer, groups: list[OptimizerGroup], tensors: Mapping[str, Tensor]
) -> None:
    """Set an optimizer, made for the same parameters, to where it stood."""
    mine = optimizer.param_groups
    if [len(group["params"]) for group in mine] != [group.params for group in groups]:
        raise InvalidCheckpoint("The optimizer's state is for other parameters than these.")
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        match name.split("."):
            case ["optimizer", number, key]:
                state.setdefault(int(number), {})[key] = tensor
            case _:
                pass
    params = [param for group in mine for param in group["params"]]
    for index, entry in state.items():
        shapes = {key: tuple(tensor.shape) for key, tensor in entry.items() if tensor.ndim}
        if index >= len(params) or set(shapes.values()) - {tuple(params[index].shape)}:
            raise InvalidCheckpoint(
                "The optimizer's state does not fit the shape of the parameters."
            )
    known = [
        {
            **{key: _to_optimizer_option(value) for key, value in group.options.items()},
            "params": numbers,
        }
        for group, numbers in zip(groups, _parameter_numbers(groups), strict=True)
    ]
    optimizer.load_state_dict({"state": state, "param_groups": known})


def _to_optimizer_option(value: Scalar | list[float]) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _parameter_numbers(groups: list[OptimizerGroup]) -> list[list[int]]:
    """The parameters' numbers, group after group."""
    ends = accumulate((group.params for group in groups), initial=0)
    return [list(range(start, end)) for start, end in pairwise(ends)]


# ── chance ───────────────────────────────────────────────────────────────────────────────────────


def rng_state() -> dict[str, Tensor]:
    """Where every source of chance in this process stands."""
    _, numbers, gauss = random.getstate()
    kept = {"torch": torch.get_rng_state(), "python": torch.tensor(numbers, dtype=torch.int64)}
    if gauss is not None:
        kept["python_gauss"] = torch.tensor([gauss], dtype=torch.float64)
    numpy_rng: Any = np.random.get_state()  # noqa: NPY002 - the global one is what libraries use
    name, keys, position, has_gauss, cached = numpy_rng
    if name == "MT19937":
        kept["numpy"] = torch.tensor([*keys.tolist(), position, has_gauss], dtype=torch.int64)
        kept["numpy_gauss"] = torch.tensor([cached], dtype=torch.float64)
    if torch.cuda.is_available():
        states = torch.cuda.get_rng_state_all()
        kept |= {f"cuda{number}": state for number, state in enumerate(states)}
    return kept


def restore_rng(saved: Mapping[str, Tensor]) -> None:
    """Let chance go on from where it stood."""
    try:
        if "torch" in saved:
            torch.set_rng_state(_torch_state(saved["torch"]))
        if "python" in saved:
            gauss = float(saved["python_gauss"]) if "python_gauss" in saved else None
            random.setstate((3, tuple(saved["python"].tolist()), gauss))
        if "numpy" in saved:
            np.random.set_state(_numpy_state(saved))  # noqa: NPY002 - as in `rng_state`
        for number in range(torch.cuda.device_count()):
            if f"cuda{number}" in saved:
                torch.cuda.set_rng_state(saved[f"cuda{number}"], number)
    except (RuntimeError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise InvalidCheckpoint(f"The state of chance cannot be used: {error}.") from None


def _torch_state(saved: Tensor) -> Tensor:
    """What torch takes with half a look: it checks both numbers, but not their sum.

    In its generator the number of words that are left stands at byte 8, the next one's at 16.
    """
    raw = bytes(saved.tolist())
    left, following = int.from_bytes(raw[8:12], "little"), int.from_bytes(raw[16:24], "little")
    if left + following > 625:
        raise ValueError("torch has no such state")
    return saved


def _numpy_state(saved: Mapping[str, Tensor]) -> Any:
    """What numpy takes without a look: a position too far reads beyond its memory."""
    *keys, position, has_gauss = saved["numpy"].tolist()
    words = len(keys) == 624 and all(0 <= key < 1 << 32 for key in keys)
    if not words or not 0 <= position <= 624 or has_gauss not in {0, 1}:
        raise ValueError("numpy has no such state")
    return "MT19937", keys, position, has_gauss, float(saved["numpy_gauss"])
