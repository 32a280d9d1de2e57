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

from upswing.contracts.typed import from_json
from upswing.errors import Misuse
from upswing.infra.once import make_folder_once
from upswing.serve.gguf.base import (
    CONTROL_TOKEN,
    TOKEN_TYPES,
    GgufBase,
    check_same_model,
    check_same_vocabulary,
    partial_tokens,
    read_gguf_base,
)
from upswing.train.bases.catalog import BaseModel, smollm2_weights_file
from upswing.train.bases.gguf_header import read_header
from upswing.train.checkpoints.bases import base_config
from upswing.train.checkpoints.safe_reading import read_json

REVISION = 1
"""Raised when the code makes another copy of the same file."""
_TOKENIZER_BYTES = 256 << 20
_MODEL, _FACTS = "model.gguf", "facts.json"


@dataclass(frozen=True, slots=True)
class ServedGguf:
    """A base as llama.cpp gets it."""

    file: Path
    facts: GgufBase


def find_gguf(base: BaseModel) -> Path | None:
    """The GGUF file of this base: of `smollm2` its package's, else the one in its folder, if any."""
    if base.name == "smollm2":
        return smollm2_weights_file()
    found = sorted(base.folder.glob("*.gguf"))
    if len(found) > 1:
        raise Misuse(f"{base.folder} has {len(found)} GGUF files: leave the one to be served.")
    return found[0] if found else None


def prepare_gguf(base: BaseModel, cache: Path) -> ServedGguf:
    """The copy of this base for llama.cpp, made in `cache` if it is not there yet."""
    file = find_gguf(base)
    if file is None:
        raise Misuse(f"{base.name} has no GGUF file, which is what llama.cpp reads.")
    stat = file.stat()
    key = f"{file.resolve()} {stat.st_size} {stat.st_mtime_ns} {REVISION}"
    folder = cache / f"llama-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    make_folder_once(folder, lambda folder: _write_copy(file, base, folder))
    facts = from_json((folder / _FACTS).read_bytes(), GgufBase)
    check_same_model(facts, base_config(base.folder), base.name)
    return ServedGguf(folder / _MODEL, facts)


def _write_copy(file: Path, base: BaseModel, folder: Path) -> None:
    header = read_header(file)
    check_same_vocabulary(
        header, read_json(base.folder / "tokenizer.json", _TOKENIZER_BYTES), base.name
    )
    (folder / _FACTS).write_bytes(msgspec.json.encode(read_gguf_base(header)))
    types = header.fields.get(TOKEN_TYPES)
    if types is None or len(types.value) != len(header.get("tokenizer.ggml.tokens", ())):
        raise Misuse(f"{file} does not say what kind of tokens it has.")
    shutil.copyfile(file, folder / _MODEL)
    with (folder / _MODEL).open("r+b") as copy:
        for number in partial_tokens(header):
            copy.seek(types.at + 4 * number)
            copy.write(struct.pack("<i", CONTROL_TOKEN))
