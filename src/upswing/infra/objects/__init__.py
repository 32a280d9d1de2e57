"""Where are things kept: a folder, `file://…` or `s3://…`? One way to open and use them all.

Errors of the place become ours here: `Transient` when it is away, `Misuse` when it cannot be used
as it is set up (no such bucket, no rights, a path that is a file).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import (
    BaseError,
    InvalidPathError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)
from obstore.store import LocalStore, from_url

from upswing.errors import Misuse, Transient

PART_BYTES = 8 << 20
"""Of a multipart upload; larger files go in parts."""
_HOPELESS = (
    InvalidPathError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
    FileNotFoundError,
    PermissionError,
    NotADirectoryError,
    NotImplementedError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class StoredObject:
    """Something that is kept."""

    key: str
    size: int
    e_tag: str | None
    modified: datetime


def check_storage(url: str, setting: str) -> None:
    """`Misuse` when nothing can ever be kept at this place; nothing is made, and no server is asked."""
    if urlsplit(url).scheme not in {"", "file"}:
        ObjectLocation(url, setting)
        return
    plain = url if "://" not in url else unquote(urlsplit(url).path)
    folder = Path(plain).expanduser().absolute()
    above = next(each for each in (folder, *folder.parents) if each.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK) or _is_virtual(above):
        raise Misuse(
            f"{setting}={url} cannot be used: {above} is no directory that can be written."
        )


def _is_virtual(folder: Path) -> bool:
    """The kernel's own file systems keep no files, whatever their permissions say."""
    return folder.parts[:2] in {("/", "proc"), ("/", "sys")}


class ObjectLocation:
    """One place, under the setting that names it."""

    def __init__(self, url: str, setting: str) -> None:
        self.setting = setting
        self.url = url.rstrip("/") or "/"
        self.root: Path | None = None
        try:
            if urlsplit(url).scheme in {"", "file"}:
                folder = urlsplit(url).path if "://" not in url else unquote(urlsplit(url).path)
                self.root = Path(folder).expanduser().absolute()
                self.url = str(self.root)
                self._store: Any = LocalStore(self.root, mkdir=True, automatic_cleanup=True)
            else:
                self._store = from_url(
                    url,
                    client_options=_client_options(),
                    retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=30)},
                )
        except (BaseError, ValueError, OSError) as error:
            raise Misuse(
                f"{setting}={url} cannot be used: {_first_line_of_error(error)}."
            ) from None

    async def put(self, key: str, body: bytes | Path) -> str | None:
        """Whole or not at all, and durable; its e-tag."""
        with self._translate_errors("written"):
            done = await obstore.put_async(self._store, key, body, chunk_size=PART_BYTES)
            if self.root:
                await asyncio.to_thread(_sync_to_disk, self.root / key, self.root)
            return done["e_tag"]

    async def get(self, key: str) -> bytes:
        with self._translate_errors("read"):
            found = await obstore.get_async(self._store, key)
            return bytes(await found.bytes_async())

    async def chunks(self, key: str) -> AsyncIterator[bytes]:
        with self._translate_errors("read"):
            found = await obstore.get_async(self._store, key)
            async for chunk in found.stream(min_chunk_size=PART_BYTES):
                yield bytes(chunk)

    async def find(self, key: str) -> StoredObject | None:
        try:
            with self._translate_errors("read"):
                return _object_from_meta(await obstore.head_async(self._store, key))
        except Misuse as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise

    async def list(self, prefix: str = "") -> list[StoredObject]:
        """Everything below `prefix`, by key."""
        with self._translate_errors("read"):
            found = await obstore.list(self._store, prefix=prefix or None).collect_async()
            return sorted(map(_object_from_meta, found), key=lambda stored: stored.key)

    async def delete(self, key: str) -> None:
        """Gone, whether or not it was there."""
        with self._translate_errors("written"), contextlib.suppress(FileNotFoundError):
            await obstore.delete_async(self._store, key)

    async def remove_unfinished_parts(self, prefix: str) -> None:
        """Remove what writers that were killed left in a folder: parts that nobody lists."""
        if self.root:
            await asyncio.to_thread(_remove_parts, self.root / prefix)

    @contextlib.contextmanager
    def _translate_errors(self, action: str) -> Iterator[None]:
        try:
            yield
        except _HOPELESS as error:
            raise Misuse(
                f"{self.setting} cannot be {action}: {_first_line_of_error(error)}."
            ) from error
        except (BaseError, OSError) as error:
            raise Transient(
                f"{self.setting} cannot be {action} just now: {_first_line_of_error(error)}."
            ) from error


def _client_options() -> Any:
    """Patient with large files; options given here hide the environment's `AWS_ALLOW_HTTP`."""
    plain = os.environ.get("AWS_ALLOW_HTTP", "").lower() in {"1", "true"}
    return {
        "connect_timeout": timedelta(seconds=5),
        "timeout": timedelta(minutes=10),
        "allow_http": plain,
    }


def _object_from_meta(meta: Any) -> StoredObject:
    return StoredObject(meta["path"], meta["size"], meta["e_tag"], meta["last_modified"])


def _first_line_of_error(error: Exception) -> str:
    """The library's own sentence, without its debugging lines."""
    return str(error).partition("\n")[0].rstrip(". ")


def _remove_parts(folder: Path) -> None:
    for path in folder.glob("*#[0-9]*"):
        path.unlink(missing_ok=True)


def _sync_to_disk(path: Path, root: Path) -> None:
    """To the disk: the file, and the folders that lead to it."""
    for each in (path, *path.parents):
        handle = os.open(each, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        if each == root:
            return
