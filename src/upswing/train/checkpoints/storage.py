"""Where are models kept when their job's folder is gone? Checkpoints in a folder or in S3.

    <MODEL_STORAGE_PATH>/<prefix>/adapter_model.safetensors …   every file, then
    <MODEL_STORAGE_PATH>/<prefix>/manifest.json                 which makes it a checkpoint
    <MODEL_STORAGE_PATH>/<prefix>/upload.json                   how far an upload came; gone at its end

An upload that was interrupted goes on where it was: a file that is there with the hash that
`upload.json` noted, and was not written since, is not sent again.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import re
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import msgspec

from upswing.contracts.typed import from_json
from upswing.errors import Misuse, Reason
from upswing.infra.objects import ObjectLocation
from upswing.train.checkpoints.checking import MAX_MANIFEST_BYTES, parse_manifest, verify
from upswing.train.checkpoints.folders import create_staging_folder, publish_folder
from upswing.train.checkpoints.manifest import MANIFEST, InvalidCheckpoint, Manifest, ManifestFile

log = logging.getLogger(__name__)
RETENTION = timedelta(days=90)
_PROGRESS = "upload.json"
_PREFIX = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,200}(/(?!\.)[A-Za-z0-9._-]{1,200}){0,7}")


class _UploadedFile(msgspec.Struct, frozen=True):
    file: ManifestFile
    e_tag: str | None


class _UploadProgress(msgspec.Struct):
    created: Annotated[datetime, msgspec.Meta(tz=True)]
    sent: dict[str, _UploadedFile] = {}


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """A checkpoint that is there, or was being uploaded."""

    prefix: str
    created: datetime
    manifest: Manifest | None
    """None while its upload is not complete."""


class CheckpointStore:
    """The checkpoints of models in one location."""

    def __init__(self, location: str) -> None:
        self._location = ObjectLocation(location, "MODEL_STORAGE_PATH")

    def url(self, prefix: str) -> str:
        return f"{self._location.url}/{prefix}"

    def prefix_of(self, path: str) -> str:
        """The prefix in a path that `upload` gave, or the prefix itself."""
        prefix = path.removeprefix("file://").removeprefix(f"{self._location.url}/").strip("/")
        if not _PREFIX.fullmatch(prefix):
            raise Misuse(f"{path!r} is not a path of the checkpoint store.")
        root = self._location.root
        if root and not (root / prefix).resolve().is_relative_to(root.resolve()):
            raise Misuse(f"{path!r} leads out of the checkpoint store.")
        return prefix

    async def upload(self, folder: Path, prefix: str) -> str:
        """Keep a checkpoint, its manifest last; where it is now."""
        prefix = self.prefix_of(prefix)
        manifest = await asyncio.to_thread(verify, folder)
        raw = await asyncio.to_thread((folder / MANIFEST).read_bytes)
        if await self._read_small(f"{prefix}/{MANIFEST}") == raw and await self._has_all_files(
            prefix, manifest
        ):
            return self.url(prefix)
        await self._location.delete(f"{prefix}/{MANIFEST}")  # of another one: its files go now
        await self._location.remove_unfinished_parts(prefix)
        progress = await self._start_progress(prefix, manifest)
        for name, file in manifest.files.items():
            if not await self._is_uploaded(f"{prefix}/{name}", progress.sent.get(name), file):
                e_tag = await self._location.put(f"{prefix}/{name}", folder / name)
                progress.sent[name] = _UploadedFile(file, e_tag)
                await self._location.put(f"{prefix}/{_PROGRESS}", msgspec.json.encode(progress))
        await self._location.put(f"{prefix}/{MANIFEST}", raw)
        await self._location.delete(f"{prefix}/{_PROGRESS}")
        log.info("%s is stored as %s", folder, self.url(prefix), extra={"action": "upload"})
        return self.url(prefix)

    async def attach(self, folder: Path, prefix: str) -> str:
        """Keep the plain files of a folder beside a checkpoint: card, curves, logs."""
        prefix = self.prefix_of(prefix)
        for path in sorted(await asyncio.to_thread(_plain_files, folder)):
            await self._location.put(f"{prefix}/{path.relative_to(folder).as_posix()}", path)
        return self.url(prefix)

    async def download(
        self, prefix: str, folder: Path, *, base: Path | str | None = None
    ) -> Manifest:
        """Bring a checkpoint to `folder`, verified before it gets that name."""
        prefix = self.prefix_of(prefix)
        raw = await self._read_small(f"{prefix}/{MANIFEST}")
        if raw is None:
            raise Misuse(f"There is no checkpoint {self.url(prefix)}.")
        manifest = parse_manifest(raw)
        new = await asyncio.to_thread(create_staging_folder, folder.parent, folder.name)
        try:
            for name, file in manifest.files.items():
                await self._download_file(f"{prefix}/{name}", new / name, file)
            await asyncio.to_thread((new / MANIFEST).write_bytes, raw)
            await asyncio.to_thread(verify, new, base=base)
            await asyncio.to_thread(publish_folder, new, folder)
        finally:
            await asyncio.to_thread(shutil.rmtree, new, ignore_errors=True)
        return manifest

    async def listing(self) -> list[StoredCheckpoint]:
        """Every checkpoint, and every upload that was begun."""
        things = await self._location.list()
        ends = {MANIFEST, _PROGRESS}
        found = {
            prefix for prefix, _, end in (t.key.rpartition("/") for t in things) if end in ends
        }
        kept = [await self._stored_checkpoint(prefix) for prefix in sorted(found)]
        return [each for each in kept if each is not None]

    async def delete(self, prefix: str) -> None:
        """Remove a checkpoint; its manifest last, so that what is interrupted can be done again."""
        prefix = self.prefix_of(prefix)
        await self._location.remove_unfinished_parts(prefix)
        things = [thing.key for thing in await self._location.list(prefix)]
        ends = {MANIFEST: 2, _PROGRESS: 1}
        inside = [key for key in things if key.rpartition("/")[0] == prefix]
        for key in sorted(inside, key=lambda key: ends.get(key.rpartition("/")[2], 0)):
            await self._location.delete(key)

    async def prune(
        self, now: datetime, protected_paths: Collection[str], retention: timedelta = RETENTION
    ) -> list[str]:
        """Delete checkpoints that are older than `retention`, but none of `upload_job`; which went."""
        old = [
            each.prefix
            for each in await self.listing()
            if each.created < now - retention
            and not any(_refers_to(path, each.prefix) for path in protected_paths)
        ]
        for prefix in old:
            await self.delete(prefix)
            log.info("%s is deleted: too old", self.url(prefix), extra={"action": "prune_model"})
        return old

    # ── a job's whole folder ─────────────────────────────────────────────────────────────────

    async def upload_job(self, job_folder: Path, name: str) -> str:
        """Keep what a job made: its final checkpoint and its artifacts."""
        await self.attach(job_folder / "artifacts", f"{name}/artifacts")
        await self.upload(job_folder / "checkpoints" / "final", f"{name}/final")
        return self.url(name)

    async def fetch(self, path: str, folder: Path) -> Path:
        """A kept checkpoint as a folder of this machine, verified; `folder` holds copies."""
        prefix = self.prefix_of(path)
        if self._location.root:
            here = self._location.root / prefix
            await asyncio.to_thread(verify, here)
            return here
        here = folder / prefix.replace("/", "--")
        with contextlib.suppress(InvalidCheckpoint):
            local = await asyncio.to_thread(verify, here)
            raw = await self._read_small(f"{prefix}/{MANIFEST}")
            if raw is not None and parse_manifest(raw).seal == local.seal:
                return here
        await self.download(prefix, here)
        return here

    async def read_artifact(self, path: str, most_bytes: int) -> bytes | None:
        """A file beside a checkpoint, such as its card; None when it is not there, or larger than that."""
        key = self.prefix_of(path)
        thing = await self._location.find(key)
        if thing is None or thing.size > most_bytes:
            return None
        return await self._location.get(key)

    # ── inside ───────────────────────────────────────────────────────────────────────────────

    async def _read_small(self, key: str) -> bytes | None:
        """A small file, if it is there."""
        thing = await self._location.find(key)
        if thing is None:
            return None
        if thing.size > MAX_MANIFEST_BYTES:
            raise InvalidCheckpoint(f"{self.url(key)} is too large.", Reason.TOO_LARGE)
        return await self._location.get(key)

    async def _has_all_files(self, prefix: str, manifest: Manifest) -> bool:
        sizes = {thing.key: thing.size for thing in await self._location.list(prefix)}
        wanted = {f"{prefix}/{name}": file.size for name, file in manifest.files.items()}
        return wanted.items() <= sizes.items()

    async def _start_progress(self, prefix: str, manifest: Manifest) -> _UploadProgress:
        raw = await self._read_small(f"{prefix}/{_PROGRESS}")
        sent = {}
        if raw is not None:
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                sent = from_json(raw, _UploadProgress).sent
        progress = _UploadProgress(manifest.created, sent)
        await self._location.put(f"{prefix}/{_PROGRESS}", msgspec.json.encode(progress))
        return progress

    async def _is_uploaded(self, key: str, sent: _UploadedFile | None, file: ManifestFile) -> bool:
        if sent is None or sent.file != file:
            return False
        thing = await self._location.find(key)
        return thing is not None and (thing.size, thing.e_tag) == (file.size, sent.e_tag)

    async def _download_file(self, key: str, path: Path, file: ManifestFile) -> None:
        """One file, not a byte more than the manifest says."""
        digest, size = hashlib.sha256(), 0
        with await asyncio.to_thread(path.open, "wb") as body:
            async for chunk in self._location.chunks(key):
                size += len(chunk)
                if size > file.size:
                    break
                digest.update(chunk)
                await asyncio.to_thread(body.write, chunk)
        if (size, digest.hexdigest()) != (file.size, file.sha256):
            raise InvalidCheckpoint(f"{self.url(key)} is not the file that was stored.")

    async def _stored_checkpoint(self, prefix: str) -> StoredCheckpoint | None:
        """What lies there, if it is ours."""
        try:
            if raw := await self._read_small(f"{prefix}/{MANIFEST}"):
                manifest = parse_manifest(raw)
                return StoredCheckpoint(prefix, manifest.created, manifest)
            if raw := await self._read_small(f"{prefix}/{_PROGRESS}"):
                return StoredCheckpoint(prefix, from_json(raw, _UploadProgress).created, None)
        except (InvalidCheckpoint, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            log.warning("%s is none of ours", self.url(prefix), extra={"action": "skip_model"})
        return None


def _refers_to(path: str, prefix: str) -> bool:
    """Whether a path, in whatever spelling, means this prefix or a folder around it.

    >>> _refers_to("s3://b/models/job-1/final", "job-1/final"), _refers_to("job-1", "job-1/final")
    (True, True)
    >>> _refers_to("job-11/final", "job-1/final")
    False
    """
    path = path.rstrip("/")
    return f"/{path}".endswith(f"/{prefix}") or f"{prefix}/".startswith(f"{path}/")


def _plain_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
