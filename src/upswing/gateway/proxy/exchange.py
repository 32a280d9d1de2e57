"""One request of a client: who is asked, what goes back, and what if that fails?

    client ─▶ send_upstream ─▶ server ─▶ checked ─▶ client          (whole answers)
                          └────▶ event by event ─▶ client   (streams)
                 ◀── fall back ── a fault before anything was sent

There is no task and no timer per request: the connections call, and the gateway looks for overdue
exchanges a few times a second.
"""

from __future__ import annotations

import msgspec

from upswing.gateway.core.answer_check import (
    check_answer,
    error_message_in,
    stream_error_message,
    translate_error,
)
from upswing.gateway.core.answer_forms import AnswerForm, answer_form
from upswing.gateway.core.chat_request import ChatRequest
from upswing.gateway.core.episode_table import OpenEpisode
from upswing.gateway.core.fault_records import fault_kind
from upswing.gateway.core.faults import CLIENT_ERROR_STATUSES, Fault, Remedy, choose_remedy
from upswing.gateway.core.generated import says_something
from upswing.gateway.core.routing import RouteTarget
from upswing.gateway.core.shapes import ShapedRequest, UpstreamRequest, can_answer, upstream_request
from upswing.gateway.core.sse import SseChecker, StreamProblem
from upswing.gateway.proxy.connections import UpstreamConnection
from upswing.gateway.proxy.exchange_context import ExchangeContext
from upswing.gateway.proxy.response_writer import JSON_HEADERS, SSE_HEADERS, ResponseWriter
from upswing.infra.http1.connection import Connection as ClientConnection

_MAX_COPY_BYTES = 16 * 1024 * 1024
"""Of an answer, for the recorder; a longer one is not recorded. One that is to be translated whole has no more."""


class ChatExchange:
    """A request under way."""

    __slots__ = (
        "_blames_request",
        "_connection",
        "_context",
        "_form",
        "_headers",
        "_last_piece_at",
        "_passing_through",
        "_paused",
        "_received_bytes",
        "_retried",
        "_sse",
        "_status",
        "_stream",
        "_unsent",
        "_upstream_request",
        "_writer",
        "chat",
        "deadline",
        "episode",
        "fault",
        "faults",
        "fell_back",
        "finished",
        "first_target",
        "first_token_at",
        "has_full_copy",
        "inference_id",
        "pieces",
        "recorded",
        "shaped",
        "started_at",
        "target",
        "traceparent",
    )

    def __init__(
        self,
        context: ExchangeContext,
        client: ClientConnection,
        shaped: ShapedRequest,
        chat: ChatRequest,
        episode: OpenEpisode,
        target: RouteTarget,
        *,
        started_at: float,
        keep_alive: bool,
        chunked: bool,
        recorded: bool,
        traceparent: bytes = b"",
    ) -> None:
        """`recorded`: it is of the episode's record and of the evidence, if that counts."""
        self.traceparent = traceparent
        self._context = context
        self.shaped, self.chat, self.episode, self.started_at = shaped, chat, episode, started_at
        self.recorded = recorded
        self.target = self.first_target = target
        self.inference_id = f"{episode.trajectory_id}.{episode.inferences}"
        self._writer = ResponseWriter(
            client,
            shaped.shape,
            episode.episode_id,
            self.inference_id,
            keep_alive=keep_alive,
            chunked=chunked,
        )
        self._stream = chat.stream is True
        self._retried = self._blames_request = self._passing_through = self._paused = False
        self._connection: UpstreamConnection | None = None
        self.fault: Fault | None = None
        """Of the model that was chosen, even if another one answered."""
        self.faults: list[tuple[str, str, int]] = []
        """(model, what went wrong, status) of everybody who did not answer it."""
        self.fell_back = self.finished = False
        self.has_full_copy = True
        """`pieces` are the whole answer."""
        self.deadline = self._last_piece_at = 0.0
        self._upstream_request: UpstreamRequest
        self._form: AnswerForm
        self._clear()

    def _clear(self) -> None:
        self._sse: SseChecker | None = None
        self._headers: dict[bytes, bytes] = {}
        self.pieces: list[bytes] = []
        self._unsent: list[bytes] = []
        """What waits for the first event, in the client's form."""
        self._received_bytes = self._status = 0
        self.first_token_at = 0.0
        """When the first event of a stream came; 0: it came whole, or has not come."""

    def send_upstream(self, *, new_connection: bool = False) -> None:
        """Ask the model that was chosen."""
        model = self.target.model
        request = upstream_request(self.shaped, self.chat, model, self.episode.temperature)
        self._upstream_request = request
        self._form = answer_form(self.shaped, request, self.inference_id)
        upstream = self._context.upstream_for(model)
        limits = self._context.limits
        self.deadline = self._context.now() + limits.connect_seconds + model.timeout_seconds + 1
        head, body = upstream.head_for(request), request.body
        upstream.pool.send(
            self, b"%s%d\r\n\r\n%s" % (head, len(body), body), new_connection=new_connection
        )

    # --- the server's side -----------------------------------------------------------------------

    def on_sent(self, connection: UpstreamConnection) -> None:
        self._connection = connection
        self.deadline = self._context.now() + self.target.model.timeout_seconds

    def on_headers(self, status: int, headers: dict[bytes, bytes]) -> None:
        self._status, self._headers = status, headers
        if self._stream and status == 200:
            content_type = headers.get(b"content-type", b"")
            if content_type.startswith(b"text/event-stream"):
                self._sse = SseChecker(self._upstream_request.shape.last_events)

    def on_body(self, pieces: list[bytes], *, done: bool) -> None:
        if self.finished:
            return
        now = self._last_piece_at = self._context.now()
        if done:
            self._connection = None
        elif not self._paused:
            self.deadline = now + self._context.limits.stall_seconds
        if self._sse is not None:
            self._on_stream_data(self._sse, b"".join(pieces), done)
        elif self._passing_through:
            self._pass_through(pieces, done)
        else:
            self._collect_body(pieces, done)

    def on_fault(self, fault: Fault) -> None:
        self._connection = None
        if not self.finished:
            self._fail(fault)

    # --- whole answers ---------------------------------------------------------------------------

    def _collect_body(self, pieces: list[bytes], done: bool) -> None:
        self.pieces = self.pieces + pieces if self.pieces else pieces
        if done:
            self._on_whole_body(b"".join(self.pieces))
            return
        self._received_bytes += sum(map(len, pieces))
        held_bytes = self._context.limits.held_bytes
        if not self._form.streams_whole:
            held_bytes = max(held_bytes, _MAX_COPY_BYTES)
        if self._received_bytes > held_bytes:
            translated = self._upstream_request.shape is not self.shaped.shape
            if self._status == 200 and not self._stream and not translated:
                self._start_pass_through()
            else:
                self._fail(Fault.TOO_LARGE)

    def _on_whole_body(self, body: bytes) -> None:
        status = self._status
        if 200 <= status < 300:
            fault = check_answer(body, self._upstream_request.shape.answer_field)
            if fault is None and self._stream:
                fault = Fault.GARBAGE  # a stream was asked for
            answer = self._in_form(body) if fault is None else None
            if answer is not None:
                self._writer.write_whole(status, answer, self.target.model.model_id)
                self._finish("answered")
            else:
                self._fail(fault or Fault.GARBAGE, error_message_in(body) if fault else "")
        elif self._fallback_target() is not None and self._context.policy.fallback:
            self._blames_request = status in CLIENT_ERROR_STATUSES
            self._fail(Fault.STATUS, error_message_in(body))
        elif status < 400:
            self._fail(Fault.GARBAGE)
        else:
            self._forward_error(status, body)

    def _in_form(self, body: bytes) -> bytes | None:
        """A whole answer in the client's form; None: it is none."""
        try:
            return self._form.whole(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None

    def _forward_error(self, status: int, body: bytes) -> None:
        """A refusal by the last one to be asked goes to the client as it is."""
        client_error = status in CLIENT_ERROR_STATUSES
        if not client_error:
            self._context.count_fault(self.target.model, Fault.STATUS)
            self.fault = self.fault or Fault.STATUS
            self._note_fault(Fault.STATUS, error_message_in(body))
        elif self._blames_request:  # both say that the request is wrong, so it is
            self.fault = None
            self.faults = []
        asked = self._upstream_request.shape
        translated, extra_headers = translate_error(
            status, body, self._headers, self.shaped.shape, asked
        )
        self._writer.write_error(status, translated, self.target.model.model_id, extra_headers)
        self._finish("refused" if client_error else "failed")

    # --- answers that go on as they come ---------------------------------------------------------

    def _on_stream_data(self, sse: SseChecker, data: bytes, done: bool) -> None:
        valid_events = sse.feed(data) if data else b""
        valid_events += sse.finish() if done else b""
        events = b""
        if valid_events:
            self._copy(valid_events)
            self.first_token_at = self.first_token_at or self._context.now()
            try:
                events = self._form.events(valid_events)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                sse.problem = sse.problem or StreamProblem.GARBAGE
        whole = done and sse.done and sse.events > 0
        if sse.problem is None and (whole or not done):
            self._forward(events, SSE_HEADERS, ready=sse.events > 0, last=whole)
            if whole:
                self._finish("answered")
            return
        if self._writer.started and events:
            self._writer.write_piece(events)
        if sse.problem is StreamProblem.ERROR:
            self._fail(Fault.ERROR_BODY, stream_error_message(data))
        else:
            self._fail(Fault.CUT_SHORT if sse.problem is None else Fault.GARBAGE)

    def _forward(self, data: bytes, content_headers: bytes, *, ready: bool, last: bool) -> None:
        """On to the client; while there is nothing but comments, another model can still answer."""
        if self._writer.started:
            if data or last:
                self._writer.write_piece(data, last=last)
            return
        self._unsent.append(data)
        if ready:
            held, self._unsent = b"".join(self._unsent), []
            self._writer.start_stream(content_headers, self.target.model.model_id, held, last=last)
        elif self._received_bytes > self._context.limits.held_bytes:
            self._fail(Fault.TOO_LARGE)

    def _start_pass_through(self) -> None:
        """Too large to be held back: from here on it goes at the client's pace, unchecked."""
        self._passing_through = True
        self._forward(b"".join(self.pieces), JSON_HEADERS, ready=True, last=False)

    def _pass_through(self, pieces: list[bytes], done: bool) -> None:
        data = b"".join(pieces)
        self._copy(data)
        if self._received_bytes > self._context.limits.answer_bytes:
            self._fail(Fault.TOO_LARGE)
            return
        self._writer.write_piece(data, last=done)
        if done:
            self._finish("answered")

    def _copy(self, data: bytes) -> None:
        self._received_bytes += len(data)
        if self.has_full_copy:
            self.pieces.append(data)
        if self._received_bytes > _MAX_COPY_BYTES and self._writer.started:
            self.has_full_copy = False
            self.pieces = []

    # --- when it goes wrong ----------------------------------------------------------------------

    def _fail(self, fault: Fault, message: str = "") -> None:
        self._abandon_upstream()
        remedy = choose_remedy(
            fault,
            started=self._writer.started,
            retried=self._retried,
            has_alternative=(alternative := self._fallback_target()) is not None,
            fallback_allowed=self._context.policy.fallback,
            has_external=self._external_target() is not None,
        )
        if remedy is not Remedy.RETRY:
            self._context.count_fault(self.target.model, fault)
            self.fault = self.fault or fault
            self._note_fault(fault, message)
        match remedy:
            case Remedy.RETRY:
                self._retried = True
                self._clear()
                self.send_upstream(new_connection=True)
            case Remedy.FALL_BACK:
                self._fall_back(alternative or self.target)
            case Remedy.EXTERNAL_FALLBACK:
                self._fall_back(self._external_target() or self.target)
            case Remedy.REPORT:
                self._writer.write_fault(fault, message, self.target.model.model_id)
                self._finish("failed")
            case Remedy.CUT_OFF:
                self._cut_off(fault)

    def _note_fault(self, fault: Fault, message: str) -> None:
        status = self._status if fault is Fault.STATUS else 0
        kind = fault_kind(fault, status, message)
        self.faults.append((self.target.model.model_id, kind, status))

    def _fall_back(self, target: RouteTarget) -> None:
        self.fell_back = True
        self._retried = False
        self.target = target
        self._clear()
        self.send_upstream()

    def _fallback_target(self) -> RouteTarget | None:
        """Who can answer in its place? It may have been the baseline when it was asked."""
        if self.fell_back and not self.target.candidate:
            return None
        target = self._context.fallback_for(self.target, self.episode.switch)
        return target if target and can_answer(target.model, self.shaped) else None

    def _external_target(self) -> RouteTarget | None:
        """Somebody else's server, where it can be asked this and has not been."""
        target = self._context.external_fallback()
        if target is None or target == self.target or not self.shaped.shape.conversational:
            return None
        return target if can_answer(target.model, self.shaped) else None

    def _cut_off(self, fault: Fault) -> None:
        """Part of the answer is with the client."""
        if self._sse is not None:
            info = fault.info
            self._writer.write_cut_off(self._form.fail(info.message, info.error_type, info.code))
            self._finish("cut")
        else:
            self.finished = True
            self._context.finish(self, "cut")
            self._writer.abort()

    def on_deadline(self) -> None:
        """The deadline has passed."""
        if self._paused:  # it is the client that does not read on
            self._writer.abort()
        elif self._connection is not None and self._connection.response_started:
            self._fail(Fault.STALLED)
        else:
            self._fail(Fault.SLOW)

    @property
    def answer_shape(self) -> str:
        """In which the server answered."""
        return self._upstream_request.shape.value

    @property
    def generated(self) -> bool:
        """Has the model written anything that is known by now?"""
        if self._sse is None:
            return False
        return not self.has_full_copy or says_something(self.pieces, self.answer_shape)

    @property
    def silent_seconds(self) -> float:
        """Since its server last said something; 0 while it is the client that does not read."""
        return 0.0 if self._paused else self._context.now() - self._last_piece_at

    def cancel(self) -> None:
        """The client is gone."""
        if not self.finished:
            self.finished = True
            self._abandon_upstream()
            self._context.finish(self, "cancelled")

    def _abandon_upstream(self) -> None:
        """Hang up on the server, so that it stops."""
        if self._connection is not None:
            self._connection.abandon()
            self._connection = None
        elif not self._status:
            self._context.upstream_for(self.target.model).pool.cancel_waiting(self)

    # --- the client's pace -----------------------------------------------------------------------

    def pause(self) -> None:
        self._paused = True
        self.deadline = self._context.now() + self._context.limits.client_seconds
        if self._connection is not None:
            self._connection.transport.pause_reading()

    def resume(self) -> None:
        self._paused = False
        self.deadline = self._context.now() + self._context.limits.stall_seconds
        if self._connection is not None:
            self._connection.transport.resume_reading()

    def _finish(self, outcome: str) -> None:
        self.finished = True
        self._context.finish(self, outcome)
        self._writer.finish()
