"""The traced agents' endpoints: OTLP over HTTP, spans and log records."""

from __future__ import annotations

import msgspec

from upswing.api.ingest import AGENT, sender_of
from upswing.api.router import JSON, Problem, Request, Response, Route
from upswing.collect.core.traces.otlp import PROTOBUF, encode_status, encode_success
from upswing.collect.core.traces.traced import ExportRequest
from upswing.collect.trace_intake import TraceIntake
from upswing.contracts.typed import from_json

EXPORT_LIMIT = 64 * 1024 * 1024
"""Bytes of an export, as it is sent and once it is decompressed."""


class ExportStatus(msgspec.Struct, frozen=True):
    """Why an export was not taken, as OTLP has it: a `google.rpc.Status`."""

    code: int
    message: str


class PartialSuccess(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What of an export was not taken; without a count, the message is advice."""

    rejected_spans: str = "0"
    rejected_log_records: str = "0"
    error_message: str = ""


class ExportAnswer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The spans are known here."""

    partial_success: PartialSuccess = PartialSuccess()


_EXPORT = {"type": "object", "description": "An OTLP export in JSON."}
_ANSWERS = {
    200: ("Known here; stored when their trace is whole.", ExportAnswer),
    400: ("Neither protobuf nor JSON of OTLP; nothing of it was taken.", ExportStatus),
    401: ("No key, an unknown key, or a revoked one.", ExportStatus),
    403: ("The key's scope does not reach this far.", ExportStatus),
    413: ("Too large, also once decompressed.", ExportStatus),
    415: ("Another content type or content encoding is needed.", ExportStatus),
    503: ("Too much waits; send it again later.", ExportStatus),
}


class TraceRoutes:
    """The handlers of OTLP's endpoints."""

    def __init__(self, traces: TraceIntake) -> None:
        self._traces = traces

    def routes(self) -> list[Route]:
        return [
            self._route(
                "/v1/traces", "Hand over spans of a traced agent: OTLP, in protobuf or JSON."
            ),
            self._route("/v1/logs", "Hand over log records that hold a span's messages: OTLP."),
        ]

    def _route(self, path: str, summary: str) -> Route:
        return Route(
            "POST",
            path,
            summary,
            self.logs if path == "/v1/logs" else self.spans,
            AGENT,
            takes={PROTOBUF: {"type": "string", "format": "binary"}, JSON: _EXPORT},
            answers=_ANSWERS,
            max_body=EXPORT_LIMIT,
            error_form=otlp_error,
        )

    async def spans(self, request: Request) -> Response:
        return await self._take(request, logs=False)

    async def logs(self, request: Request) -> Response:
        return await self._take(request, logs=True)

    async def _take(self, request: Request, *, logs: bool) -> Response:
        kind = request.content_type
        export = ExportRequest(request.body, kind, request.content_encoding, EXPORT_LIMIT, logs)
        result = await self._traces.take(export, sender_of(request))
        if refused := result.refused:
            return Response(
                refused.status, encode_status(refused.status, refused.message, kind), kind
            )
        return Response(200, encode_success(result.rejected, result.message, kind, logs=logs), kind)


def otlp_error(refusal: Response, content_type: str) -> Response:
    """A refusal of the router's as a `Status`, in the form of the request."""
    kind = PROTOBUF if content_type == PROTOBUF else JSON
    said = from_json(refusal.body, Problem)
    return Response(
        refusal.status, encode_status(refusal.status, said.detail, kind), kind, refusal.headers
    )
