"""Is this what an option takes? Moments, files to write; and the loop's words for a person.

What is wrong with a value is said at once, with the option's name, and the exit code is 2. What only the
loop can know comes back from it with the place in its request: `named` says which option that was.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from upswing.cli.moments import moment

_FIELD_PATH = re.compile(r"\s+- at `\$\.?([^`]*)`")
_KNOB = re.compile(r"The recipe cannot be used: `([^`]*)`: ")


def parse_since(text: str) -> datetime:
    """A moment that is over, in a person's words."""
    return moment(text, datetime.now(UTC))  # noqa: TID251 - a person's "since 7d" means their now


def image_path(text: str) -> Path:
    """A picture to write: its folder has to be there, and its name says which kind it is."""
    path = Path(text).expanduser()
    if path.suffix.lower() not in {".png", ".svg", ".pdf", ".jpg", ".jpeg"}:
        raise argparse.ArgumentTypeError(f"{text} is no picture: name it .png, .svg, .pdf or .jpg")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"the folder {path.parent} does not exist: make it first")
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is a folder: name a file in it")
    return path


def with_option_names(sentence: str, options: Mapping[str, str] | None = None) -> str:
    """The loop's sentence, with the option that it is about instead of the place in the request.

    >>> with_option_names("Expected `int` >= 1 - at `$.dataset.sample_size`.", {"sample_size": "--samples"})
    '--samples: Expected `int` >= 1.'
    >>> with_option_names("The recipe cannot be used: `clip_low`: expected a number.")
    '--recipe clip_low: expected a number.'
    >>> with_option_names("Expected `str`, got `int` - at `$.shares`."), with_option_names("No loop is running.")
    ('shares: Expected `str`, got `int`.', 'No loop is running.')
    """
    known = options or {}
    if knob := _KNOB.match(sentence):
        return f"{known.get(knob[1], f'--recipe {knob[1]}')}: {sentence[knob.end() :]}"
    found = _FIELD_PATH.search(sentence)
    if found is None:
        return sentence
    name = found[1].rpartition(".")[2]
    return f"{known.get(name, name)}: {_FIELD_PATH.sub('', sentence)}"
