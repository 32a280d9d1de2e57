"""A template with slots becomes a case: slots marked `!` hold secrets, the others filler.

A slot is written `⟨name⟩` or `⟨!name⟩`; a digit after the name asks for another value of
the same maker, and the same slot twice holds the same value twice.
"""

import base64
import html
import json
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from bench.redaction_cases import Case

_SLOT = re.compile(r"⟨(!?)([a-z_]+)(\d*)⟩")
_BLOCK = re.compile(r"^@@ (?=[a-z])", re.MULTILINE)
_SHORTEST_HALF = 8


@dataclass(frozen=True)
class Entry:
    kind: str
    form: str
    carrier: str
    text: str
    language: str = "en"
    escape: str = "none"
    place: str = ""


@dataclass(frozen=True)
class Value:
    """What is put into a secret's slot, and how it can leak in part."""

    text: str
    cut: str = "halves"
    style: str = ""
    parts: tuple[str, ...] = field(default=())


Maker = Callable[[random.Random, Entry], Value]
Filler = Callable[[random.Random, Entry], str]


def entries(table: str, language: str = "en") -> list[Entry]:
    """Entries from blocks that each open with `@@ kind form carrier escape [language [place]]`."""
    made = []
    for block in _BLOCK.split(table)[1:]:
        head, text = block.split("\n", 1)
        kind, form, carrier, escape, *rest = head.split()
        spoken, place = (*rest, *(language, "")[len(rest) :])
        made.append(Entry(kind, form, carrier, text.rstrip("\n"), spoken, escape, place))
    return made


def pieces(value: Value) -> tuple[str, ...]:
    """The value, and each part of it that would be a leak by itself."""
    if value.parts:
        return value.parts
    text = value.text
    middle = len(text) // 2
    if value.cut == "words":
        words = text.split(" ")
        return (text, " ".join(words[1:]), " ".join(words[:-1])) if len(words) > 2 else (text,)
    if value.cut == "halves" and middle >= _SHORTEST_HALF:
        return text, text[:middle], text[middle:]
    return (text,)


def _json_ascii(text: str) -> str:
    return json.dumps(text)[1:-1]


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


ESCAPES: Mapping[str, Callable[[str], str]] = {
    "none": str,
    "json": _json,
    "json_ascii": _json_ascii,
    "json_twice": lambda text: _json(_json(text)),
    "html": lambda text: html.escape(text, quote=True),
    "url": lambda text: quote(text, safe=""),
    "base64": _base64,
}


def escaped(value: Value, name: str) -> tuple[str, tuple[str, ...]]:
    """The value as its carrier writes it; its parts likewise, and as they read when unpacked."""
    change, plain = ESCAPES[name], pieces(value)
    whole = change(value.text)
    if name == "base64":
        return whole, (*pieces(Value(whole)), *plain)
    written = tuple(change(part) for part in plain)
    return whole, (written + plain if name.startswith("json") else written)


def render(
    rng: random.Random,
    group: str,
    entry: Entry,
    makers: Mapping[str, Maker],
    fillers: Mapping[str, Filler],
) -> Case:
    """Fill every slot of the entry's template."""
    filled: dict[str, str] = {}
    secrets: dict[str, None] = {}
    styles: dict[str, None] = {}

    def one(match: re.Match[str]) -> str:
        slot, hidden, name = match.group(0), match.group(1), match.group(2)
        if slot in filled:
            return filled[slot]
        if hidden:
            value = makers[name](rng, entry)
            filled[slot], parts = escaped(value, entry.escape)
            secrets.update(dict.fromkeys(parts))
            styles.update(dict.fromkeys([value.style] if value.style else []))
        else:
            filled[slot] = fillers[name](rng, entry)
        return filled[slot]

    text = _SLOT.sub(one, entry.text)
    form = "/".join([entry.form, *styles])
    return Case(entry.kind, group, form, entry.language, entry.carrier, text, tuple(secrets))
