"""Does a checkpoint belong to this base? By hash, and by the name and shape of every weight."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from upswing.adapters.checkpoints.contents import Adapter, Full
from upswing.adapters.checkpoints.headers import Tensor, header_of
from upswing.adapters.checkpoints.manifest import CONFIG, COPIED, Manifest, Refused
from upswing.adapters.checkpoints.strict import shown, strict_json
from upswing.errors import Misuse

_HOW_SAVED = frozenset({"dtype", "torch_dtype", "transformers_version", "_name_or_path"})
"""What may differ between the base's config and ours: how it was saved, not what it is."""
_PREFIX = re.compile(r"^(model|transformer|gpt_neox|backbone)\.")
"""Some bases name their weights without it, and transformers with it."""
_BUFFER = re.compile(r"\.(rotary_emb\.inv_freq|attn\.masked_bias|attn\.bias|attention\.bias)$")
"""Old files hold what is computed anew; it is no weight."""


def check_base(manifest: Manifest, content: Adapter | Full, base: Path | str) -> None:
    """Refuse a checkpoint of another base. A fingerprint alone settles only which one it is."""
    wanted = fingerprint(base) if isinstance(base, Path) else base
    if manifest.base_sha256 != wanted:
        raise Refused(
            f"It was trained on another base: {shown(manifest.base_model)} "
            f"with sha256 {(manifest.base_sha256 or 'unknown')[:12]}, not {wanted[:12]}."
        )
    if not isinstance(base, Path):
        return
    match content:
        case Adapter():
            _check_adapter(content, _tensors(base))
        case Full():
            originals = copied(base)
            for name in sorted(manifest.files.keys() & COPIED):
                if manifest.files[name].sha256 != originals.get(name):
                    raise Refused(f"{name} is not the base's own.")
            _check_config(content.config, config_of(base))
            _check_full(content, _tensors(base))


def fingerprint(base: Path) -> str:
    """One hash for a base: its config and its weights."""
    files = [base / CONFIG, *sorted(base.glob("*.safetensors"))]
    if len(files) < 2:
        raise Misuse(f"{base} has no weights in safetensors.")
    try:
        sums = {file.name: _sha256(file, *_stamp(file)) for file in files}
    except OSError as error:
        raise Misuse(f"{base} is no model folder: {error}.") from None
    return hashlib.sha256(msgspec.json.encode(sums, order="sorted")).hexdigest()


def copied(base: Path) -> dict[str, str]:
    """The base's tokenizer and generation files, with their hashes."""
    found = (base / name for name in sorted(COPIED))
    return {file.name: _sha256(file, *_stamp(file)) for file in found if file.is_file()}


def config_of(base: Path) -> dict[str, Any]:
    try:
        return strict_json((base / CONFIG).read_bytes(), "the base's config.json")
    except OSError as error:
        raise Misuse(f"{base} is no model folder: {error}.") from None


def _stamp(file: Path) -> tuple[int, int, int]:
    told = file.stat()
    return told.st_ino, told.st_size, told.st_mtime_ns


@lru_cache(maxsize=256)
def _sha256(file: Path, *_stamp: int) -> str:
    """Remembered for as long as the file looks the same: a base is hashed once per process."""
    digest = hashlib.sha256()
    with file.open("rb") as body:
        while chunk := body.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _tensors(base: Path) -> dict[str, Tensor]:
    """Every weight of the base, from the headers of its files."""
    found: dict[str, Tensor] = {}
    for path in sorted(base.glob("*.safetensors")):
        with path.open("rb") as file:
            found |= header_of(file, path.name)
    return {_bare(name): each for name, each in found.items() if not _BUFFER.search(name)}


def _bare(name: str) -> str:
    return _PREFIX.sub("", name)


def _check_config(config: dict[str, Any], base: dict[str, Any]) -> None:
    """The same model as the base, field by field."""
    for key in sorted((config.keys() | base.keys()) - _HOW_SAVED):
        if key not in config or key not in base or config[key] != base[key]:
            raise Refused(f"config.json differs from the base's in {shown(key)}.")


def _check_full(content: Full, base: dict[str, Tensor]) -> None:
    """All weights of the base, each in its shape; a tied head may be left out."""
    ours = {_bare(name): tensor for name, tensor in content.tensors.items()}
    tied = content.config.get("tie_word_embeddings") is not False
    spare = {"lm_head.weight"} if tied else set()
    if odd := (ours.keys() ^ base.keys()) - spare:
        raise Refused(f"The weights are not those of the base: see {shown(min(odd))}.")
    for name, tensor in ours.items():
        if name in base and tensor.shape != base[name].shape:
            raise Refused(
                f"{shown(name)} has the shape {tensor.shape}, the base's {base[name].shape}."
            )


def _check_adapter(content: Adapter, base: dict[str, Tensor]) -> None:
    """Each pair fits the weight of the base that it is added to."""
    for module, (down, up) in content.pairs.items():
        weight = base.get(f"{_bare(module)}.weight")
        if weight is None or len(weight.shape) != 2:
            raise Refused(f"The base has no layer {shown(module)} for the adapter.")
        shape = (up.shape[0], down.shape[1])
        if weight.shape != (shape[::-1] if content.config.fan_in_fan_out else shape):
            raise Refused(f"The adapter of {shown(module)} does not fit the base's layer.")
