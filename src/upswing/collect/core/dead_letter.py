"""What may be kept of a message that could not be taken? Redacted text, and not much of it."""

from __future__ import annotations

from typing import Any

import msgspec

from upswing.contracts import canonical
from upswing.contracts.dead import PAYLOAD_LIMIT
from upswing.redact import RedactionFailed, Redactor

_MAX_REDACTED_BYTES = 1024 * 1024
"""Of a longer message only this much is redacted and kept in part."""
_MARGIN = 4096
"""Characters dropped where we cut, so that half a secret is not left at the edge."""


def payload_of(raw: bytes, redactor: Redactor) -> str | None:
    """`raw` as redacted text of at most 64 KB; None when it cannot be redacted."""
    try:
        text = _redacted_text(raw, redactor)
    except RedactionFailed:
        return None
    return cut(text)


def cut(text: str) -> str:
    """The first 64 KB of a text that is clean already."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= PAYLOAD_LIMIT:
        return text
    return encoded[:PAYLOAD_LIMIT].decode("utf-8", "ignore")


def _redacted_text(raw: bytes, redactor: Redactor) -> str:
    whole = len(raw) <= _MAX_REDACTED_BYTES
    tree: Any = None
    if whole:
        try:
            tree = msgspec.json.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            tree = None
    if isinstance(tree, dict | list):
        try:
            return canonical(redactor.tree(tree).value).decode()
        except RecursionError:
            tree = None
    clean: str = redactor.text(raw[:_MAX_REDACTED_BYTES].decode("utf-8", "replace")).value
    return clean if whole else clean[:-_MARGIN]


def sentence_of(detail: str, redactor: Redactor) -> str:
    """The detail may quote the message, so it is redacted too; of a traceback the end is kept."""
    shortened = detail[:1000] if len(detail) <= 1000 else f"{detail[:500]} … {detail[500:][-3000:]}"
    try:
        return str(redactor.text(shortened).value)
    except RedactionFailed:
        return "The reason could not be redacted, so it is not shown."
