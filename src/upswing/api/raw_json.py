"""How does JSON from a row go into an answer as it is? Checked, so that a spoilt row spoils no answer."""

from __future__ import annotations

import msgspec

from upswing.contracts.typed import check_whole

NULL = msgspec.Raw(b"null")


def raw_json(body: bytes | None) -> msgspec.Raw:
    """The JSON itself; null where it is none.

    >>> bytes(raw_json(b'{"a": 1}')), bytes(raw_json(b"{oops")), bytes(raw_json(None))
    (b'{"a": 1}', b'null', b'null')
    """
    if body is None:
        return NULL
    try:
        body.decode()
        check_whole(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return NULL
    return msgspec.Raw(body)
