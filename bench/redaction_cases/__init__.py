"""Which labelled texts must redaction get right?

A module of this folder is a source of cases. It has `cases(seed, count)`, which gives the same cases
for the same seed. Sources are found by their file, so that one can be added without touching another.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Group = Literal["credential", "person", "disguise", "clean"]


@dataclass(frozen=True, slots=True)
class Case:
    kind: str
    """What is written, such as `password`, `iban` or, in a clean text, `code`."""
    group: Group
    form: str
    """How it is written: the separator, the spacing, the disguise."""
    language: str
    carrier: str
    """What it stands in: prose, code, log, json, markdown, html or shell."""
    text: str
    """What is admitted. A JSON carrier holds one JSON document, and is admitted as a tree."""
    secrets: tuple[str, ...]
    """What must not be found in the redacted text; for a disguise also the decoded value.
    A clean text has none, and every character that is replaced in it is one too many."""


def sources() -> dict[str, object]:
    """Name of a source: its module."""
    names = sorted(
        info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_")
    )
    return {name: importlib.import_module(f"{__name__}.{name}") for name in names}


def cases(source: str, seed: int, count: int) -> Iterator[Case]:
    yield from importlib.import_module(f"{__name__}.{source}").cases(seed, count)
