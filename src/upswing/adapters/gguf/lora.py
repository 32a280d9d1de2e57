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

from upswing.adapters.checkpoints.checking import verify
from upswing.adapters.checkpoints.manifest import ADAPTER_CONFIG, AdapterConfig
from upswing.adapters.checkpoints.reading import load_weights
from upswing.adapters.checkpoints.strict import as_struct, read_json, shown
from upswing.adapters.gguf.base import GgufBase
from upswing.adapters.gguf.naming import Place, place_of, woven_rows
from upswing.errors import Reason, Rejected

_A, _B = ".lora_A.weight", ".lora_B.weight"
Matrix = np.ndarray[Any, np.dtype[np.float32]]


def convert(checkpoint: Path, folder: Path, base: GgufBase, to: Path) -> None:
    """Write the adapter of a checkpoint as a GGUF file; `Rejected` when llama.cpp cannot serve it.

    `folder` is that of the base as training knows it: the checkpoint must be its own.
    """
    manifest = verify(checkpoint, base=folder)
    if manifest.kind != "adapter":
        raise Rejected(
            Reason.SCHEMA,
            "The checkpoint holds all weights of a model: llama.cpp serves adapters of this base.",
        )
    told = as_struct(read_json(checkpoint / ADAPTER_CONFIG), AdapterConfig, ADAPTER_CONFIG)
    weights = load_weights(checkpoint, manifest)
    write(weights, alpha_of(told), base, to)


def alpha_of(told: AdapterConfig) -> float:
    """What llama.cpp divides by the rank to get the scale that training used.

    >>> told = AdapterConfig(base_model_name_or_path="b", r=4, lora_alpha=8, target_modules=["q_proj"])
    >>> alpha_of(told)
    8.0
    """
    if told.fan_in_fan_out:
        raise Rejected(Reason.SCHEMA, "The adapter's layers are transposed (fan_in_fan_out).")
    if not told.lora_alpha > 0:
        raise Rejected(
            Reason.SCHEMA,
            "The adapter has an alpha of 0, so it changes nothing: serve the base instead.",
        )
    return float(told.lora_alpha) * (math.sqrt(told.r) if told.use_rslora else 1.0)


def write(weights: dict[str, Tensor], alpha: float, base: GgufBase, to: Path) -> None:
    """Write these weights of peft's; all of them have a place in the base, or nothing is written."""
    placed = {
        name.removesuffix(_A).removeprefix("base_model.model."): name.removesuffix(_A)
        for name in sorted(weights)
        if name.endswith(_A)
    }
    if 2 * len(placed) != len(weights):
        raise Rejected(Reason.SCHEMA, "The adapter holds more than pairs of matrices.")
    pairs = {}
    for module, stem in placed.items():
        place = place_of(module, base)
        pairs[place.tensor] = _pair(module, place, weights[stem + _A], weights[stem + _B], base)
    writer = GGUFWriter(to, base.architecture)
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


def _pair(
    module: str, place: Place, down: Tensor, up: Tensor, base: GgufBase
) -> tuple[Matrix, Matrix]:
    if (down.shape[1], up.shape[0]) != base.tensors[place.tensor]:
        raise Rejected(
            Reason.SCHEMA,
            f"The adapter of {shown(module)} does not fit {place.tensor} of the GGUF base.",
        )
    lower, upper = down.float().numpy(), up.float().numpy()
    if place.woven is not None:
        upper = np.ascontiguousarray(upper[woven_rows(upper.shape[0], place.woven)])
    return lower, upper
