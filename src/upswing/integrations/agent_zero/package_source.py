"""From where does another Python get this package? From the folder that this one has it from, never by its name from an index."""

from __future__ import annotations

import json
import shlex
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

import upswing

_UNKNOWN = "/path/to/upswing"


def install_command(python: str | Path) -> str:
    """What a person types so that this Python has the package, too."""
    folder = source_folder()
    return f"{shlex.quote(str(python))} -m pip install {shlex.quote(str(folder)) if folder else _UNKNOWN}"


def source_folder() -> Path | None:
    """The project's own folder; None where this machine has it no more."""
    places = [_recorded_source(), Path(upswing.__file__).absolute().parents[2]]
    return next((each for each in places if each and (each / "pyproject.toml").is_file()), None)


def _recorded_source() -> Path | None:
    """What pip wrote down when it installed the package from a folder."""
    try:
        written = distribution("upswing").read_text("direct_url.json")
        url = urlsplit(json.loads(written or "{}").get("url", ""))
    except (PackageNotFoundError, OSError, ValueError, AttributeError):
        return None
    return Path(unquote(url.path)) if url.scheme == "file" else None
