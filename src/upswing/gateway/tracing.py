"""What does a request to the gateway look like in the user's tracing? One span, below the client's own, without content."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING
from uuid import UUID

from upswing.infra.tracing import SERVER, OwnSpan, SpanExporter, parse_traceparent

if TYPE_CHECKING:
    from upswing.gateway.proxy.exchange import ChatExchange


class ExchangeTracer:
    """Makes a span of each exchange that is over."""

    def __init__(
        self, exporter: SpanExporter, *, clock: Callable[[], datetime], new_id: Callable[[], UUID]
    ) -> None:
        self.exporter, self._clock, self._new_id = exporter, clock, new_id

    def on_finished(self, exchange: ChatExchange, outcome: str) -> None:
        """A client that sampled its trace out is not traced here either."""
        parent = parse_traceparent(exchange.traceparent)
        if parent is not None and not parent.sampled:
            return
        fresh = self._new_id().hex
        ended = round(self._clock().timestamp() * 1e9)
        failed = outcome == "failed"
        self.exporter.add(
            OwnSpan(
                f"chat {exchange.target.model.model_id}",
                parent.trace_id if parent else self._new_id().hex,
                fresh[:16],
                ended - round((monotonic() - exchange.started_at) * 1e9),
                ended,
                parent_id=parent.span_id if parent else "",
                kind=SERVER,
                attributes={
                    "gen_ai.operation.name": "chat",
                    "gen_ai.provider.name": "upswing",
                    "gen_ai.request.model": exchange.first_target.model.model_id,
                    "gen_ai.response.model": exchange.target.model.model_id,
                    "gen_ai.conversation.id": exchange.episode.episode_id,
                    "upswing.inference_id": exchange.inference_id,
                    "upswing.outcome_of_request": outcome,
                    "upswing.fell_back": exchange.fell_back,
                },
                error=(str(exchange.fault) if exchange.fault else outcome) if failed else "",
            )
        )
