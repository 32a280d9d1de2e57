"""Where is the GGUF file that llama.cpp is given? A copy of the base's, changed in one respect.

In the copy the tokens that are only parts of characters are control tokens (see `base`). Nothing
moves: each of them is one number in the header, and the weights are the same bytes.
"""

from __future__ import annotations

import hashlib
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path

import msgspec

from upswing.adapters.bases import Base, weights_file
from upswing.adapters.checkpoints.bases import config_of
from upswing.adapters.checkpoints.strict import read_json
from upswing.adapters.gguf.base import (
    CONTROL,
    TYPES,
    GgufBase,
    base_in,
    check_tokens,
    check_twin,
    partial_tokens,
)
from upswing.adapters.gguf.header import read_header
from upswing.adapters.once import made_once
from upswing.contracts.typed import from_json
from upswing.errors import Misuse

REVISION = 1
"""Raised when the code makes another copy of the same file."""
_TOKENIZER_BYTES = 256 << 20
_MODEL, _FACTS = "model.gguf", "facts.json"


@dataclass(frozen=True, slots=True)
class Served:
    """A base as llama.cpp gets it."""

    file: Path
    facts: GgufBase


def gguf_of(base: Base) -> Path | None:
    """The GGUF file of this base: of `smollm2` its package's, else the one in its folder, if any."""
    if base.name == "smollm2":
        return weights_file()
    found = sorted(base.folder.glob("*.gguf"))
    if len(found) > 1:
        raise Misuse(f"{base.folder} has {len(found)} GGUF files: leave the one to be served.")
    return found[0] if found else None


def served(base: Base, cache: Path) -> Served:
    """The copy of this base for llama.cpp, made in `cache` if it is not there yet."""
    file = gguf_of(base)
    if file is None:
        raise Misuse(f"{base.name} has no GGUF file, which is what llama.cpp reads.")
    told = file.stat()
    key = f"{file.resolve()} {told.st_size} {told.st_mtime_ns} {REVISION}"
    place = cache / f"llama-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    made_once(place, lambda folder: _copy(file, base, folder))
    facts = from_json((place / _FACTS).read_bytes(), GgufBase)
    check_twin(facts, config_of(base.folder), base.name)
    return Served(place / _MODEL, facts)


def _copy(file: Path, base: Base, folder: Path) -> None:
    header = read_header(file)
    check_tokens(header, read_json(base.folder / "tokenizer.json", _TOKENIZER_BYTES), base.name)
    (folder / _FACTS).write_bytes(msgspec.json.encode(base_in(header)))
    types = header.fields.get(TYPES)
    if types is None or len(types.value) != len(header.get("tokenizer.ggml.tokens", ())):
        raise Misuse(f"{file} does not say what kind of tokens it has.")
    shutil.copyfile(file, folder / _MODEL)
    with (folder / _MODEL).open("r+b") as copy:
        for number in partial_tokens(header):
            copy.seek(types.at + 4 * number)
            copy.write(struct.pack("<i", CONTROL))
