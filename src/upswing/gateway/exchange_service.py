"""One request of a client: who is asked, what goes back, and what if that fails?

    client ─▶ begin ─▶ server ─▶ checked ─▶ client          (whole answers)
                          └────▶ event by event ─▶ client   (streams)
                 ◀── fall back ── a fault before anything was sent

There is no task and no timer per request: the connections call, and the gateway looks for overdue
exchanges a few times a second.
"""

from __future__ import annotations

from typing import Protocol

from upswing.gateway.allowance import Allowance
from upswing.gateway.asked import Asked, forwarded
from upswing.gateway.backend_service import Connection
from upswing.gateway.book import Episode
from upswing.gateway.faults import CLIENTS_OWN, Fault, Remedy, remedy
from upswing.gateway.limits import Limits
from upswing.gateway.looks import look_at, passed_on, told_by
from upswing.gateway.outlet_service import EVENTS, WHOLE, Client, Outlet
from upswing.gateway.plan import Model
from upswing.gateway.route import Choice
from upswing.gateway.sse import EventCheck, Trouble
from upswing.gateway.ways_service import Way

_LONGEST_COPY = 16 * 1024 * 1024
"""Of an answer, for the recorder; a longer one is not recorded."""


class House(Protocol):
    """What an exchange needs of the gateway."""

    limits: Limits
    allowance: Allowance

    def now(self) -> float: ...
    def way(self, model: Model) -> Way: ...
    def instead_of(self, choice: Choice, switch: str) -> Choice | None: ...
    def elsewhere(self) -> Choice | None: ...
    def faulted(self, model: Model, fault: Fault) -> None: ...
    def settled(self, exchange: Exchange, outcome: str) -> None: ...


class Exchange:
    """A request under way."""

    __slots__ = (
        "_check", "_connection", "_doubt", "_flows", "_headers", "_house", "_out", "_paused",
        "_size", "_status", "_stream", "_tried_again", "asked", "begun", "body", "choice", "chosen",
        "copied", "deadline", "episode", "fault", "fell_back", "inference_id", "over", "pieces",
    )  # fmt: skip

    def __init__(
        self, house: House, client: Client, body: bytes, asked: Asked, episode: Episode,
        choice: Choice, *, begun: float, keep: bool, chunked: bool,
    ) -> None:  # fmt: skip
        self._house = house
        self.body, self.asked, self.episode, self.begun = body, asked, episode, begun
        self.choice = self.chosen = choice
        self.inference_id = f"{episode.trajectory_id}.{episode.inferences}"
        self._out = Outlet(
            client, episode.episode_id, self.inference_id, keep=keep, chunked=chunked
        )
        self._stream = asked.stream is True
        self._tried_again = self._doubt = self._flows = self._paused = False
        self._connection: Connection | None = None
        self.fault: Fault | None = None
        """Of the model that was chosen, even if another one answered."""
        self.fell_back = self.over = False
        self.copied = True
        """`pieces` are the whole answer."""
        self.deadline = 0.0
        self._clear()

    def _clear(self) -> None:
        self._check: EventCheck | None = None
        self._headers: dict[bytes, bytes] = {}
        self.pieces: list[bytes] = []
        self._size = self._status = 0

    def begin(self, *, fresh: bool = False) -> None:
        """Ask the model that was chosen."""
        model = self.choice.model
        body = forwarded(
            self.body, self.asked, model.name, model.extra, self.episode.temperature,
            strict=model.strict,
        )  # fmt: skip
        way = self._house.way(model)
        limits = self._house.limits
        self.deadline = self._house.now() + limits.connect_seconds + model.timeout_seconds + 1
        way.backend.ask(self, b"%s%d\r\n\r\n%s" % (way.head, len(body), body), fresh=fresh)

    # --- the server's side -----------------------------------------------------------------------

    def sent(self, connection: Connection) -> None:
        self._connection = connection
        self.deadline = self._house.now() + self.choice.model.timeout_seconds

    def answered(self, status: int, headers: dict[bytes, bytes]) -> None:
        self._status, self._headers = status, headers
        if self._stream and status == 200:
            kind = headers.get(b"content-type", b"")
            if kind.startswith(b"text/event-stream"):
                self._check = EventCheck()

    def received(self, pieces: list[bytes], *, done: bool) -> None:
        if self.over:
            return
        if done:
            self._connection = None
        elif not self._paused:
            self.deadline = self._house.now() + self._house.limits.stall_seconds
        if self._check is not None:
            self._event(self._check, b"".join(pieces), done)
        elif self._flows:
            self._flow(pieces, done)
        else:
            self._gather(pieces, done)

    def broke(self, fault: Fault) -> None:
        self._connection = None
        if not self.over:
            self._fail(fault)

    # --- whole answers ---------------------------------------------------------------------------

    def _gather(self, pieces: list[bytes], done: bool) -> None:
        self.pieces = self.pieces + pieces if self.pieces else pieces
        if done:
            self._whole(b"".join(self.pieces))
            return
        self._size += sum(map(len, pieces))
        if self._size > self._house.limits.held_bytes:
            if self._status == 200 and not self._stream:
                self._flow_on()
            else:
                self._fail(Fault.TOO_LARGE)

    def _whole(self, body: bytes) -> None:
        status = self._status
        if 200 <= status < 300:
            fault = look_at(body)
            if fault is None and self._stream:
                fault = Fault.GARBAGE  # a stream was asked for
            if fault is None:
                self._out.whole(status, body, self.choice.model.model_id)
                self._close("answered")
            else:
                self._fail(fault, told_by(body))
        elif self._instead() is not None and self._house.allowance.fallback:
            self._doubt = status in CLIENTS_OWN
            self._fail(Fault.STATUS)
        elif status < 400:
            self._fail(Fault.GARBAGE)
        else:
            self._pass_error(status, body)

    def _pass_error(self, status: int, body: bytes) -> None:
        """A refusal by the last one to be asked goes to the client as it is."""
        own = status in CLIENTS_OWN
        if not own:
            self._house.faulted(self.choice.model, Fault.STATUS)
            self.fault = self.fault or Fault.STATUS
        elif self._doubt:  # both say that the request is wrong, so it is
            self.fault = None
        told, extra = passed_on(status, body, self._headers)
        self._out.refusal(status, told, self.choice.model.model_id, extra)
        self._close("refused" if own else "failed")

    # --- answers that go on as they come ---------------------------------------------------------

    def _event(self, check: EventCheck, data: bytes, done: bool) -> None:
        good = check.feed(data) if data else b""
        good += check.end() if done else b""
        if good:
            self._copy(good)
        whole = done and check.done and check.events > 0
        if check.trouble is None and (whole or not done):
            self._pass(good, EVENTS, ready=check.events > 0, last=whole)
            if whole:
                self._close("answered")
            return
        if self._out.started and good:
            self._out.send(good)
        if check.trouble is Trouble.ERROR:
            self._fail(Fault.ERROR_BODY)
        else:
            self._fail(Fault.CUT_SHORT if check.trouble is None else Fault.GARBAGE)

    def _pass(self, data: bytes, kind: bytes, *, ready: bool, last: bool) -> None:
        """On to the client; while there is nothing but comments, another model can still answer."""
        if self._out.started:
            if data or last:
                self._out.send(data, last=last)
        elif ready:
            held = b"".join(self.pieces)
            self._out.begin(kind, self.choice.model.model_id, held, last=last)
        elif self._size > self._house.limits.held_bytes:
            self._fail(Fault.TOO_LARGE)

    def _flow_on(self) -> None:
        """Too large to be held back: from here on it goes at the client's pace, unchecked."""
        self._flows = True
        self._pass(b"", WHOLE, ready=True, last=False)

    def _flow(self, pieces: list[bytes], done: bool) -> None:
        data = b"".join(pieces)
        self._copy(data)
        if self._size > self._house.limits.answer_bytes:
            self._fail(Fault.TOO_LARGE)
            return
        self._out.send(data, last=done)
        if done:
            self._close("answered")

    def _copy(self, data: bytes) -> None:
        self._size += len(data)
        if self.copied:
            self.pieces.append(data)
        if self._size > _LONGEST_COPY and self._out.started:
            self.copied = False
            self.pieces = []

    # --- when it goes wrong ----------------------------------------------------------------------

    def _fail(self, fault: Fault, told: str = "") -> None:
        self._leave()
        step = remedy(
            fault, started=self._out.started, tried_again=self._tried_again,
            candidate=(instead := self._instead()) is not None, fallback=self._house.allowance.fallback,
            elsewhere=self._house.elsewhere() not in (None, self.choice),
        )  # fmt: skip
        if step is not Remedy.AGAIN:
            self._house.faulted(self.choice.model, fault)
            self.fault = self.fault or fault
        match step:
            case Remedy.AGAIN:
                self._tried_again = True
                self._clear()
                self.begin(fresh=True)
            case Remedy.FALL_BACK:
                self._fall_back(instead or self.choice)
            case Remedy.ELSEWHERE:
                self._fall_back(self._house.elsewhere() or self.choice)
            case Remedy.TELL:
                self._out.fault(fault, told, self.choice.model.model_id)
                self._close("failed")
            case Remedy.CUT:
                self._cut(fault)

    def _fall_back(self, choice: Choice) -> None:
        self.fell_back = True
        self._tried_again = False
        self.choice = choice
        self._clear()
        self.begin()

    def _instead(self) -> Choice | None:
        """Who can answer in its place? It may have been the baseline when it was asked."""
        if self.fell_back and not self.choice.candidate:
            return None
        return self._house.instead_of(self.choice, self.episode.switch)

    def _cut(self, fault: Fault) -> None:
        """Part of the answer is with the client."""
        if self._check is not None:
            self._out.cut(fault)
            self._close("cut")
        else:
            self.over = True
            self._house.settled(self, "cut")
            self._out.abort()

    def late(self) -> None:
        """The deadline has passed."""
        if self._paused:  # it is the client that does not read on
            self._out.abort()
        elif self._connection is not None and self._connection.heard:
            self._fail(Fault.STALLED)
        else:
            self._fail(Fault.SLOW)

    def cancel(self) -> None:
        """The client is gone."""
        if not self.over:
            self.over = True
            self._leave()
            self._house.settled(self, "cancelled")

    def _leave(self) -> None:
        """Hang up on the server, so that it stops."""
        if self._connection is not None:
            self._connection.drop()
            self._connection = None
        elif not self._status:
            self._house.way(self.choice.model).backend.forget(self)

    # --- the client's pace -----------------------------------------------------------------------

    def pause(self) -> None:
        self._paused = True
        self.deadline = self._house.now() + self._house.limits.client_seconds
        if self._connection is not None:
            self._connection.transport.pause_reading()

    def resume(self) -> None:
        self._paused = False
        self.deadline = self._house.now() + self._house.limits.stall_seconds
        if self._connection is not None:
            self._connection.transport.resume_reading()

    def _close(self, outcome: str) -> None:
        self.over = True
        self._house.settled(self, outcome)
        self._out.close()
