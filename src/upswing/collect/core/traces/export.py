"""What is in an export? The whole verdict on one request, as a value: it is made in an admission worker."""

from __future__ import annotations

from upswing.collect.core.traces.otlp import OtlpRecords, decompress, has_time, read_export
from upswing.collect.core.traces.spans import MessageTable, read_log, read_span
from upswing.collect.core.traces.traced import (
    ExportRequest,
    ExportVerdict,
    ReadExport,
    RefusedExport,
)
from upswing.errors import Reason, Rejected

_STATUS = {Reason.TOO_LARGE: 413, Reason.SCHEMA: 415}
_UNREADABLE = "A value in it is nested too deeply, or a number too large."


def evaluate_export(request: ExportRequest) -> ExportVerdict:
    """Its spans and messages, or why nothing of it can be taken."""
    try:
        body = decompress(request.body, request.coding, request.limit)
        records = read_export(body, request.content_type, logs=request.logs)
    except Rejected as error:
        return RefusedExport(_STATUS.get(error.reason, 400), error.detail)
    table = MessageTable()
    return (_read_logs if request.logs else _read_spans)(records, table)


def _read_logs(records: OtlpRecords, table: MessageTable) -> ReadExport:
    messages = []
    for record in records.taken:
        try:
            found = read_log(record, table)
        except (RecursionError, OverflowError):
            records.reject(_UNREADABLE)
        else:
            messages += [found] if found else []
    return ReadExport([], messages, table.bodies, records.rejected, records.problem)


def _read_spans(records: OtlpRecords, table: MessageTable) -> ReadExport:
    spans = []
    for record in records.taken:
        if not record.trace_id:
            records.reject("A span has no trace id.")
            continue
        if not has_time(record):
            records.reject("A span does not say when it began and ended, or not in this order.")
            continue
        try:
            spans.append(read_span(record, table))
        except (RecursionError, OverflowError):  # nesting and numbers that JSON cannot spell
            records.reject(_UNREADABLE)
    return ReadExport(spans, [], table.bodies, records.rejected, records.problem)
