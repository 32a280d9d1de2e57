"""Does a checkpoint belong to this base? By hash, and by the name and shape of every weight."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from upswing.errors import Misuse
from upswing.train.checkpoints.contents import AdapterContents, FullContents
from upswing.train.checkpoints.headers import TensorHeader, parse_header
from upswing.train.checkpoints.manifest import CONFIG, COPIED_FILES, InvalidCheckpoint, Manifest
from upswing.train.checkpoints.safe_reading import quote_name, strict_json

_HOW_SAVED = frozenset({"dtype", "torch_dtype", "transformers_version", "_name_or_path"})
"""What may differ between the base's config and ours: how it was saved, not what it is."""
_PREFIX = re.compile(r"^(model|transformer|gpt_neox|backbone)\.")
"""Some bases name their weights without it, and transformers with it."""
_BUFFER = re.compile(r"\.(rotary_emb\.inv_freq|attn\.masked_bias|attn\.bias|attention\.bias)$")
"""Old files hold what is computed anew; it is no weight."""


def check_base(
    manifest: Manifest, content: AdapterContents | FullContents, base: Path | str
) -> None:
    """Refuse a checkpoint of another base. A fingerprint alone settles only which one it is."""
    wanted = base_fingerprint(base) if isinstance(base, Path) else base
    if manifest.base_sha256 != wanted:
        raise InvalidCheckpoint(
            f"It was trained on another base: {quote_name(manifest.base_model)} "
            f"with sha256 {(manifest.base_sha256 or 'unknown')[:12]}, not {wanted[:12]}."
        )
    if not isinstance(base, Path):
        return
    match content:
        case AdapterContents():
            _check_adapter(content, _tensor_headers(base))
        case FullContents():
            originals = copied_files(base)
            for name in sorted(manifest.files.keys() & COPIED_FILES):
                if manifest.files[name].sha256 != originals.get(name):
                    raise InvalidCheckpoint(f"{name} is not the base's own.")
            _check_config(content.config, base_config(base))
            _check_full(content, _tensor_headers(base))


def base_fingerprint(base: Path) -> str:
    """One hash for a base: its config and its weights."""
    files = [base / CONFIG, *sorted(base.glob("*.safetensors"))]
    if len(files) < 2:
        raise Misuse(f"{base} has no weights in safetensors.")
    try:
        sums = {file.name: _file_sha256(file, *_file_stamp(file)) for file in files}
    except OSError as error:
        raise Misuse(f"{base} is no model folder: {error}.") from None
    return hashlib.sha256(msgspec.json.encode(sums, order="sorted")).hexdigest()


def copied_files(base: Path) -> dict[str, str]:
    """The base's tokenizer and generation files, with their hashes."""
    found = (base / name for name in sorted(COPIED_FILES))
    return {file.name: _file_sha256(file, *_file_stamp(file)) for file in found if file.is_file()}


def base_config(base: Path) -> dict[str, Any]:
    try:
        return strict_json((base / CONFIG).read_bytes(), "the base's config.json")
    except OSError as error:
        raise Misuse(f"{base} is no model folder: {error}.") from None


def _file_stamp(file: Path) -> tuple[int, int, int]:
    stat = file.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


@lru_cache(maxsize=256)
def _file_sha256(file: Path, *_stamp: int) -> str:
    """Remembered for as long as the file looks the same: a base is hashed once per process."""
    digest = hashlib.sha256()
    with file.open("rb") as body:
        while chunk := body.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _tensor_headers(base: Path) -> dict[str, TensorHeader]:
    """Every weight of the base, from the headers of its files."""
    found: dict[str, TensorHeader] = {}
    for path in sorted(base.glob("*.safetensors")):
        with path.open("rb") as file:
            found |= parse_header(file, path.name)
    return {_bare_name(name): each for name, each in found.items() if not _BUFFER.search(name)}


def _bare_name(name: str) -> str:
    return _PREFIX.sub("", name)


def _check_config(config: dict[str, Any], base: dict[str, Any]) -> None:
    """The same model as the base, field by field."""
    for key in sorted((config.keys() | base.keys()) - _HOW_SAVED):
        if key not in config or key not in base or config[key] != base[key]:
            raise InvalidCheckpoint(f"config.json differs from the base's in {quote_name(key)}.")


def _check_full(content: FullContents, base: dict[str, TensorHeader]) -> None:
    """All weights of the base, each in its shape; a tied head may be left out."""
    ours = {_bare_name(name): tensor for name, tensor in content.tensors.items()}
    tied = content.config.get("tie_word_embeddings") is not False
    spare = {"lm_head.weight"} if tied else set()
    if odd := (ours.keys() ^ base.keys()) - spare:
        raise InvalidCheckpoint(
            f"The weights are not those of the base: see {quote_name(min(odd))}."
        )
    for name, tensor in ours.items():
        if name in base and tensor.shape != base[name].shape:
            raise InvalidCheckpoint(
                f"{quote_name(name)} has the shape {tensor.shape}, the base's {base[name].shape}."
            )


def _check_adapter(content: AdapterContents, base: dict[str, TensorHeader]) -> None:
    """Each pair fits the weight of the base that it is added to."""
    for module, (down, up) in content.pairs.items():
        weight = base.get(f"{_bare_name(module)}.weight")
        if weight is None or len(weight.shape) != 2:
            raise InvalidCheckpoint(f"The base has no layer {quote_name(module)} for the adapter.")
        shape = (up.shape[0], down.shape[1])
        if weight.shape != (shape[::-1] if content.config.fan_in_fan_out else shape):
            raise InvalidCheckpoint(
                f"The adapter of {quote_name(module)} does not fit the base's layer."
            )
