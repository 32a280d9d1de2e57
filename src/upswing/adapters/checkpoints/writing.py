"""How does a checkpoint come to the disk? Unseen, checked, then in place at once.

Writing is strict: what would be refused at loading is not saved. Weights that are no numbers
raise here, and the last good checkpoint stays.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import torch
from peft import PeftModel, get_peft_model_state_dict
from safetensors.torch import save_file
from transformers.utils import logging as transformers_logging

from upswing.adapters.checkpoints import bases
from upswing.adapters.checkpoints.checking import verify
from upswing.adapters.checkpoints.manifest import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    CONFIG,
    MANIFEST,
    OPTIMIZER,
    TRAINER,
    UNSEALED,
    WEIGHTS,
    AdapterConfig,
    Facts,
    File,
    Manifest,
    seal,
)
from upswing.adapters.checkpoints.shelf import fresh, put_in_place, settle
from upswing.adapters.checkpoints.state import TrainerState, pack
from upswing.adapters.checkpoints.strict import sha256_of
from upswing.errors import Misuse

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_PLAIN_LORA = {
    "bias": "none", "use_dora": False, "modules_to_save": None, "rank_pattern": {},
    "alpha_pattern": {}, "layer_replication": None, "lora_bias": False,
    "trainable_token_indices": None, "target_parameters": None,
}  # fmt: skip
"""What a checkpoint can say of an adapter; others load it wrongly or not at all."""


def save(
    folder: Path,
    name: str,
    model: Any,
    *,
    facts: Facts,
    optimizer: torch.optim.Optimizer | None = None,
    trainer: TrainerState | None = None,
    base_folder: Path | None = None,
) -> Path:
    """Save the checkpoint `folder/name`, whole or not at all; its path.

    Of a peft model the active adapter is saved, of any other model all weights. Without `trainer`
    it can be served but training cannot go on from it.
    """
    if not _NAME.fullmatch(name):
        raise Misuse(f"{name!r} is no name for a checkpoint.")
    if optimizer is not None and trainer is None:
        raise Misuse("An optimizer is saved together with the trainer's state.")
    settle(folder)
    new = fresh(folder, name)
    try:
        adapter = isinstance(model, PeftModel)
        if adapter:
            _write_adapter(new, model, facts.base_model)
        else:
            _write_full(new, model, base_folder)
        if trainer is not None:
            told, tensors = pack(trainer, optimizer)
            save_file(tensors, new / OPTIMIZER)
            (new / TRAINER).write_bytes(msgspec.json.encode(told))
        _write_manifest(new, facts, base_folder, adapter=adapter)
        verify(new, base=base_folder)
        put_in_place(new, folder / name)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    return folder / name


def _write_adapter(new: Path, model: Any, base_model: str) -> None:
    active = model.active_adapter
    told: dict[str, Any] = model.peft_config[active].to_dict()
    odd = [key for key, usual in _PLAIN_LORA.items() if (told.get(key) or usual) != usual]
    if odd or told["peft_type"] != "LORA":
        raise Misuse(
            f"Only a plain LoRA can be saved; this adapter has {odd or told['peft_type']}."
        )
    weights = get_peft_model_state_dict(model, adapter_name=active, save_embedding_layers=False)
    config = AdapterConfig(
        peft_version=told["peft_version"],
        base_model_name_or_path=base_model,
        r=told["r"],
        lora_alpha=told["lora_alpha"],
        lora_dropout=told["lora_dropout"],
        target_modules=_targets(told["target_modules"], weights),
        fan_in_fan_out=told["fan_in_fan_out"],
        use_rslora=told["use_rslora"],
    )
    (new / ADAPTER_CONFIG).write_bytes(msgspec.json.format(msgspec.json.encode(config)))
    save_file(_plain(weights), new / ADAPTER_WEIGHTS, metadata={"format": "pt"})


def _targets(told: Any, weights: dict[str, torch.Tensor]) -> list[str]:
    """Names, not patterns: what was matched stands in the weights."""
    if isinstance(told, str):
        inside = {name.removeprefix("base_model.model.").partition(".lora_")[0] for name in weights}
        return sorted(inside)
    return sorted(told)


def _write_full(new: Path, model: Any, base_folder: Path | None) -> None:
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # theirs has no types
    model.save_pretrained(new, max_shard_size="1000GB")
    for file in new.iterdir():
        if file.name not in {WEIGHTS, CONFIG}:
            file.unlink()
    if base_folder is None:
        return
    config = bases.config_of(base_folder)
    config.pop("torch_dtype", None)
    config["dtype"] = str(model.dtype).removeprefix("torch.")
    (new / CONFIG).write_bytes(msgspec.json.format(msgspec.json.encode(config)))
    for name in bases.copied(base_folder):
        shutil.copyfile(base_folder / name, new / name)


def _plain(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}


def _write_manifest(new: Path, facts: Facts, base_folder: Path | None, *, adapter: bool) -> None:
    manifest = Manifest(
        seal=UNSEALED,
        kind="adapter" if adapter else "full",
        base_model=facts.base_model,
        base_sha256=bases.fingerprint(base_folder) if base_folder else None,
        job_id=facts.job_id,
        step=facts.step,
        snapshot=facts.snapshot,
        recipe=msgspec.to_builtins(facts.recipe),
        parent=facts.parent,
        code_version=facts.code_version,
        created=facts.created,
        files={
            path.name: File(sha256_of(path), path.stat().st_size) for path in sorted(new.iterdir())
        },
    )
    (new / MANIFEST).write_bytes(seal(manifest))
