"""How is a base loaded, and what of it is trained?

Only local files, only safetensors, no code from a folder: `bases` has looked before, and what is
passed to transformers here says so once more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors import SafetensorError
from torch import nn
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from upswing.errors import Misuse
from upswing.train.bases.catalog import BaseModel
from upswing.train.checkpoints.checking import verify
from upswing.train.checkpoints.manifest import ADAPTER_CONFIG, AdapterConfig
from upswing.train.checkpoints.reading import load_weights, set_weights
from upswing.train.checkpoints.safe_reading import convert_struct, read_json
from upswing.train.core.recipe import Lora, Recipe

_SMALL = 20_000_000
"""Weights, below which one thread computes."""


def load_base(
    base: BaseModel, *, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu"
) -> tuple[Any, Any]:
    """The model and its tokenizer; `Misuse` when the folder does not hold what it promises."""
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # theirs has no types
    safely: Any = {"local_files_only": True, "trust_remote_code": False}
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(base.folder, **safely)
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            base.folder,
            dtype=dtype,
            use_safetensors=True,
            attn_implementation="sdpa",
            output_loading_info=True,
            **safely,
        )
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, SafetensorError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise Misuse(f"The base model {base.name} cannot be loaded: {lines[0]}") from error
    model, report = loaded
    if missing := sorted(report["missing_keys"]):
        raise Misuse(f"The base model {base.name} lacks weights: see {missing[0]}.")
    if len(tokenizer) > model.get_input_embeddings().num_embeddings:
        raise Misuse(f"The tokenizer of {base.name} knows more tokens than the model.")
    return model.to(device), tokenizer


def set_threads(model: Any, threads: int | None, *, shares_cores: bool = False) -> None:
    """As many as somebody set, else as many as suit the model.

    | model                                                  | threads           |
    |--------------------------------------------------------|-------------------|
    | small                                                  | one               |
    | larger, and a model server works on them too           | half of the cores |
    | larger                                                 | torch's own number |

    Threads wait for each other after every product. Those of a small model take microseconds, so it
    gains nothing by more; and where a core has other work, each wait lasts until that gives way: on two
    cores, one of them busy serving, a step of `smollm2` takes 7 s with one thread and 12 s with two.
    """
    cores = os.cpu_count() or 1
    small = sum(weights.numel() for weights in model.parameters()) < _SMALL
    fitting = 1 if small else cores - cores // 2 if shares_cores else None
    if count := threads or fitting:
        torch.set_num_threads(count)


def make_trainable(
    model: Any, recipe: Recipe, start: Path | None = None, *, full: bool | None = None
) -> Any:
    """The model with what is trained of it: all weights, or an adapter on top.

    `start` is a checkpoint to begin with. Where `full` is not told, the checkpoint decides, and
    without one the recipe. An adapter that goes on keeps its rank and layers, whatever the recipe
    says: they are part of what it has learned.
    """
    manifest = None if start is None else verify(start, base=Path(model.name_or_path))
    if full is None:
        full = bool(recipe.full) if manifest is None else manifest.kind == "full"
    if manifest is not None and full != (manifest.kind == "full"):
        raise Misuse(
            f"The checkpoint {start} is of kind {manifest.kind}: "
            f"set `full` of the recipe to {str(manifest.kind == 'full').lower()}."
        )
    if not full:
        adapter = _requested_lora(recipe.lora) if start is None else saved_lora(start)
        model = _with_adapter(model, adapter, recipe.seed)
    if start is not None and manifest is not None:
        set_weights(model, load_weights(start, manifest), manifest)
    return model


@contextmanager
def without_adapter(model: nn.Module) -> Iterator[None]:
    """Inside, an adapter is off and the model is its base.

    Without an adapter the model stays as it is: its reference is what it says before the first step.
    """
    if isinstance(model, PeftModel):
        with model.disable_adapter():
            yield
    else:
        yield


def hidden_size(model: Any) -> int:
    """The width of what the last layer hands to the head."""
    return int(model.get_input_embeddings().embedding_dim)


def _requested_lora(lora: Lora) -> LoraConfig:
    return LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,  # type: ignore[arg-type]  # a share is as good
        lora_dropout=lora.dropout,
        target_modules=list(lora.targets) or "all-linear",
        task_type="CAUSAL_LM",
    )


def saved_lora(start: Path) -> LoraConfig:
    config = convert_struct(read_json(start / ADAPTER_CONFIG), AdapterConfig, ADAPTER_CONFIG)
    return LoraConfig(
        r=config.r,
        lora_alpha=config.lora_alpha,  # type: ignore[arg-type]  # as above
        lora_dropout=config.lora_dropout,
        target_modules=config.target_modules,
        fan_in_fan_out=config.fan_in_fan_out,
        use_rslora=config.use_rslora,
        task_type="CAUSAL_LM",
    )


def _with_adapter(model: Any, config: LoraConfig, seed: int) -> Any:
    """The same adapter for the same seed, whatever was drawn before."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        try:
            return get_peft_model(model, config)
        except ValueError as error:
            raise Misuse(f"The adapter does not fit the model: {error}") from error
