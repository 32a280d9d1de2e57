"""Are the files of a checkpoint what they claim to be? Checked by their headers and fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from upswing.train.checkpoints.headers import FLOATS, TensorHeader, check_finite, read_header
from upswing.train.checkpoints.manifest import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    CONFIG,
    OPTIMIZER,
    TRAINER,
    WEIGHTS,
    AdapterConfig,
    InvalidCheckpoint,
    Manifest,
    TrainerFile,
)
from upswing.train.checkpoints.safe_reading import convert_struct, quote_name, read_json

_LORA = re.compile(r"base_model\.model\.([A-Za-z0-9_.]+)\.lora_([AB])\.weight")
_STATE = re.compile(r"optimizer\.\d{1,7}\.\w{1,64}|rng\.\w{1,64}|value\.[\w.]{1,256}")
_MAX_CONFIG = frozenset({TRAINER, "tokenizer.json", "vocab.json"})
"""JSON that is no loader's configuration."""
_CODE_FIELDS = frozenset(
    {
        "auto_map",
        "auto_mapping",
        "attn_implementation",
        "_attn_implementation",
        "custom_generate",
        "custom_pipelines",
        "experts_implementation",
        "kernel_config",
        "parent_library",
        "trust_remote_code",
    }
)
"""Fields by which a configuration makes a loader fetch or import code."""


@dataclass(frozen=True, slots=True)
class AdapterContents:
    config: AdapterConfig
    pairs: dict[str, tuple[TensorHeader, TensorHeader]]
    """Layer → the two matrices that are added to it."""


@dataclass(frozen=True, slots=True)
class FullContents:
    config: dict[str, Any]
    tensors: dict[str, TensorHeader]


def read_contents(folder: Path, manifest: Manifest) -> AdapterContents | FullContents:
    """What the weights are, or `Refused`."""
    _check_trainer(folder, manifest)
    match manifest.kind:
        case "adapter":
            return _read_adapter(folder, manifest)
        case "full":
            tensors = _read_weights(folder / WEIGHTS)
            return FullContents(_read_configs(folder, manifest), tensors)


def _read_weights(path: Path) -> dict[str, TensorHeader]:
    tensors = read_header(path)
    if not tensors:
        raise InvalidCheckpoint(f"{path.name} has no weights.")
    for tensor in tensors.values():
        if tensor.dtype not in FLOATS:
            raise InvalidCheckpoint(
                f"{path.name}: {quote_name(tensor.name)} is {tensor.dtype}: no weight is."
            )
    check_finite(path, tensors)
    return tensors


def _read_adapter(folder: Path, manifest: Manifest) -> AdapterContents:
    config = convert_struct(read_json(folder / ADAPTER_CONFIG), AdapterConfig, ADAPTER_CONFIG)
    if config.base_model_name_or_path != manifest.base_model:
        raise InvalidCheckpoint(
            f"{ADAPTER_CONFIG} is for {quote_name(config.base_model_name_or_path)}, "
            f"the manifest for {quote_name(manifest.base_model)}."
        )
    halves: dict[str, dict[str, TensorHeader]] = {}
    for name, tensor in _read_weights(folder / ADAPTER_WEIGHTS).items():
        found = _LORA.fullmatch(name)
        if found is None:
            raise InvalidCheckpoint(f"{quote_name(name)} is no weight of a LoRA adapter.")
        halves.setdefault(found[1], {})[found[2]] = tensor
    return AdapterContents(
        config, {module: _lora_pair(module, half, config) for module, half in halves.items()}
    )


def _lora_pair(
    module: str, half: dict[str, TensorHeader], config: AdapterConfig
) -> tuple[TensorHeader, TensorHeader]:
    if not any(f".{module}".endswith(f".{target}") for target in config.target_modules):
        raise InvalidCheckpoint(f"{quote_name(module)} is not among the adapter's target_modules.")
    match {side: tensor.shape for side, tensor in half.items()}:
        case {"A": (first, _), "B": (_, second)} if first == second == config.r:
            return half["A"], half["B"]
        case _:
            raise InvalidCheckpoint(
                f"The adapter of {quote_name(module)} is not of rank {config.r}."
            )


def _read_configs(folder: Path, manifest: Manifest) -> dict[str, Any]:
    """`config.json`, after a look at every configuration that a loader reads."""
    configs: dict[str, Any] = {}
    for name in sorted(manifest.files):
        if name.endswith(".json") and name not in _MAX_CONFIG:
            tree = read_json(folder / name)
            if odd := _CODE_FIELDS.intersection(_keys_in(tree)):
                raise InvalidCheckpoint(
                    f"{name} has {quote_name(min(odd))}, by which a loader runs code."
                )
            if name == CONFIG:
                configs = tree
    if not isinstance(configs.get("model_type"), str):
        raise InvalidCheckpoint("config.json does not say which model it is.")
    return configs


def _keys_in(tree: Any) -> Iterator[str]:
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
    trainer = convert_struct(read_json(folder / TRAINER), TrainerFile, TRAINER)
    if trainer.step != manifest.step:
        raise InvalidCheckpoint(
            f"{TRAINER} is of step {trainer.step}, the manifest of step {manifest.step}."
        )
    tensors = read_header(folder / OPTIMIZER)
    for name in tensors:
        if not _STATE.fullmatch(name):
            raise InvalidCheckpoint(f"{quote_name(name)} is no state of an optimizer.")
    check_finite(folder / OPTIMIZER, tensors)
