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
    InvalidPathError, NotSupportedError, PermissionDeniedError, UnauthenticatedError,
    UnknownConfigurationKeyError, FileNotFoundError, PermissionError, NotADirectoryError,
    NotImplementedError, ValueError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Thing:
    """Something that is kept."""

    key: str
    size: int
    e_tag: str | None
    modified: datetime


class Place:
    """One place, under the setting that names it."""

    def __init__(self, place: str, setting: str) -> None:
        self.setting = setting
        self.url = place.rstrip("/") or "/"
        self.root: Path | None = None
        try:
            if urlsplit(place).scheme in {"", "file"}:
                folder = (
                    urlsplit(place).path if "://" not in place else unquote(urlsplit(place).path)
                )
                self.root = Path(folder).expanduser().absolute()
                self.url = str(self.root)
                self._store: Any = LocalStore(self.root, mkdir=True, automatic_cleanup=True)
            else:
                self._store = from_url(
                    place,
                    client_options=_client(),
                    retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=30)},
                )
        except (BaseError, ValueError, OSError) as error:
            raise Misuse(f"{setting}={place} cannot be used: {_first(error)}.") from None

    async def put(self, key: str, body: bytes | Path) -> str | None:
        """Whole or not at all, and durable; its e-tag."""
        with self._ours("written"):
            done = await obstore.put_async(self._store, key, body, chunk_size=PART_BYTES)
            if self.root:
                await asyncio.to_thread(_sync, self.root / key, self.root)
            return done["e_tag"]

    async def get(self, key: str) -> bytes:
        with self._ours("read"):
            found = await obstore.get_async(self._store, key)
            return bytes(await found.bytes_async())

    async def chunks(self, key: str) -> AsyncIterator[bytes]:
        with self._ours("read"):
            found = await obstore.get_async(self._store, key)
            async for chunk in found.stream(min_chunk_size=PART_BYTES):
                yield bytes(chunk)

    async def find(self, key: str) -> Thing | None:
        try:
            with self._ours("read"):
                return _thing(await obstore.head_async(self._store, key))
        except Misuse as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise

    async def list(self, prefix: str = "") -> list[Thing]:
        """Everything below `prefix`, by key."""
        with self._ours("read"):
            found = await obstore.list(self._store, prefix=prefix or None).collect_async()
            return sorted(map(_thing, found), key=lambda thing: thing.key)

    async def delete(self, key: str) -> None:
        """Gone, whether or not it was there."""
        with self._ours("written"), contextlib.suppress(FileNotFoundError):
            await obstore.delete_async(self._store, key)

    async def tidy(self, prefix: str) -> None:
        """Remove what writers that were killed left in a folder: parts that nobody lists."""
        if self.root:
            await asyncio.to_thread(_remove_parts, self.root / prefix)

    @contextlib.contextmanager
    def _ours(self, done: str) -> Iterator[None]:
        try:
            yield
        except _HOPELESS as error:
            raise Misuse(f"{self.setting} cannot be {done}: {_first(error)}.") from error
        except (BaseError, OSError) as error:
            raise Transient(
                f"{self.setting} cannot be {done} just now: {_first(error)}."
            ) from error


def _client() -> Any:
    """Patient with large files; options given here hide the environment's `AWS_ALLOW_HTTP`."""
    plain = os.environ.get("AWS_ALLOW_HTTP", "").lower() in {"1", "true"}
    return {
        "connect_timeout": timedelta(seconds=5),
        "timeout": timedelta(minutes=10),
        "allow_http": plain,
    }


def _thing(meta: Any) -> Thing:
    return Thing(meta["path"], meta["size"], meta["e_tag"], meta["last_modified"])


def _first(error: Exception) -> str:
    """The library's own sentence, without its debugging lines."""
    return str(error).partition("\n")[0].rstrip(". ")


def _remove_parts(folder: Path) -> None:
    for path in folder.glob("*#[0-9]*"):
        path.unlink(missing_ok=True)


def _sync(path: Path, root: Path) -> None:
    """To the disk: the file, and the folders that lead to it."""
    for each in (path, *path.parents):
        handle = os.open(each, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        if each == root:
            return
