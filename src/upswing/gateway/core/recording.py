"""Does a client want this request recorded?

| the request says                                                        | it is                             |
|--------------------------------------------------------------------------|-----------------------------------|
| nothing, `x-record: on`, `metadata.record: true` or `"on"`               | recorded, and of its episode      |
| `x-record: off`, `metadata.record: false` or `"off"`; the header counts  | not recorded, and nobody's evidence |
| anything else in the header                                              | refused: nobody guesses           |
| anything else in the metadata, which may be the client's own             | recorded                          |
"""

from __future__ import annotations

from upswing.errors import Reason, Rejected

_OFF, _ON = frozenset({b"off", b"false", b"no", b"0"}), frozenset({b"on", b"true", b"yes", b"1"})


def is_recorded(header: bytes | None, metadata_value: bytes) -> bool:
    """Whether it is to be recorded, by the header `x-record` and the JSON of `metadata.record`.

    >>> is_recorded(b"off", b""), is_recorded(None, b'"off"'), is_recorded(None, b"false"), is_recorded(b"on", b"false")
    (False, False, False, True)
    >>> is_recorded(b"perhaps", b"")
    Traceback (most recent call last):
    upswing.errors.Rejected: `x-record` is `on` or `off`.
    """
    if header is not None:
        value = header.strip().lower()
        if value not in _OFF | _ON:
            raise Rejected(Reason.SCHEMA, "`x-record` is `on` or `off`.")
        return value in _ON
    return metadata_value.strip(b'"').lower() not in _OFF
