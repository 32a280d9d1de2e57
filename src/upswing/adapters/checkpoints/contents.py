"""Are the files of a checkpoint what they say they are? Looked at by their headers and fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from upswing.adapters.checkpoints.headers import FLOATS, Tensor, check_finite, read_header
from upswing.adapters.checkpoints.manifest import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    CONFIG,
    OPTIMIZER,
    TRAINER,
    WEIGHTS,
    AdapterConfig,
    Manifest,
    Refused,
    TrainerFile,
)
from upswing.adapters.checkpoints.strict import as_struct, read_json, shown

_LORA = re.compile(r"base_model\.model\.([A-Za-z0-9_.]+)\.lora_([AB])\.weight")
_STATE = re.compile(r"optimizer\.\d{1,7}\.\w{1,64}|rng\.\w{1,64}|value\.[\w.]{1,256}")
_LARGE = frozenset({TRAINER, "tokenizer.json", "vocab.json"})
"""JSON that is no loader's configuration."""
_CODE = frozenset({
    "auto_map", "auto_mapping", "attn_implementation", "_attn_implementation", "custom_generate",
    "custom_pipelines", "experts_implementation", "kernel_config", "parent_library",
    "trust_remote_code",
})  # fmt: skip
"""Fields by which a configuration makes a loader fetch or import code."""


@dataclass(frozen=True, slots=True)
class Adapter:
    config: AdapterConfig
    pairs: dict[str, tuple[Tensor, Tensor]]
    """Layer → the two matrices that are added to it."""


@dataclass(frozen=True, slots=True)
class Full:
    config: dict[str, Any]
    tensors: dict[str, Tensor]


def look_into(folder: Path, manifest: Manifest) -> Adapter | Full:
    """What the weights are, or `Refused`."""
    _check_trainer(folder, manifest)
    match manifest.kind:
        case "adapter":
            return _adapter(folder, manifest)
        case "full":
            tensors = _weights(folder / WEIGHTS)
            return Full(_configs(folder, manifest), tensors)


def _weights(path: Path) -> dict[str, Tensor]:
    tensors = read_header(path)
    if not tensors:
        raise Refused(f"{path.name} has no weights.")
    for tensor in tensors.values():
        if tensor.dtype not in FLOATS:
            raise Refused(f"{path.name}: {shown(tensor.name)} is {tensor.dtype}: no weight is.")
    check_finite(path, tensors)
    return tensors


def _adapter(folder: Path, manifest: Manifest) -> Adapter:
    config = as_struct(read_json(folder / ADAPTER_CONFIG), AdapterConfig, ADAPTER_CONFIG)
    if config.base_model_name_or_path != manifest.base_model:
        raise Refused(
            f"{ADAPTER_CONFIG} is for {shown(config.base_model_name_or_path)}, "
            f"the manifest for {shown(manifest.base_model)}."
        )
    halves: dict[str, dict[str, Tensor]] = {}
    for name, tensor in _weights(folder / ADAPTER_WEIGHTS).items():
        found = _LORA.fullmatch(name)
        if found is None:
            raise Refused(f"{shown(name)} is no weight of a LoRA adapter.")
        halves.setdefault(found[1], {})[found[2]] = tensor
    return Adapter(config, {module: _pair(module, half, config) for module, half in halves.items()})


def _pair(module: str, half: dict[str, Tensor], config: AdapterConfig) -> tuple[Tensor, Tensor]:
    if not any(f".{module}".endswith(f".{target}") for target in config.target_modules):
        raise Refused(f"{shown(module)} is not among the adapter's target_modules.")
    match {side: tensor.shape for side, tensor in half.items()}:
        case {"A": (first, _), "B": (_, second)} if first == second == config.r:
            return half["A"], half["B"]
        case _:
            raise Refused(f"The adapter of {shown(module)} is not of rank {config.r}.")


def _configs(folder: Path, manifest: Manifest) -> dict[str, Any]:
    """`config.json`, after a look at every configuration that a loader reads."""
    told: dict[str, Any] = {}
    for name in sorted(manifest.files):
        if name.endswith(".json") and name not in _LARGE:
            tree = read_json(folder / name)
            if odd := _CODE.intersection(_keys(tree)):
                raise Refused(f"{name} has {shown(min(odd))}, by which a loader runs code.")
            if name == CONFIG:
                told = tree
    if not isinstance(told.get("model_type"), str):
        raise Refused("config.json does not say which model it is.")
    return told


def _keys(tree: Any) -> Iterator[str]:
    """Every key of a JSON tree, however deep."""
    left = [tree]
    while left:
        match left.pop():
            case dict() as mapping:
                yield from mapping
                left.extend(mapping.values())
            case list() as items:
                left.extend(items)
            case _:
                pass


def _check_trainer(folder: Path, manifest: Manifest) -> None:
    if TRAINER not in manifest.files:
        return
    told = as_struct(read_json(folder / TRAINER), TrainerFile, TRAINER)
    if told.step != manifest.step:
        raise Refused(f"{TRAINER} is of step {told.step}, the manifest of step {manifest.step}.")
    tensors = read_header(folder / OPTIMIZER)
    for name in tensors:
        if not _STATE.fullmatch(name):
            raise Refused(f"{shown(name)} is no state of an optimizer.")
    check_finite(folder / OPTIMIZER, tensors)
