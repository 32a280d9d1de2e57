"""How does a checkpoint come to the disk? Unseen, checked, then in place at once.

Writing is strict: what would be refused at loading is not saved. Weights that are no numbers
raise here, and the last good checkpoint stays.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import torch
from peft import PeftModel, get_peft_model_state_dict
from safetensors.torch import save_file
from transformers.utils import logging as transformers_logging

from upswing.errors import Misuse
from upswing.train.checkpoints import bases
from upswing.train.checkpoints.checking import verify
from upswing.train.checkpoints.folders import (
    create_staging_folder,
    exchange_names,
    publish_folder,
    recover_folders,
)
from upswing.train.checkpoints.manifest import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    CONFIG,
    MANIFEST,
    NO_SEAL,
    OPTIMIZER,
    TRAINER,
    WEIGHTS,
    AdapterConfig,
    CheckpointInfo,
    Manifest,
    ManifestFile,
    manifest_digest,
)
from upswing.train.checkpoints.safe_reading import sha256_of
from upswing.train.checkpoints.state import TrainerState, pack_state

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_PLAIN_LORA_CONFIG = {
    "bias": "none",
    "use_dora": False,
    "modules_to_save": None,
    "rank_pattern": {},
    "alpha_pattern": {},
    "layer_replication": None,
    "lora_bias": False,
    "trainable_token_indices": None,
    "target_parameters": None,
}
"""What a checkpoint can say of an adapter; others load it wrongly or not at all."""


def save_checkpoint(
    folder: Path,
    name: str,
    model: Any,
    *,
    info: CheckpointInfo,
    optimizer: torch.optim.Optimizer | None = None,
    trainer: TrainerState | None = None,
    base_folder: Path | None = None,
    swap_names: Callable[[Path, Path], bool] = exchange_names,
) -> Path:
    """Save the checkpoint `folder/name`, whole or not at all; its path.

    Of a peft model the active adapter is saved, of any other model all weights. Without `trainer`
    it can be served but training cannot go on from it. `swap_names` exchanges two folders at once, or
    returns False where the system cannot.
    """
    if not _NAME.fullmatch(name):
        raise Misuse(f"{name!r} is no name for a checkpoint.")
    if optimizer is not None and trainer is None:
        raise Misuse("An optimizer is saved together with the trainer's state.")
    recover_folders(folder)
    new = create_staging_folder(folder, name)
    try:
        adapter = isinstance(model, PeftModel)
        if adapter:
            _write_adapter(new, model, info.base_model)
        else:
            _write_full(new, model, base_folder)
        if trainer is not None:
            lora_config, tensors = pack_state(trainer, optimizer)
            save_file(tensors, new / OPTIMIZER)
            (new / TRAINER).write_bytes(msgspec.json.encode(lora_config))
        _write_manifest(new, info, base_folder, adapter=adapter)
        verify(new, base=base_folder)
        publish_folder(new, folder / name, swap_names=swap_names)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    return folder / name


def _write_adapter(staging_folder: Path, model: Any, base_model: str) -> None:
    active = model.active_adapter
    lora_config: dict[str, Any] = model.peft_config[active].to_dict()
    odd = [
        key for key, usual in _PLAIN_LORA_CONFIG.items() if (lora_config.get(key) or usual) != usual
    ]
    if odd or lora_config["peft_type"] != "LORA":
        raise Misuse(
            f"Only a plain LoRA can be saved; this adapter has {odd or lora_config['peft_type']}."
        )
    weights = get_peft_model_state_dict(model, adapter_name=active, save_embedding_layers=False)
    config = AdapterConfig(
        peft_version=lora_config["peft_version"],
        base_model_name_or_path=base_model,
        r=lora_config["r"],
        lora_alpha=lora_config["lora_alpha"],
        lora_dropout=lora_config["lora_dropout"],
        target_modules=_target_modules(lora_config["target_modules"], weights),
        fan_in_fan_out=lora_config["fan_in_fan_out"],
        use_rslora=lora_config["use_rslora"],
    )
    (staging_folder / ADAPTER_CONFIG).write_bytes(msgspec.json.format(msgspec.json.encode(config)))
    save_file(_plain_tensors(weights), staging_folder / ADAPTER_WEIGHTS, metadata={"format": "pt"})


def _target_modules(configured: Any, weights: dict[str, torch.Tensor]) -> list[str]:
    """Names, not patterns: what was matched stands in the weights."""
    if isinstance(configured, str):
        inside = {name.removeprefix("base_model.model.").partition(".lora_")[0] for name in weights}
        return sorted(inside)
    return sorted(configured)


def _write_full(staging_folder: Path, model: Any, base_folder: Path | None) -> None:
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # theirs has no types
    model.save_pretrained(staging_folder, max_shard_size="1000GB")
    for file in staging_folder.iterdir():
        if file.name not in {WEIGHTS, CONFIG}:
            file.unlink()
    if base_folder is None:
        return
    config = bases.base_config(base_folder)
    config.pop("torch_dtype", None)
    config["dtype"] = str(model.dtype).removeprefix("torch.")
    (staging_folder / CONFIG).write_bytes(msgspec.json.format(msgspec.json.encode(config)))
    for name in bases.copied_files(base_folder):
        shutil.copyfile(base_folder / name, staging_folder / name)


def _plain_tensors(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}


def _write_manifest(
    staging_folder: Path, info: CheckpointInfo, base_folder: Path | None, *, adapter: bool
) -> None:
    manifest = Manifest(
        seal=NO_SEAL,
        kind="adapter" if adapter else "full",
        base_model=info.base_model,
        base_sha256=bases.base_fingerprint(base_folder) if base_folder else None,
        job_id=info.job_id,
        step=info.step,
        snapshot=info.snapshot,
        recipe=msgspec.to_builtins(info.recipe),
        parent=info.parent,
        code_version=info.code_version,
        created=info.created,
        files={
            path.name: ManifestFile(sha256_of(path), path.stat().st_size)
            for path in sorted(staging_folder.iterdir())
        },
    )
    (staging_folder / MANIFEST).write_bytes(manifest_digest(manifest))
