"""The ways in which a test hides a value."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

_LOOK_ALIKES = str.maketrans("aceopxyABEKMHOPCTX", "асеорхуАВЕКМНОРСТХ")


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def wrapped(text: str) -> str:
    code = b64(text)
    return "\n".join(code[i : i + 32] for i in range(0, len(code), 32))


def json_escaped(text: str) -> str:
    return "".join(f"\\u{ord(ch):04x}" for ch in text)


def some_escaped(text: str) -> str:
    return "".join(f"\\u{ord(ch):04x}" if i % 3 == 0 else ch for i, ch in enumerate(text))


def fullwidth(text: str) -> str:
    return "".join(chr(ord(ch) + 0xFEE0) if "!" <= ch <= "~" else ch for ch in text)


FORMS: dict[str, Callable[[str], str]] = {
    "plain": lambda v: v,
    "base64": b64,
    "base64, unpadded and urlsafe": lambda v: (
        base64.urlsafe_b64encode(v.encode()).decode().rstrip("=")
    ),
    "base64, wrapped": wrapped,
    "base64 twice": lambda v: b64(b64(v)),
    "base64 thrice": lambda v: b64(b64(b64(v))),
    "hex": lambda v: v.encode().hex(),
    "hex, separated": lambda v: v.encode().hex(":"),
    "backslash x": lambda v: "".join(f"\\x{b:02x}" for b in v.encode()),
    "percent": lambda v: "".join(f"%{b:02X}" for b in v.encode()),
    "percent twice": lambda v: "".join(f"%25{b:02X}" for b in v.encode()),
    "JSON escapes": json_escaped,
    "some JSON escapes": some_escaped,
    "base64 in JSON, escaped again": lambda v: json.dumps(json.dumps({"data": b64(v)})),
    "entities": lambda v: "".join(f"&#{ord(ch)};" for ch in v),
    "look-alikes": lambda v: v.translate(_LOOK_ALIKES),
    "fullwidth": fullwidth,
    "zero width": "\u200b".join,
    "soft hyphens": lambda v: v[:5] + "\u00ad" + v[5:9] + "\u2060" + v[9:],
    "string concatenation": lambda v: f'"{v[: len(v) // 2]}" + "{v[len(v) // 2 :]}"',
}


def turns(value: str, pieces: int = 2) -> Any:
    """A trajectory in which the value is cut by the borders of turns."""
    size = -(-len(value) // pieces)
    parts = [value[i : i + size] for i in range(0, len(value), size)]
    parts[0] = "the tool said " + parts[0]
    parts[-1] += " and that was all"
    return {
        "id": "t-1",
        "turns": [
            {"turn_id": i, "role": "tool", "result": {"output": part}}
            for i, part in enumerate(parts)
        ],
    }


def leaked(value: str, out: Any) -> list[str]:
    """The parts of `value` that still stand in `out`, in whatever form: whole, or a half of it."""
    text = json.dumps(out, ensure_ascii=False)
    half = len(value) // 2
    parts = [value, value[:half], value[half:]]
    hidden = [form(part) for part in parts for form in FORMS.values()]
    return [part for part in hidden if len(part) > 5 and part in text]
