"""Which spans and log records are in an OTLP export, and how is it answered? Protobuf and JSON, gzip or plain.

| body                                     | answer                                                        |
|------------------------------------------|---------------------------------------------------------------|
| read as a whole                          | 200, and `partial_success` where a span of it was not taken     |
| neither protobuf nor JSON, or cut off    | 400 with a `Status`: nothing of it was taken                    |
| larger than the limit once decompressed  | 413 with a `Status`                                             |
| one span cannot be used (ids, UTF-8, …)  | 200: that one is rejected and counted, the others are taken     |

Only the fields that the loop uses are read. Errors carry the standard's `google.rpc.Status`, in the form of the request.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from upswing.collect.core.traces.protobuf import (
    BYTES,
    encode_bytes,
    encode_number,
    fields,
    signed,
)
from upswing.errors import Reason, Rejected

PROTOBUF, JSON = "application/x-protobuf", "application/json"
MAX_ATTRIBUTES = 16_384
"""Of a span: a conversation of a thousand messages in OpenInference's flat form has some six thousand."""
MAX_SPANS = 20_000
"""Of one export; SDKs send 512 at a time."""
_MAX_DEPTH = 32
"""Of an attribute's value."""
_REMOTE_PARENT = 0x300
"""Flags of a span: whether its parent is in another process is known, and it is."""
_ERROR_STATUS = 2
GRPC_CODES = {400: 3, 401: 16, 403: 7, 413: 3, 415: 3, 429: 8, 500: 13, 503: 14}
"""HTTP status → the code in a `Status`."""
_PIECE = 1 << 20
_YEAR_2000_NS, _YEAR_2200_NS = 946_684_800 * 10**9, 7_258_118_400 * 10**9


@dataclass(slots=True)
class OtlpRecord:
    """A span, or a log record, whoever wrote it."""

    trace_id: str
    span_id: str
    scope: str = ""
    """The name and version of the instrumentation."""
    service: str = ""
    name: str = ""
    """Of a span; of a log record its event's name."""
    parent_id: str = ""
    """Empty: it has none, or one in another process."""
    started_ns: int = 0
    ended_ns: int = 0
    attributes: dict[str, Any] = field(default_factory=dict)
    dropped_attributes: int = 0
    failed: bool = False
    error: str = ""
    body: Any = None
    """Of a log record."""


@dataclass(slots=True)
class OtlpRecords:
    """What was read of an export."""

    taken: list[OtlpRecord] = field(default_factory=list)
    rejected: int = 0
    problem: str = ""
    """Why the first of the rejected ones was."""

    def reject(self, sentence: str) -> None:
        self.rejected += 1
        self.problem = self.problem or sentence


def decompress(body: bytes, coding: str, limit: int) -> bytes:
    """The body without its content coding; `Rejected` before more than `limit` bytes come of it."""
    if coding in {"", "identity"}:
        plain = body
    elif coding == "gzip":
        plain = _gunzip(body, limit)
    else:
        raise Rejected(Reason.SCHEMA, "Send it with gzip, or without a content-encoding.")
    if len(plain) > limit:
        raise _too_large(limit)
    return plain


def _gunzip(body: bytes, limit: int) -> bytes:
    """A bomb is stopped at the limit, not after it."""
    pieces, size, rest = [], 0, body
    try:
        while rest:
            inflater = zlib.decompressobj(wbits=31)
            while not inflater.eof:
                piece = inflater.decompress(rest, min(_PIECE, limit + 1 - size))
                pieces.append(piece)
                size += len(piece)
                if size > limit:
                    raise _too_large(limit)
                rest = inflater.unconsumed_tail
                if not piece and not rest and not inflater.eof:
                    raise Rejected(
                        Reason.MALFORMED, "The gzip body ends too early: it was cut off."
                    )
            rest = inflater.unused_data
    except zlib.error:
        raise Rejected(
            Reason.MALFORMED, "The body is not gzip, though its header says so."
        ) from None
    return b"".join(pieces)


def _too_large(limit: int) -> Rejected:
    return Rejected(
        Reason.TOO_LARGE,
        f"The export has more than {limit} bytes once decompressed: send fewer spans at a time "
        "(OTEL_BSP_MAX_EXPORT_BATCH_SIZE).",
    )


def read_export(body: bytes, content_type: str, *, logs: bool) -> OtlpRecords:
    """The spans of an export, or its log records; `Rejected` when it cannot be read as a whole."""
    records = OtlpRecords()
    if content_type == PROTOBUF:
        _read_protobuf(body, records, logs=logs)
    else:
        _read_json(body, records, logs=logs)
    return records


# --- protobuf ------------------------------------------------------------------------------------


def _read_protobuf(body: bytes, records: OtlpRecords, *, logs: bool) -> None:
    for number, wire, _, resource in fields(body):  # resource_spans, resource_logs
        if (number, wire) == (1, BYTES):
            _read_resource(resource, records, logs=logs)


def _read_resource(resource: bytes, records: OtlpRecords, *, logs: bool) -> None:
    service, scopes = "", []
    for number, wire, _, part in fields(resource):
        if (number, wire) == (1, BYTES):
            service = _service_of(part)
        elif (number, wire) == (2, BYTES):
            scopes.append(part)
    for scope_part in scopes:
        scope, items = "", []
        for number, wire, _, part in fields(scope_part):
            if (number, wire) == (1, BYTES):
                scope = " ".join(
                    p.decode("utf-8", "replace")
                    for n, w, _, p in fields(part)
                    if n in {1, 2} and w == BYTES
                )
            elif (number, wire) == (2, BYTES):
                items.append(part)
        for item in items:
            _add(records, item, _read_log if logs else _read_span, scope, service)


def _service_of(resource: bytes) -> str:
    pairs = [part for number, wire, _, part in fields(resource) if (number, wire) == (1, BYTES)]
    try:
        return str(_attributes_of(pairs).get("service.name", ""))
    except UnicodeDecodeError:
        return ""


def _add(
    records: OtlpRecords, item: Any, read: Callable[[Any], OtlpRecord], scope: str, service: str
) -> None:
    """One that cannot be used is rejected alone; bytes that are no message end the export."""
    if len(records.taken) >= MAX_SPANS:
        records.reject(f"An export may have {MAX_SPANS} spans: send fewer at a time.")
        return
    try:
        record = read(item)
        _check(record)
    except UnicodeDecodeError:
        records.reject("A text in it is not UTF-8.")
    except Rejected as error:
        if error.reason is Reason.MALFORMED:
            raise
        records.reject(error.detail)
    else:
        record.scope, record.service = scope, service
        records.taken.append(record)


def _read_span(span: bytes) -> OtlpRecord:
    found = _by_number(span)
    status = _by_number(found.part(15))
    remote = found.number(16) & _REMOTE_PARENT == _REMOTE_PARENT
    return OtlpRecord(
        found.part(1).hex(),
        found.part(2).hex(),
        parent_id="" if remote else found.part(4).hex(),
        name=_text(found.part(5)),
        started_ns=found.number(7),
        ended_ns=found.number(8),
        attributes=_attributes_of(found.parts.get(9, [])),
        dropped_attributes=found.number(10),
        failed=status.number(3) == _ERROR_STATUS,
        error=_text(status.part(2)),
    )


def _read_log(log: bytes) -> OtlpRecord:
    found = _by_number(log)
    return OtlpRecord(
        found.part(9).hex(),
        found.part(10).hex(),
        name=_text(found.part(12)),
        started_ns=found.number(1),
        ended_ns=found.number(11),
        attributes=_attributes_of(found.parts.get(6, [])),
        body=_value_of(found.part(5), 0),
    )


@dataclass(slots=True)
class _Fields:
    """The fields of a message by their numbers; of numbers and single parts the last one counts."""

    numbers: dict[int, int] = field(default_factory=dict)
    parts: dict[int, list[bytes]] = field(default_factory=dict)

    def number(self, number: int) -> int:
        return self.numbers.get(number, 0)

    def part(self, number: int) -> bytes:
        return self.parts[number][-1] if number in self.parts else b""


def _by_number(message: bytes) -> _Fields:
    found = _Fields()
    for number, wire, value, part in fields(message):
        if wire == BYTES:
            found.parts.setdefault(number, []).append(part)
        else:
            found.numbers[number] = value
    return found


def _attributes_of(pairs: list[bytes], depth: int = 0) -> dict[str, Any]:
    _check_count(len(pairs))
    found: dict[str, Any] = {}
    for pair in pairs:
        key, value = "", None
        for number, wire, _, part in fields(pair):
            if (number, wire) == (1, BYTES):
                key = _text(part)
            elif (number, wire) == (2, BYTES):
                value = _value_of(part, depth)
        found[key] = value
    return found


def _value_of(part: bytes, depth: int) -> Any:
    """AnyValue: one of seven kinds."""
    if depth > _MAX_DEPTH:
        raise _too_deep()
    value: Any = None
    for number, wire, number_value, inner in fields(part):
        if number == 1 and wire == BYTES:
            value = _text(inner)
        elif number == 2:
            value = bool(number_value)
        elif number == 3:
            value = signed(number_value)
        elif number == 4:
            value = struct.unpack("<d", number_value.to_bytes(8, "little"))[0]
        elif number == 5 and wire == BYTES:
            value = [
                _value_of(p, depth + 1) for n, w, _, p in fields(inner) if (n, w) == (1, BYTES)
            ]
        elif number == 6 and wire == BYTES:
            pairs = [p for n, w, _, p in fields(inner) if (n, w) == (1, BYTES)]
            value = _attributes_of(pairs, depth + 1)
        elif number == 7 and wire == BYTES:
            value = base64.b64encode(inner).decode()
    return value


def _text(part: bytes) -> str:
    return part.decode("utf-8")


# --- JSON ----------------------------------------------------------------------------------------


def _read_json(body: bytes, records: OtlpRecords, *, logs: bool) -> None:
    try:
        tree = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Rejected(Reason.MALFORMED, f"This is no JSON: {error}.") from None
    except RecursionError:
        raise Rejected(Reason.MALFORMED, "The JSON is nested too deeply.") from None
    if not isinstance(tree, dict):
        raise Rejected(Reason.MALFORMED, "An OTLP export is a JSON object.")
    outer, middle, inner = (
        ("resourceLogs", "scopeLogs", "logRecords")
        if logs
        else ("resourceSpans", "scopeSpans", "spans")
    )
    read = _read_json_log if logs else _read_json_span
    for resource in _objects(tree.get(outer)):
        about = _json_attributes(_object(resource.get("resource")).get("attributes"))
        for part in _objects(resource.get(middle)):
            named = _object(part.get("scope"))
            scope = " ".join(str(named[key]) for key in ("name", "version") if named.get(key))
            for item in _objects(part.get(inner)):
                _add(records, item, read, scope, str(about.get("service.name", "")))


def _read_json_span(tree: Mapping[str, Any]) -> OtlpRecord:
    status = _object(tree.get("status"))
    flags = tree.get("flags")
    remote = isinstance(flags, int) and flags & _REMOTE_PARENT == _REMOTE_PARENT
    return OtlpRecord(
        _hex(tree.get("traceId")),
        _hex(tree.get("spanId")),
        name=str(tree.get("name", "")),
        parent_id="" if remote else _hex(tree.get("parentSpanId")),
        started_ns=_integer(tree.get("startTimeUnixNano")),
        ended_ns=_integer(tree.get("endTimeUnixNano")),
        attributes=_json_attributes(tree.get("attributes")),
        dropped_attributes=_integer(tree.get("droppedAttributesCount")),
        failed=status.get("code") in {_ERROR_STATUS, "STATUS_CODE_ERROR"},
        error=str(status.get("message", "")),
    )


def _read_json_log(tree: Mapping[str, Any]) -> OtlpRecord:
    return OtlpRecord(
        _hex(tree.get("traceId")),
        _hex(tree.get("spanId")),
        name=str(tree.get("eventName", "")),
        started_ns=_integer(tree.get("timeUnixNano")),
        ended_ns=_integer(tree.get("observedTimeUnixNano")),
        attributes=_json_attributes(tree.get("attributes")),
        body=_json_value(tree.get("body"), 0),
    )


def _json_attributes(pairs: Any, depth: int = 0) -> dict[str, Any]:
    listed = _objects(pairs)
    _check_count(len(listed))
    return {str(pair.get("key", "")): _json_value(pair.get("value"), depth) for pair in listed}


def _json_value(tree: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise _too_deep()
    if not isinstance(tree, dict) or not tree:
        return None
    kind, value = next(iter(tree.items()))
    match kind:
        case "stringValue" | "bytesValue":
            return str(value)
        case "boolValue":
            return value is True
        case "intValue":
            return _integer(value)
        case "doubleValue":
            return float(value) if isinstance(value, int | float) else None
        case "arrayValue":
            return [_json_value(each, depth + 1) for each in _objects(_object(value).get("values"))]
        case "kvlistValue":
            return _json_attributes(_object(value).get("values"), depth + 1)
        case _:
            return None


def _hex(value: Any) -> str:
    """An id: hexadecimal by the standard; base64 by whoever takes protobuf's own JSON."""
    text = value.lower() if isinstance(value, str) else ""
    if len(text) in {0, 16, 32} and not text.strip("0123456789abcdef"):
        return text
    try:
        return base64.b64decode(value, validate=True).hex()
    except (binascii.Error, TypeError, ValueError):
        return text


def _integer(value: Any) -> int:
    """64 bits travel as text in JSON."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return 0
    try:
        number = int(value)
    except ValueError:
        return 0
    return number if abs(number) < 1 << 64 else 0


def _objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


# --- checks --------------------------------------------------------------------------------------


def _check(record: OtlpRecord) -> None:
    if record.name.isprintable() is False:
        record.name = "".join(filter(str.isprintable, record.name))
    if not record.trace_id and not record.span_id:
        return  # a log record without a trace; nothing follows from it
    if not _is_id(record.trace_id, 32) or not _is_id(record.span_id, 16):
        raise Rejected(
            Reason.SCHEMA, "A trace id has 16 bytes, a span id 8, and neither is all zeros."
        )
    if record.parent_id and not _is_id(record.parent_id, 16):
        record.parent_id = ""
    if record.parent_id == record.span_id:
        raise Rejected(Reason.SCHEMA, "A span names itself as its parent.")


def _is_id(text: str, size: int) -> bool:
    return len(text) == size and text.strip("0") != "" and not text.strip("0123456789abcdef")


def _check_count(count: int) -> None:
    if count > MAX_ATTRIBUTES:
        raise Rejected(
            Reason.TOO_LARGE, f"A span has {count} attributes; {MAX_ATTRIBUTES} are read."
        )


def _too_deep() -> Rejected:
    return Rejected(Reason.TOO_DEEP, f"A value is nested deeper than {_MAX_DEPTH} levels.")


# --- answers -------------------------------------------------------------------------------------


def encode_success(rejected: int, message: str, content_type: str, *, logs: bool) -> bytes:
    """The answer to an export; a message without rejected spans is advice."""
    if content_type == PROTOBUF:
        partial = encode_number(1, rejected) + encode_bytes(2, message.encode())
        return encode_bytes(1, partial)
    name = "rejectedLogRecords" if logs else "rejectedSpans"
    partial_tree = {
        **({name: str(rejected)} if rejected else {}),
        **({"errorMessage": message} if message else {}),
    }
    return msgspec.json.encode({"partialSuccess": partial_tree} if partial_tree else {})


def encode_status(status: int, message: str, content_type: str) -> bytes:
    """What went wrong, as a `google.rpc.Status`."""
    code = GRPC_CODES.get(status, 2)
    if content_type == PROTOBUF:
        return encode_number(1, code) + encode_bytes(2, message.encode())
    return msgspec.json.encode({"code": code, "message": message})


def has_time(record: OtlpRecord) -> bool:
    """Whether a span says when it was, in years that a calendar of ours has."""
    return _YEAR_2000_NS <= record.started_ns <= record.ended_ns < _YEAR_2200_NS
