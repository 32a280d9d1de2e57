"""Which keys were revoked, whatever becomes of the store?

A store that is rebuilt, or came back from an older copy, may have lost a revocation: then a key would work again that
somebody took back. So its hash is written down beside the store, before the revocation is acknowledged, and no table
makes it good again. `revoked.keys` has a line for each: the hash, when, and a checksum; the first line is one of all.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from threading import Lock

from upswing.errors import Misuse

FILE = "revoked.keys"


class Revoked:
    """The file; without a folder, nothing is written down."""

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / FILE
        self._known: dict[bytes, datetime] | None = None
        self._writing = Lock()

    def known_keys(self) -> Mapping[bytes, datetime]:
        """Hash → when; `Misuse` where the file is damaged."""
        if self._known is None:
            found, spoilt = self._read_file()
            if spoilt:
                raise Misuse(
                    f"{FILE} is damaged, so keys that were revoked might work: `upswing repair` writes it anew."
                )
            self._known = found
        return self._known

    def add(self, keys: Mapping[bytes, datetime]) -> None:
        """Written when it returns; may be called by several threads."""
        with self._writing:
            more = {hashed: at for hashed, at in keys.items() if hashed not in self.known_keys()}
            if more:
                self._write_file({**self.known_keys(), **more})

    def repair_file(self, keys: Mapping[bytes, datetime]) -> bool:
        """Write it anew with what is sound in it and these; False when something in it was not."""
        found, spoilt = self._read_file()
        together = {**keys, **found}
        if spoilt or together != found:
            self._write_file(together)
        return not spoilt

    def _read_file(self) -> tuple[dict[bytes, datetime], bool]:
        if self._path is None:
            return {}, False
        try:
            first, _, rest = self._path.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return {}, False
        found, spoilt = {}, first != _line_checksum(rest).encode()
        for line in rest.splitlines():
            if (entry := _parse_line(line)) is None:
                spoilt = True
            else:
                found[entry[0]] = entry[1]
        return found, spoilt

    def _write_file(self, keys: dict[bytes, datetime]) -> None:
        """Known when it is written, and not before: whoever failed may try again."""
        if self._path is not None:
            _replace_file(self._path, keys)
        self._known = keys


def _replace_file(path: Path, keys: Mapping[bytes, datetime]) -> None:
    lines = (f"{hashed.hex()} {at.isoformat()}" for hashed, at in keys.items())
    text = "".join(f"{line} {_line_checksum(line.encode())}\n" for line in lines)
    fresh = path.with_suffix(".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{_line_checksum(text.encode())}\n{text}")
        file.flush()
        os.fsync(descriptor)
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _parse_line(line: bytes) -> tuple[bytes, datetime] | None:
    """Hash and time of a line; None when it is not what was written."""
    content, _, check = line.rpartition(b" ")
    if check != _line_checksum(content).encode():
        return None
    name, _, at = content.decode().partition(" ")
    return bytes.fromhex(name), datetime.fromisoformat(at)


def _line_checksum(content: bytes) -> str:
    return sha256(content).hexdigest()[:16]
