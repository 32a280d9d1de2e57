"""What does an exchange need of the gateway, and what is kept of it when it is over?"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from upswing.config import FallbackConfig
from upswing.contracts.traffic import Model
from upswing.gateway.core.episode_table import ExchangeRecord, OpenEpisode, UnansweredRequest
from upswing.gateway.core.episodes import hashes_after_answer, transcript_pin
from upswing.gateway.core.fault_records import FaultRecord
from upswing.gateway.core.faults import (
    CAUSED_BY_REQUEST,
    Fault,
    gave_up_waiting,
    is_model_evidence,
)
from upswing.gateway.core.keys import sender_of
from upswing.gateway.core.native_answers import read_shaped_answer
from upswing.gateway.core.routing import RouteTarget
from upswing.gateway.core.serving_policy import ServingPolicy
from upswing.gateway.counters import GatewayCounters
from upswing.gateway.limits import GatewayLimits
from upswing.gateway.proxy.upstreams import Upstream, Upstreams
from upswing.gateway.recorder.recorder import EpisodeRecorder
from upswing.gateway.tracing import ExchangeTracer
from upswing.gateway.traffic import TrafficRouter

if TYPE_CHECKING:
    from upswing.gateway.proxy.exchange import ChatExchange


class ExchangeContext:
    """Shared by all exchanges: limits, routes, servers, counters and the recorder."""

    def __init__(
        self,
        *,
        limits: GatewayLimits,
        policy: ServingPolicy,
        traffic: TrafficRouter,
        upstreams: Upstreams,
        recorder: EpisodeRecorder,
        counters: GatewayCounters,
        fallback: FallbackConfig | None = None,
        tracer: ExchangeTracer | None = None,
    ) -> None:
        self._tracer = tracer
        self.limits, self.policy = limits, policy
        self.traffic, self.recorder, self.counters = traffic, recorder, counters
        self._upstreams = upstreams
        self._external_fallback = (
            RouteTarget(_external_model(fallback), candidate=False) if fallback else None
        )
        self.in_flight: set[ChatExchange] = set()

    @staticmethod
    def now() -> float:
        return monotonic()

    def upstream_for(self, model: Model) -> Upstream:
        return self._upstreams.for_model(model)

    def fallback_for(self, target: RouteTarget, switch: str) -> RouteTarget | None:
        """Who answers when this one fails."""
        table = self.traffic.table
        return table.fallback_for(target, switch) if table else None

    def external_fallback(self) -> RouteTarget | None:
        """Who answers while the models' own server is away."""
        return self._external_fallback

    def count_fault(self, model: Model, fault: Fault) -> None:
        self.counters.count_fault(model.model_id, fault.info.code)

    def finish(self, exchange: ChatExchange, outcome: str) -> None:
        """Count the exchange, and record it."""
        self.in_flight.discard(exchange)
        exchange.episode.in_flight -= 1
        if self._tracer is not None:
            self._tracer.on_finished(exchange, outcome)
        if not exchange.recorded:
            return
        latency_ms = (monotonic() - exchange.started_at) * 1000
        generated = outcome == "answered" or (outcome == "cancelled" and exchange.generated)
        gave_up = outcome == "cancelled" and gave_up_waiting(
            generated=generated, silent_seconds=exchange.silent_seconds
        )
        self._count(exchange, outcome, latency_ms, gave_up=gave_up)
        self._note_faults(exchange, latency_ms)
        if generated:
            self._record(exchange, latency_ms, cancelled=outcome == "cancelled")
        if outcome not in {"answered", "refused"}:
            self.recorder.process_inbox()  # what was answered before comes before this
            broken = outcome != "cancelled"
            exchange.episode.fail(bytes(exchange.chat.messages), broken=broken, cancelled=gave_up)
            if broken and exchange.fault is not Fault.BUSY:
                body = exchange.shaped.chat_body
                unanswered = UnansweredRequest(body, exchange.started_at, latency_ms)
                self.recorder.add_unanswered(exchange.episode, unanswered)

    def _count(
        self, exchange: ChatExchange, outcome: str, latency_ms: float, *, gave_up: bool
    ) -> None:
        """A client that gave up waiting says nothing of a model, unless that one had failed before."""
        episode = exchange.episode
        judged = exchange.fault is not None or not gave_up
        evidence = judged and self._counts_as_evidence(exchange)
        if evidence:
            episode.errored |= exchange.fault is not None
            episode.succeeded |= exchange.fault is None
        self.counters.count_request(
            episode.rollout,
            exchange.first_target.model.model_id,
            outcome,
            latency_ms,
            error=exchange.fault is not None,
            fallback=exchange.fell_back,
            evidence=evidence,
            judged=judged,
        )

    def _record(self, exchange: ChatExchange, latency_ms: float, *, cancelled: bool) -> None:
        """Keep what the model said, as far as it came."""
        episode, chat = exchange.episode, exchange.chat
        if not exchange.has_full_copy:
            episode.has_gap = True
            return
        if episode.ambiguous and not cancelled:
            self._pin_by_first_answer(exchange)
        self.recorder.add_exchange(
            episode,
            ExchangeRecord(
                exchange.started_at,
                latency_ms,
                exchange.shaped.chat_body,
                bytes(chat.messages),
                exchange.pieces,
                chat.stream is True,
                exchange.target.model,
                exchange.inference_id,
                _first_token_ms(exchange),
                cancelled,
                exchange.answer_shape,
            ),
        )

    @staticmethod
    def _note_faults(exchange: ChatExchange, latency_ms: float) -> None:
        """Who did not answer it, even if another one did."""
        size = len(bytes(exchange.chat.messages)) if exchange.faults else 0
        for model_id, kind, status in exchange.faults:
            exchange.episode.note_fault(
                FaultRecord(model_id, kind, exchange.started_at, latency_ms, size, status)
            )

    def _pin_by_first_answer(self, exchange: ChatExchange) -> None:
        """Conversations that open alike are known elsewhere by their first answers."""
        episode, chat = exchange.episode, exchange.chat
        answer = read_shaped_answer(
            list(exchange.pieces), stream=chat.stream is True, shape=exchange.answer_shape
        )
        if answer is not None and episode.identity is not None:
            known = hashes_after_answer(chat.messages, answer.content)
            pins = tuple(
                transcript_pin(episode.principal, episode.identity, each) for each in known
            )
            self.traffic.pin_by_answer(episode, pins)

    def _counts_as_evidence(self, exchange: ChatExchange) -> bool:
        episode, first_model = exchange.episode, exchange.first_target.model.model_id
        if (
            episode.switch
            or episode.requested_by_name
            or episode.withdrawn
            or episode.first_model_id != first_model
            or not episode.rollout
        ):
            return False
        if episode.practice:
            return False
        if exchange.fault is None and (episode.succeeded or episode.errored):
            return False  # once: one client would else hide what fails for all others
        if exchange.fault is not None and not _error_counts(episode, exchange.fault):
            return False
        table = self.traffic.table
        if table is None:  # the base was wanted and is gone since then
            return False
        shares_server = table.shares_baseline_server(exchange.first_target.model)
        return is_model_evidence(exchange.fault, on_baseline_server=shares_server)


def _first_token_ms(exchange: ChatExchange) -> float:
    at = exchange.first_token_at
    return (at - exchange.started_at) * 1000 if at else -1.0


def _error_counts(episode: OpenEpisode, fault: Fault) -> bool:
    """May an error of this episode count against its model?

    Once: one client would else fail a model as often as it likes to ask. And what a request brings about by
    itself counts, from a key that is not trusted, only as long as its client does not know who answers.
    """
    if episode.errored:
        return False
    blind = episode.inferences <= 1 and not episode.by_user
    return blind or fault not in CAUSED_BY_REQUEST or sender_of(episode.principal).many


def _external_model(config: FallbackConfig) -> Model:
    """A model that is none of ours: its answers are not evidence about one of ours."""
    return Model(f"fallback:{config.model}", config.url, config.model, config.timeout_seconds)
