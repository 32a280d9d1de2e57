"""May this checkpoint be loaded? Everything is checked before anything is loaded.

In this order, so that what is cheap and what is dangerous comes first:

1. the folder: a real folder with known names only, all of them plain files, within the limit;
2. the manifest: strict JSON, this format, exactly the files that are there, with their sizes;
3. every file's sha256;
4. what the files say (`contents`): no field that names code, tensors that fit, numbers that are
   numbers;
5. the base, if the caller names it (`bases`): its hash, its config, its names and shapes.

Nothing is unpickled, imported or loaded here, and no link is followed.
"""

from __future__ import annotations

import stat
from pathlib import Path

from upswing.errors import Reason
from upswing.train.checkpoints.bases import check_base
from upswing.train.checkpoints.contents import read_contents
from upswing.train.checkpoints.manifest import (
    ALLOWED_FILES,
    FORMAT,
    MANIFEST,
    OPTIMIZER,
    REQUIRED_FILES,
    TRAINER,
    InvalidCheckpoint,
    Manifest,
    has_valid_seal,
)
from upswing.train.checkpoints.safe_reading import (
    convert_struct,
    quote_name,
    read_bytes,
    sha256_of,
    strict_json,
)

MAX_CHECKPOINT_BYTES = 64 << 30
"""Of a whole checkpoint."""
MAX_MANIFEST_BYTES = 1 << 20
_KNOWN_FILES = ALLOWED_FILES["adapter"] | ALLOWED_FILES["full"] | {MANIFEST}


def verify(
    folder: Path, *, base: Path | str | None = None, limit_bytes: int = MAX_CHECKPOINT_BYTES
) -> Manifest:
    """The manifest of a checkpoint that is whole and harmless, or `Refused` with one sentence.

    `base` is the folder of the base that it is to be loaded on, or the base's fingerprint.
    """
    sizes = _folder_entries(folder, limit_bytes)
    if MANIFEST not in sizes:
        raise InvalidCheckpoint("There is no manifest.json.")
    manifest = _decode_manifest(read_bytes(folder / MANIFEST, MAX_MANIFEST_BYTES))
    _check_files(folder, manifest, sizes)
    content = read_contents(folder, manifest)
    if base is not None:
        check_base(manifest, content, base)
    return manifest


def parse_manifest(raw: bytes, limit_bytes: int = MAX_CHECKPOINT_BYTES) -> Manifest:
    """The manifest in these bytes, whose files are still elsewhere."""
    if len(raw) > MAX_MANIFEST_BYTES:
        raise InvalidCheckpoint("The manifest is too large.", Reason.TOO_LARGE)
    manifest = _decode_manifest(raw)
    if sum(file.size for file in manifest.files.values()) > limit_bytes:
        raise InvalidCheckpoint(
            f"The checkpoint is larger than {limit_bytes} bytes.", Reason.TOO_LARGE
        )
    return manifest


def _decode_manifest(raw: bytes) -> Manifest:
    """A manifest that is as it was written, and lists nothing but names we know."""
    tree = strict_json(raw, MANIFEST)
    format_version = tree.get("format")
    if format_version != FORMAT or isinstance(format_version, bool):
        raise InvalidCheckpoint(
            f"The manifest's format is {quote_name(repr(format_version))}, not {FORMAT}."
        )
    manifest = convert_struct(tree, Manifest, "The manifest")
    if not has_valid_seal(raw, manifest.seal):
        raise InvalidCheckpoint("The manifest is not the one that was saved: its seal is broken.")
    names = manifest.files.keys()
    if odd := names - ALLOWED_FILES[manifest.kind]:
        raise InvalidCheckpoint(
            f"The manifest lists {quote_name(min(odd))}, which is no part of a checkpoint."
        )
    if missing := REQUIRED_FILES[manifest.kind] - names:
        raise InvalidCheckpoint(f"The manifest does not list {quote_name(min(missing))}.")
    if (OPTIMIZER in names) != (TRAINER in names):
        raise InvalidCheckpoint("Of optimizer.safetensors and trainer.json there is only one.")
    return manifest


def _folder_entries(folder: Path, limit_bytes: int) -> dict[str, int]:
    """What lies in the folder, with sizes; nothing is opened."""
    sizes: dict[str, int] = {}
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise InvalidCheckpoint("It is no folder of its own, or only a link to one.")
        for entry in folder.iterdir():
            if entry.name not in _KNOWN_FILES:
                raise InvalidCheckpoint(f"{quote_name(entry.name)} is no part of a checkpoint.")
            entry_stat = entry.lstat()
            if not stat.S_ISREG(entry_stat.st_mode):
                raise InvalidCheckpoint(f"{quote_name(entry.name)} is no plain file.")
            sizes[entry.name] = entry_stat.st_size
    except (OSError, ValueError):
        raise InvalidCheckpoint("There is no checkpoint here that can be read.") from None
    if sum(sizes.values()) > limit_bytes:
        raise InvalidCheckpoint(
            f"The checkpoint is larger than {limit_bytes} bytes.", Reason.TOO_LARGE
        )
    return sizes


def _check_files(folder: Path, manifest: Manifest, sizes: dict[str, int]) -> None:
    if odd := (sizes.keys() - {MANIFEST}) ^ manifest.files.keys():
        raise InvalidCheckpoint(f"Folder and manifest do not agree about {quote_name(min(odd))}.")
    for name, file in manifest.files.items():
        if sizes[name] != file.size:
            raise InvalidCheckpoint(
                f"{name} has {sizes[name]} bytes, the manifest says {file.size}."
            )
    for name, file in manifest.files.items():
        if sha256_of(folder / name) != file.sha256:
            raise InvalidCheckpoint(f"{name} is not the file that was saved: its sha256 differs.")
