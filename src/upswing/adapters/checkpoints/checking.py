"""May this checkpoint be loaded? Everything is looked at before anything is believed.

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

from upswing.adapters.checkpoints.bases import check_base
from upswing.adapters.checkpoints.contents import look_into
from upswing.adapters.checkpoints.manifest import (
    ALLOWED,
    FORMAT,
    MANIFEST,
    NEEDED,
    OPTIMIZER,
    TRAINER,
    Manifest,
    Refused,
    sealed,
)
from upswing.adapters.checkpoints.strict import as_struct, read_bytes, sha256_of, shown, strict_json
from upswing.errors import Reason

LIMIT_BYTES = 64 << 30
"""Of a whole checkpoint."""
MANIFEST_BYTES = 1 << 20
_KNOWN = ALLOWED["adapter"] | ALLOWED["full"] | {MANIFEST}


def verify(
    folder: Path, *, base: Path | str | None = None, limit_bytes: int = LIMIT_BYTES
) -> Manifest:
    """The manifest of a checkpoint that is whole and harmless, or `Refused` with one sentence.

    `base` is the folder of the base that it is to be loaded on, or the base's fingerprint.
    """
    sizes = _entries(folder, limit_bytes)
    if MANIFEST not in sizes:
        raise Refused("There is no manifest.json.")
    manifest = _parse(read_bytes(folder / MANIFEST, MANIFEST_BYTES))
    _check_files(folder, manifest, sizes)
    content = look_into(folder, manifest)
    if base is not None:
        check_base(manifest, content, base)
    return manifest


def manifest_from(raw: bytes, limit_bytes: int = LIMIT_BYTES) -> Manifest:
    """The manifest in these bytes, whose files are still elsewhere."""
    if len(raw) > MANIFEST_BYTES:
        raise Refused("The manifest is too large.", Reason.TOO_LARGE)
    manifest = _parse(raw)
    if sum(file.size for file in manifest.files.values()) > limit_bytes:
        raise Refused(f"The checkpoint is larger than {limit_bytes} bytes.", Reason.TOO_LARGE)
    return manifest


def _parse(raw: bytes) -> Manifest:
    """A manifest that is as it was written, and lists nothing but names we know."""
    tree = strict_json(raw, MANIFEST)
    told = tree.get("format")
    if told != FORMAT or isinstance(told, bool):
        raise Refused(f"The manifest's format is {shown(repr(told))}, not {FORMAT}.")
    manifest = as_struct(tree, Manifest, "The manifest")
    if not sealed(raw, manifest.seal):
        raise Refused("The manifest is not the one that was saved: its seal is broken.")
    names = manifest.files.keys()
    if odd := names - ALLOWED[manifest.kind]:
        raise Refused(f"The manifest lists {shown(min(odd))}, which is no part of a checkpoint.")
    if missing := NEEDED[manifest.kind] - names:
        raise Refused(f"The manifest does not list {shown(min(missing))}.")
    if (OPTIMIZER in names) != (TRAINER in names):
        raise Refused("Of optimizer.safetensors and trainer.json there is only one.")
    return manifest


def _entries(folder: Path, limit_bytes: int) -> dict[str, int]:
    """What lies in the folder, with sizes; nothing is opened."""
    sizes: dict[str, int] = {}
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise Refused("It is no folder of its own, or only a link to one.")
        for entry in folder.iterdir():
            if entry.name not in _KNOWN:
                raise Refused(f"{shown(entry.name)} is no part of a checkpoint.")
            told = entry.lstat()
            if not stat.S_ISREG(told.st_mode):
                raise Refused(f"{shown(entry.name)} is no plain file.")
            sizes[entry.name] = told.st_size
    except (OSError, ValueError):
        raise Refused("There is no checkpoint here that can be read.") from None
    if sum(sizes.values()) > limit_bytes:
        raise Refused(f"The checkpoint is larger than {limit_bytes} bytes.", Reason.TOO_LARGE)
    return sizes


def _check_files(folder: Path, manifest: Manifest, sizes: dict[str, int]) -> None:
    if odd := (sizes.keys() - {MANIFEST}) ^ manifest.files.keys():
        raise Refused(f"Folder and manifest do not agree about {shown(min(odd))}.")
    for name, file in manifest.files.items():
        if sizes[name] != file.size:
            raise Refused(f"{name} has {sizes[name]} bytes, the manifest says {file.size}.")
    for name, file in manifest.files.items():
        if sha256_of(folder / name) != file.sha256:
            raise Refused(f"{name} is not the file that was saved: its sha256 differs.")
