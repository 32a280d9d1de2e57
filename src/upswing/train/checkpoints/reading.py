"""How do a model and its optimizer go on from a checkpoint?

Nothing is taken from a file whose bytes, as they are read, are not those of the manifest.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from upswing.train.checkpoints.checking import verify
from upswing.train.checkpoints.headers import parse_header
from upswing.train.checkpoints.manifest import (
    ADAPTER_WEIGHTS,
    OPTIMIZER,
    TRAINER,
    WEIGHTS,
    InvalidCheckpoint,
    Manifest,
    TrainerFile,
)
from upswing.train.checkpoints.safe_reading import convert_struct, open_plain, quote_name, read_json
from upswing.train.checkpoints.state import TrainerState, load_optimizer, restore_rng, unpack_state

_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


def load_weights(folder: Path, manifest: Manifest) -> dict[str, Tensor]:
    """The weights of a verified checkpoint, by name."""
    name = ADAPTER_WEIGHTS if manifest.kind == "adapter" else WEIGHTS
    return _load_tensors(folder / name, manifest.files[name].sha256)


def restore_checkpoint(
    folder: Path,
    model: Any,
    optimizer: torch.optim.Optimizer | None = None,
    *,
    base: Path | str | None = None,
) -> TrainerState:
    """Set a model, its optimizer and chance to where they stood; the rest of the state.

    The model is made as it was: the same base, and with the same adapter if it had one.
    """
    manifest = verify(folder, base=base)
    if TRAINER not in manifest.files:
        raise InvalidCheckpoint("Training cannot go on from it: it holds weights only.")
    set_weights(model, load_weights(folder, manifest), manifest)
    trainer = convert_struct(read_json(folder / TRAINER), TrainerFile, TRAINER)
    tensors = _load_tensors(folder / OPTIMIZER, manifest.files[OPTIMIZER].sha256)
    state = unpack_state(trainer, tensors)
    if optimizer is not None:
        load_optimizer(optimizer, trainer.groups, tensors)
    restore_rng(state.rng)
    return state


def set_weights(model: Any, weights: dict[str, Tensor], manifest: Manifest) -> None:
    """Give a model the weights of a checkpoint; all of them fit, or `Refused`."""
    from peft import (  # noqa: PLC0415 - takes seconds, and whoever only reads weights needs none of it
        PeftModel,
        get_peft_model_state_dict,
        set_peft_model_state_dict,
    )

    adapter = isinstance(model, PeftModel)
    if adapter != (manifest.kind == "adapter"):
        raise InvalidCheckpoint(
            f"This is a checkpoint of kind {manifest.kind}, which the model is not."
        )
    mine: dict[str, Tensor]
    if adapter:
        mine = get_peft_model_state_dict(
            model, adapter_name=model.active_adapter, save_embedding_layers=False
        )
    else:
        mine = model.state_dict()
    for name in mine.keys() & weights.keys():
        if mine[name].shape != weights[name].shape:
            raise InvalidCheckpoint(f"{quote_name(name)} has another shape in the model.")
    tied = set(getattr(model, "all_tied_weights_keys", None) or ()) if not adapter else set()
    if odd := (mine.keys() ^ weights.keys()) - tied:
        raise InvalidCheckpoint(
            f"Model and checkpoint do not have the same weights: see {quote_name(min(odd))}."
        )
    if adapter:
        set_peft_model_state_dict(model, weights, adapter_name=model.active_adapter)
    else:
        model.load_state_dict(weights, strict=False)


def _load_tensors(path: Path, sha256: str) -> dict[str, Tensor]:
    """Every tensor of a safetensors file, read once and hashed while it is read."""
    digest = hashlib.sha256()
    made: dict[str, Tensor] = {}
    with open_plain(path) as file:
        header = parse_header(file, path.name)
        behind = file.tell()
        file.seek(0)
        digest.update(file.read(behind))
        for name, tensor in header.items():
            body = bytearray(tensor.end - tensor.start)
            file.readinto(body)  # type: ignore[attr-defined]  # a file opened to be read has it
            digest.update(body)
            made[name] = (
                torch.frombuffer(body, dtype=_DTYPES[tensor.dtype]).reshape(tensor.shape)
                if body
                else torch.empty(tensor.shape, dtype=_DTYPES[tensor.dtype])
            )
    if digest.hexdigest() != sha256:
        raise InvalidCheckpoint(f"{path.name} is not the file that was verified.")
    return made
