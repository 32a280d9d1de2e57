"""How do the plugin's files get into an Agent Zero, and out of it again?

Every file is written by its full path below the checkout; a link on the way is not followed. A list of what was written, with
hashes, lies in the plugin's folder.

| what is there already                      | install                                   | uninstall                   |
|--------------------------------------------|-------------------------------------------|-----------------------------|
| nothing                                    | writes                                    | –                           |
| a file of ours, as we wrote it             | writes the new one                        | removes it                  |
| a file of ours that somebody changed       | refuses, and names it; `force` writes     | leaves it, and names it     |
| a file, or a plugin's folder, of others    | refuses, and names it                     | leaves it                   |
| a link anywhere on the way                 | refuses                                   | refuses                     |

Both look at everything first: what is refused has changed nothing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import msgspec

from upswing import __version__
from upswing.contracts.typed import from_json
from upswing.errors import Misuse
from upswing.integrations.agent_zero.connection import (
    FILE,
    FORM,
    PluginConnection,
    write_connection,
)
from upswing.integrations.agent_zero.layout import Checkout, Layout
from upswing.integrations.agent_zero.plugin import SPOOL
from upswing.integrations.agent_zero.plugin_files import plugin_files

MANIFEST = "manifest.json"
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


class PluginManifest(msgspec.Struct, frozen=True):
    """What was written."""

    version: str
    form: int
    layout: Layout
    files: dict[str, str]
    """Path from Agent Zero's root → sha256."""
    folders: list[str] = []
    """Those that were not there before."""


@dataclass(frozen=True, slots=True)
class Installed:
    """What an installation did."""

    folder: Path
    written: int
    elsewhere: int = 0
    """Of these, outside of the plugin's own folder."""
    removed: tuple[str, ...] = ()
    """Files of an earlier version."""


@dataclass(frozen=True, slots=True)
class Removed:
    """What an uninstallation did."""

    files: int
    left: tuple[str, ...] = ()
    """Files that somebody changed."""
    waiting: int = 0
    """Recordings that the loop has not got; they stay where they are."""


def check_installable(checkout: Checkout, *, force: bool = False) -> None:
    """`Misuse` where `install` would refuse; nothing is written."""
    made = plugin_files(checkout.layout, PluginConnection(), checkout.version)
    _refuse_obstacles(checkout, made, read_manifest(checkout), force=force)


def install(checkout: Checkout, connection: PluginConnection, *, force: bool = False) -> Installed:
    """Write the plugin, or mend an older one."""
    made = plugin_files(checkout.layout, connection, checkout.version)
    before = read_manifest(checkout)
    _refuse_obstacles(checkout, made, before, force=force)
    old = [path for path in (before.files if before else {}) if Path(path) not in made]
    folders = sorted({*(before.folders if before else ()), *_new_folders(checkout, made)})
    for path, text in made.items():
        _write(checkout.root, path, text.encode())
    hashes = {path.as_posix(): _digest(text.encode()) for path, text in made.items()}
    removed = [path for path in old if before and _remove(checkout.root, path, before.files[path])]
    manifest = PluginManifest(__version__, FORM, checkout.layout, hashes, folders)
    _write(checkout.root, checkout.home / MANIFEST, msgspec.json.encode(manifest))
    write_connection(checkout.root / checkout.home, connection)
    outside = sum(1 for path in made if not path.is_relative_to(checkout.home))
    return Installed(checkout.root / checkout.home, len(made), outside, tuple(removed))


def export_target(folder: Path) -> Checkout:
    """A folder that the plugin is written into, to be copied to an Agent Zero's `usr/plugins`."""
    target = folder.expanduser().absolute()
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise Misuse(f"{target} is no folder.")
    for name in ("usr", "usr/plugins", "usr/plugins/upswing"):
        if (target / name).is_symlink():
            raise Misuse(f"{target / name} is a link, which is not followed: name another folder.")
    target.mkdir(parents=True, exist_ok=True)
    return Checkout(target, Layout.PLUGINS, "")


def uninstall(checkout: Checkout) -> Removed:
    """Take out what is ours; `Misuse` where nothing is."""
    manifest = read_manifest(checkout)
    if manifest is None:
        raise Misuse(f"There is no plugin of Upswing's in {checkout.root / checkout.home}.")
    _refuse_links_of(checkout, manifest)
    left = [
        path
        for path, digest in manifest.files.items()
        if not _remove(checkout.root, path, digest) and (checkout.root / path).exists()
    ]
    home = checkout.root / checkout.home
    for name in (FILE, MANIFEST):
        (home / name).unlink(missing_ok=True)
    waiting = _waiting_files(home / SPOOL)
    if not waiting:
        for each in _files_below(home / SPOOL):
            each.unlink()
    _remove_own_folders(checkout, [*manifest.folders, f"{checkout.home.as_posix()}/{SPOOL}"])
    return Removed(len(manifest.files) - len(left), tuple(left), waiting)


def read_manifest(checkout: Checkout) -> PluginManifest | None:
    """What was installed here; None: nothing of ours."""
    relative = checkout.home / MANIFEST
    _refuse_links(checkout.root, relative)
    try:
        found = from_json((checkout.root / relative).read_bytes(), PluginManifest)
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OSError) as error:
        raise Misuse(
            f"{checkout.root / relative} cannot be read ({type(error).__name__}): remove the plugin's folder by hand."
        ) from None
    for path in map(Path, (*found.files, *found.folders)):
        if path.is_absolute() or ".." in path.parts:
            raise Misuse(f"{checkout.root / relative} names {str(path)!r}, which is not below it.")
    return found


def changed_files(checkout: Checkout, manifest: PluginManifest) -> dict[str, str]:
    """Files that are not as they were written: path → `missing`, `changed`, or no file at all."""
    found = {}
    for path, digest in manifest.files.items():
        try:
            _refuse_links(checkout.root, Path(path))
            content = _content(checkout.root / path)
        except Misuse:
            found[path] = "a link or no file"
            continue
        if content is None:
            found[path] = "missing"
        elif _digest(content) != digest:
            found[path] = "changed"
    return found


def _refuse_obstacles(
    checkout: Checkout, made: Mapping[Path, str], before: PluginManifest | None, *, force: bool
) -> None:
    _refuse_foreign_folder(checkout, before)
    _refuse_foreign_files(checkout, made, before, force=force)
    for name in (FILE, MANIFEST):
        _refuse_links(checkout.root, checkout.home / name)


def _refuse_links_of(checkout: Checkout, manifest: PluginManifest) -> None:
    """Whatever an uninstallation touches is looked at before it touches anything."""
    for path in (*map(Path, manifest.files), *(checkout.home / name for name in (FILE, MANIFEST))):
        _refuse_links(checkout.root, path)
    for path in (*map(Path, manifest.folders), checkout.home / SPOOL):
        _refuse_links(checkout.root, path, folder=True)


def _refuse_foreign_folder(checkout: Checkout, before: PluginManifest | None) -> None:
    home = checkout.root / checkout.home
    _refuse_links(checkout.root, checkout.home, folder=True)
    if before is None and home.is_dir() and any(home.iterdir()):
        raise Misuse(f"{home} holds something that is not ours: move it away, then install again.")


def _refuse_foreign_files(
    checkout: Checkout, made: Mapping[Path, str], before: PluginManifest | None, *, force: bool
) -> None:
    known = before.files if before else {}
    odd = []
    for path in made:
        _refuse_links(checkout.root, path)
        content = _content(checkout.root / path)
        ours = path.as_posix() in known
        if content is None or (ours and (force or _digest(content) == known[path.as_posix()])):
            continue
        odd.append(f"{path} ({'changed by somebody' if ours else 'not ours'})")
    if odd:
        hint = "" if any("not ours" in each for each in odd) else " `--force` overwrites them."
        raise Misuse(f"These files would be overwritten: {', '.join(odd)}.{hint}")


def _refuse_links(root: Path, relative: Path, *, folder: bool = False) -> None:
    """`Misuse` when a part of the way from the root on is a link, or no folder where one is needed.

    `folder`: the last part is a folder's, too.
    """
    at = root
    for number, part in enumerate(relative.parts):
        at = at / part
        try:
            mode = at.lstat().st_mode
        except FileNotFoundError:
            return
        wants_folder = folder or number < len(relative.parts) - 1
        if stat.S_ISLNK(mode):
            remedy = "replace it by a folder of its own" if wants_folder else "move it away"
            raise Misuse(f"{at} is a link, which is not followed: {remedy}, then try again.")
        if wants_folder and not stat.S_ISDIR(mode):
            raise Misuse(f"{at} is a file where a folder is needed.")


def _write(root: Path, relative: Path, content: bytes) -> None:
    """Whole or not at all; no link is followed."""
    _refuse_links(root, relative)
    path = root / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.upswing-new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, 0o644)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    fresh.replace(path)


def _remove(root: Path, path: str, digest: str) -> bool:
    """Remove a file that is as we wrote it; whether it was."""
    _refuse_links(root, Path(path))
    content = _content(root / path)
    if content is None or _digest(content) != digest:
        return False
    (root / path).unlink()
    for compiled in _files_below((root / path).parent / "__pycache__"):
        if compiled.name.startswith(f"{Path(path).stem}."):
            compiled.unlink()
    return True


def _content(path: Path) -> bytes | None:
    """What a file holds; None where there is none."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise Misuse(f"{path} is no file, and none of ours: move it away, then install again.")
        descriptor = os.open(path, os.O_RDONLY | _NO_FOLLOW)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Misuse(f"{path} cannot be read: {error.strerror}.") from None
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def _waiting_files(spool: Path) -> int:
    """Files of the spool that hold something."""
    return sum(1 for each in _files_below(spool) if each.stat().st_size)


def _files_below(folder: Path) -> Iterator[Path]:
    if folder.is_symlink() or not folder.is_dir():
        return
    yield from (
        each for each in sorted(folder.iterdir()) if each.is_file() and not each.is_symlink()
    )


def _new_folders(checkout: Checkout, made: Mapping[Path, str]) -> set[str]:
    """Folders that have to be made for these files."""
    parents = {parent for path in made for parent in path.parents}
    return {parent.as_posix() for parent in parents if not (checkout.root / parent).exists()}


def _remove_own_folders(checkout: Checkout, folders: list[str]) -> None:
    """Folders that were made for us and are empty now, deepest first."""
    for folder in sorted(map(Path, folders), key=lambda each: len(each.parts), reverse=True):
        _remove_if_empty(checkout.root / folder / "__pycache__")
        _remove_if_empty(checkout.root / folder)


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
        folder.rmdir()


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()
