"""What is in a checkpoint? A flat folder of known files, each with its hash in `manifest.json`.

| file                                                | what it is                              |
|-----------------------------------------------------|-----------------------------------------|
| `adapter_config.json`, `adapter_model.safetensors`  | an adapter, as peft and vLLM load it     |
| `config.json`, `model.safetensors`                  | or all weights, as transformers does     |
| tokenizer and generation files                      | with all weights: copies of the base's   |
| `optimizer.safetensors`, `trainer.json`             | how training goes on; not in every one   |
| `manifest.json`                                     | where it comes from, and every file      |
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from upswing import __version__
from upswing.errors import Reason, Rejected
from upswing.train.core.recipe import Recipe

FORMAT: Literal[1] = 1
MANIFEST = "manifest.json"
ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
CONFIG, WEIGHTS = "config.json", "model.safetensors"
OPTIMIZER, TRAINER = "optimizer.safetensors", "trainer.json"
COPIED_FILES = frozenset(
    {
        "added_tokens.json",
        "chat_template.jinja",
        "chat_template.json",
        "generation_config.json",
        "merges.txt",
        "special_tokens_map.json",
        "spiece.model",
        "tokenizer.json",
        "tokenizer.model",
        "tokenizer_config.json",
        "vocab.json",
        "vocab.txt",
    }
)
"""Taken from the base as they are."""
Kind = Literal["adapter", "full"]
REQUIRED_FILES: dict[Kind, frozenset[str]] = {
    "adapter": frozenset({ADAPTER_CONFIG, ADAPTER_WEIGHTS}),
    "full": frozenset({CONFIG, WEIGHTS}),
}
ALLOWED_FILES: dict[Kind, frozenset[str]] = {
    "adapter": REQUIRED_FILES["adapter"] | {OPTIMIZER, TRAINER},
    "full": REQUIRED_FILES["full"] | {OPTIMIZER, TRAINER} | COPIED_FILES,
}

Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Text = Annotated[str, Meta(max_length=4096)]
Count = Annotated[int, Meta(ge=0, le=1 << 62)]


class InvalidCheckpoint(Rejected):
    """Such a checkpoint is not loaded, now or later; the sentence says what is wrong with it."""

    def __init__(self, detail: str, reason: Reason = Reason.SCHEMA) -> None:
        super().__init__(reason, detail)


class ManifestFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sha256: Sha256
    size: Count


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where a checkpoint comes from, and what belongs to it."""

    format: Literal[1] = FORMAT
    seal: Sha256
    """Hash of the manifest itself, taken with zeros in this place: it names the checkpoint."""
    kind: Kind
    base_model: Text
    base_sha256: Sha256 | None
    """Of the base's config and weights, so that a wrong base is recognised."""
    job_id: Text
    step: Count
    snapshot: Text
    """Hash of the data it was trained on."""
    recipe: dict[str, Any]
    """As it was at the time: knobs may come and go."""
    parent: Text
    code_version: Text
    created: Annotated[datetime, Meta(tz=True)]
    files: dict[str, ManifestFile]


NO_SEAL = "0" * 64


def manifest_digest(manifest: Manifest) -> bytes:
    """The bytes of `manifest.json`, with its own hash in them."""
    open_ = msgspec.structs.replace(manifest, seal=NO_SEAL)
    raw = msgspec.json.format(msgspec.json.encode(open_))
    return raw.replace(NO_SEAL.encode(), hashlib.sha256(raw).hexdigest().encode(), 1)


def has_valid_seal(raw: bytes, expected_seal: str) -> bool:
    """Whether these bytes are as they were when they got this seal."""
    before = raw.replace(expected_seal.encode(), NO_SEAL.encode(), 1)
    return hashlib.sha256(before).hexdigest() == expected_seal


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """What the trainer knows about a checkpoint and the weights do not."""

    base_model: str
    job_id: str
    step: int
    created: datetime
    recipe: Recipe
    snapshot: str = ""
    parent: str = ""
    code_version: str = __version__


class AdapterConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`adapter_config.json`: what describes a plain LoRA, and no field that could name code."""

    peft_type: Literal["LORA"] = "LORA"
    task_type: Literal["CAUSAL_LM"] = "CAUSAL_LM"
    peft_version: Text = ""
    base_model_name_or_path: Text
    revision: None = None
    r: Annotated[int, Meta(ge=1, le=1024)]
    lora_alpha: Annotated[float, Meta(ge=0)]
    lora_dropout: Annotated[float, Meta(ge=0, le=1)] = 0.0
    target_modules: Annotated[
        list[Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.]{1,256}$")]], Meta(min_length=1)
    ]
    bias: Literal["none"] = "none"
    fan_in_fan_out: bool = False
    use_rslora: bool = False
    inference_mode: bool = True


Scalar = bool | int | float | str | None


class OptimizerGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A parameter group of the optimizer: how many parameters, and its options."""

    params: Count
    options: dict[str, Scalar | list[float]]


class TrainerFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`trainer.json`: the scalars of a `TrainerState`, and of the optimizer."""

    step: Count
    epoch: Count
    position: Count
    seed: int
    best: float | None = None
    best_step: Count | None = None
    scalars: dict[str, Scalar] = {}
    groups: list[OptimizerGroup] = []
