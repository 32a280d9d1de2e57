"""Which Agent Zero is it, and where do the plugin's files belong in it?

| found in the checkout                          | it is                       | our files                                |
|------------------------------------------------|-----------------------------|------------------------------------------|
| `helpers/plugins.py`, `helpers/extension.py`   | one with plugins (from 0.9.9, tried with 1.7) | `usr/plugins/upswing/` alone |
| `python/helpers/extension.py`                  | an older one (tried with 0.9.7) | `usr/upswing/`, `agents/rl-trainer/`, and one file of ours at each extension point |
| neither                                        | none that we know           | none                                     |
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from upswing.errors import Misuse

_PLUGIN_FILES = ("helpers/plugins.py", "helpers/extension.py")
_OLDER_FILE = "python/helpers/extension.py"
_VERSION = re.compile(r"[A-Za-z0-9._\-]{1,40}")


class Layout(StrEnum):
    """How an Agent Zero loads what others add to it."""

    PLUGINS = "plugins"
    EXTENSIONS = "extensions"


@dataclass(frozen=True, slots=True)
class Checkout:
    """An Agent Zero on this machine."""

    root: Path
    layout: Layout
    version: str
    """As its git says it, else empty."""

    @property
    def home(self) -> Path:
        """The plugin's own folder, from the root."""
        return Path("usr/plugins/upswing" if self.layout is Layout.PLUGINS else "usr/upswing")


def find_checkout(folder: Path) -> Checkout:
    """The Agent Zero in this folder, or `Misuse` with what was looked for."""
    root = folder.expanduser().absolute()
    if not root.is_dir():
        raise Misuse(f"{root} is no folder: name the one that has Agent Zero's agent.py.")
    if not (root / "agent.py").is_file():
        raise Misuse(f"{root} has no agent.py, so it is no Agent Zero: name its own folder.")
    if all((root / each).is_file() for each in _PLUGIN_FILES):
        return Checkout(root, Layout.PLUGINS, _git_version(root))
    if (root / _OLDER_FILE).is_file():
        return Checkout(root, Layout.EXTENSIONS, _git_version(root))
    raise Misuse(
        f"{root} is an Agent Zero whose extensions this version does not know. One of 0.9.9 or later has {' and '.join(_PLUGIN_FILES)}, one of "
        f"0.8.5 to 0.9.8 has {_OLDER_FILE}; here {' and '.join(_missing(root))} {'are' if len(_missing(root)) > 1 else 'is'} missing."
    )


def _missing(root: Path) -> list[str]:
    """What the nearest kind would have: half a newer one is no older one."""
    absent = [each for each in _PLUGIN_FILES if not (root / each).is_file()]
    return absent if len(absent) < len(_PLUGIN_FILES) else [*absent, _OLDER_FILE]


def _git_version(root: Path) -> str:
    """The tag or commit that is checked out, read from git's own files; no program is run in a foreign folder."""
    git = root / ".git"
    try:
        head = (git / "HEAD").read_text(encoding="utf-8", errors="replace")[:200].strip()
        commit = head
        if head.startswith("ref: "):
            commit = (git / head.removeprefix("ref: ")).read_text(encoding="utf-8")[:40].strip()
        packed = git / "packed-refs"
        lines = packed.read_text(encoding="utf-8").splitlines() if packed.is_file() else []
    except (OSError, ValueError):  # a name that is none, or a text that is not UTF-8
        return ""
    tags = [
        line.partition(" refs/tags/")[2]
        for line in lines
        if line.startswith(f"{commit} refs/tags/")
    ]
    found = tags[0] if tags else commit[:12]
    return found if _VERSION.fullmatch(found) else ""
