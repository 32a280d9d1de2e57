"""How does an adapter of ours become a GGUF file that llama.cpp loads?

Each pair of matrices goes under the GGUF name of the layer it is added to, in 32 bits, so that what
is served is what was trained. llama.cpp scales by `alpha / rank` and takes the rank from the shapes;
where training scales otherwise, `alpha` is written so that the result is the same.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFWriter
from torch import Tensor

from upswing.errors import Reason, Rejected
from upswing.serve.gguf.base import GgufBase
from upswing.serve.gguf.tensor_names import AdapterTarget, adapter_target, interleaved_rows
from upswing.train.checkpoints.checking import verify
from upswing.train.checkpoints.manifest import ADAPTER_CONFIG, AdapterConfig
from upswing.train.checkpoints.reading import load_weights
from upswing.train.checkpoints.safe_reading import convert_struct, quote_name, read_json

_A, _B = ".lora_A.weight", ".lora_B.weight"
Matrix = np.ndarray[Any, np.dtype[np.float32]]


def convert_adapter(checkpoint: Path, base_folder: Path, base: GgufBase, target: Path) -> None:
    """Write the adapter of a checkpoint as a GGUF file; `Rejected` when llama.cpp cannot serve it.

    `base_folder` is that of the base as training knows it: the checkpoint must be its own.
    """
    manifest = verify(checkpoint, base=base_folder)
    if manifest.kind != "adapter":
        raise Rejected(
            Reason.SCHEMA,
            "The checkpoint holds all weights of a model: llama.cpp serves adapters of this base.",
        )
    config = convert_struct(read_json(checkpoint / ADAPTER_CONFIG), AdapterConfig, ADAPTER_CONFIG)
    weights = load_weights(checkpoint, manifest)
    write_adapter(weights, llama_alpha(config), base, target)


def llama_alpha(config: AdapterConfig) -> float:
    """What llama.cpp divides by the rank to get the scale that training used.

    >>> told = AdapterConfig(base_model_name_or_path="b", r=4, lora_alpha=8, target_modules=["q_proj"])
    >>> llama_alpha(told)
    8.0
    """
    if config.fan_in_fan_out:
        raise Rejected(Reason.SCHEMA, "The adapter's layers are transposed (fan_in_fan_out).")
    if not config.lora_alpha > 0:
        raise Rejected(
            Reason.SCHEMA,
            "The adapter has an alpha of 0, so it changes nothing: serve the base instead.",
        )
    return float(config.lora_alpha) * (math.sqrt(config.r) if config.use_rslora else 1.0)


def write_adapter(weights: dict[str, Tensor], alpha: float, base: GgufBase, target: Path) -> None:
    """Write these weights of peft's; all of them have a place in the base, or nothing is written."""
    modules = {
        name.removesuffix(_A).removeprefix("base_model.model."): name.removesuffix(_A)
        for name in sorted(weights)
        if name.endswith(_A)
    }
    if 2 * len(modules) != len(weights):
        raise Rejected(Reason.SCHEMA, "The adapter holds more than pairs of matrices.")
    pairs = {}
    for module, stem in modules.items():
        position = adapter_target(module, base)
        pairs[position.tensor] = _matrices_for(
            module, position, weights[stem + _A], weights[stem + _B], base
        )
    writer = GGUFWriter(target, base.architecture)
    try:
        writer.add_type("adapter")
        writer.add_string("adapter.type", "lora")
        writer.add_float32("adapter.lora.alpha", alpha)
        for tensor, (down, up) in pairs.items():
            writer.add_tensor(f"{tensor}.lora_a", down)
            writer.add_tensor(f"{tensor}.lora_b", up)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()


def _matrices_for(
    module: str, position: AdapterTarget, down: Tensor, up: Tensor, base: GgufBase
) -> tuple[Matrix, Matrix]:
    if (down.shape[1], up.shape[0]) != base.tensors[position.tensor]:
        raise Rejected(
            Reason.SCHEMA,
            f"The adapter of {quote_name(module)} does not fit {position.tensor} of the GGUF base.",
        )
    lower, upper = down.float().numpy(), up.float().numpy()
    if position.interleaved_heads is not None:
        upper = np.ascontiguousarray(
            upper[interleaved_rows(upper.shape[0], position.interleaved_heads)]
        )
    return lower, upper
