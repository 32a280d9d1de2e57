"""What is in these bytes? Protobuf's wire format, as far as OTLP uses it, read and written within bounds.

    message   (tag field)*          tag = number << 3 | wire type, a varint
    0 varint  1 eight bytes  2 a length and so many bytes  5 four bytes

Groups (3, 4) are older than OTLP, and no field of it is one.
"""

from __future__ import annotations

from collections.abc import Iterator

from upswing.errors import Reason, Rejected

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10

Field = tuple[int, int, int, bytes]
"""Number, wire type, the value of a number, the bytes of everything else."""


def fields(message: bytes) -> Iterator[Field]:
    """The fields of a message, in their order; `Rejected` where the bytes are none.

    >>> list(fields(bytes.fromhex("0a01610801")))
    [(1, 2, 0, b'a'), (1, 0, 1, b'')]
    """
    at, end = 0, len(message)
    while at < end:
        tag = message[at]
        if tag < 0x80:
            at += 1
        else:
            tag, at = _varint(message, at, end)
        wire = tag & 7
        if wire == BYTES:
            size = message[at] if at < end else 0x80
            if size < 0x80:
                at += 1
            else:
                size, at = _varint(message, at, end)
            if at + size > end:
                raise truncated()
            yield tag >> 3, BYTES, 0, message[at : at + size]
            at += size
        elif wire == VARINT:
            value, at = _varint(message, at, end)
            yield tag >> 3, VARINT, value, b""
        elif wire in {FIXED64, FIXED32}:
            size = 8 if wire == FIXED64 else 4
            if at + size > end:
                raise truncated()
            yield tag >> 3, wire, int.from_bytes(message[at : at + size], "little"), b""
            at += size
        else:
            raise Rejected(Reason.MALFORMED, f"This is no protobuf: a field has wire type {wire}.")


def _varint(message: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    for place in range(at, min(end, at + _LONGEST_VARINT)):
        byte = message[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, place + 1
        shift += 7
    if end - at < _LONGEST_VARINT:
        raise truncated()
    raise Rejected(Reason.MALFORMED, "This is no protobuf: a number in it has no end.")


def truncated() -> Rejected:
    return Rejected(Reason.MALFORMED, "The protobuf ends in the middle of a field: it was cut off.")


def signed(value: int) -> int:
    """A varint as an int64.

    >>> signed(2**64 - 1), signed(7)
    (-1, 7)
    """
    return value - (1 << 64) if value >> 63 else value


def encode_number(number: int, value: int) -> bytes:
    """A varint field; nothing for 0, which is the default.

    >>> encode_number(1, 300).hex(), encode_number(1, 0)
    ('08ac02', b'')
    """
    return bytes([number << 3 | VARINT]) + _encode_varint(value) if value else b""


def encode_bytes(number: int, value: bytes) -> bytes:
    """A field with a length; nothing for an empty one.

    >>> encode_bytes(2, b"ab").hex()
    '12026162'
    """
    return bytes([number << 3 | BYTES]) + _encode_varint(len(value)) + value if value else b""


def _encode_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
