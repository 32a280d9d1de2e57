"""What has just happened? One stream of server-sent events for everybody who looks.

    store ──woken, or every 2 s──▶ one reading ──what changed──▶ a bounded queue for each reader ──▶ its socket

| event        | data                                                            | `Last-Event-ID` |
|--------------|-----------------------------------------------------------------|-----------------|
| `hello`      | the topics, whether it goes on where it was                     |                 |
| `counts`     | rows per table, trajectories of the last hour and day           | starts anew     |
| `decision`, `audit` | as in their lists                                        | goes on         |
| `rollout`, `job`, `model`, `validation`, `reward` | how it stands now, whenever that changes | starts anew |
| `alert`, `report` | what their part publishes                                  |                 |
| `lost`       | how many events this reader was too slow for                    |                 |

Nobody is waited for: whoever reads too slowly loses events, is told so, and reads the lists again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter, deque
from collections.abc import AsyncGenerator, Iterable
from typing import Any

import msgspec

from upswing.api.live import LiveEvent, LiveReader, LiveState, changed_events, first_events
from upswing.api.router import Problem, Request, Response, Route, StreamingAnswer
from upswing.api.scopes import READER
from upswing.errors import Reason, Rejected, Transient

log = logging.getLogger(__name__)
TOPICS = (
    "counts",
    "decision",
    "rollout",
    "job",
    "model",
    "validation",
    "reward",
    "audit",
    "alert",
    "report",
)
SSE = "text/event-stream"
MOST_STREAMS, MOST_OF_KEY = 32, 4
"""At once, of all and of one key: a page's process needs one."""
MOST_WAITING = 256
"""Events that wait for a reader."""
MOST_BYTES = 64 * 1024
"""Of one event; a larger one is told by its name, and the lists have it."""
HEARTBEAT_SECONDS = 15.0
"""Between two signs of life, so that nobody on the way takes a quiet stream for a dead one."""
ROUND_SECONDS, IDLE_SECONDS = 1.0, 2.0
"""Between two readings at least, and at most while somebody looks."""
_HEADERS = ((b"cache-control", b"no-store"), (b"x-accel-buffering", b"no"))


class Subscription:
    """One reader, and what waits for it."""

    def __init__(self, topics: frozenset[str], key_id: str) -> None:
        self.topics, self.key_id = topics, key_id
        self._waiting: deque[bytes] = deque()
        self._lost = 0
        self._some = asyncio.Event()

    def offer(self, frame: bytes) -> None:
        """For the reader, if there is room; it never waits."""
        if len(self._waiting) >= MOST_WAITING:
            self._lost += len(self._waiting) + 1
            self._waiting.clear()
        else:
            self._waiting.append(frame)
        self._some.set()

    async def take(self, seconds: float) -> bytes:
        """What waits, or a sign of life after so many seconds without anything."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._some.wait()
        self._some.clear()
        frames = list(self._waiting)
        self._waiting.clear()
        if self._lost:
            frames.insert(0, encode_frame("lost", {"dropped": self._lost}))
            self._lost = 0
        return b"".join(frames) or b": ping\n\n"


class EventHub:
    """Reads what happens, and tells everybody who looks."""

    def __init__(
        self,
        reader: LiveReader,
        *,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
        round_seconds: float = ROUND_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._reader, self._heartbeat = reader, heartbeat_seconds
        self._round, self._idle = round_seconds, idle_seconds
        self._readers: set[Subscription] = set()
        self._state: LiveState | None = None
        self._reading = asyncio.Lock()
        self._woken, self._looked_at = asyncio.Event(), asyncio.Event()

    def wake(self) -> None:
        """Something was written."""
        self._woken.set()

    def publish(self, kind: str, data: Any) -> None:
        """Tell something that no table of ours shows, such as an alert; for the loop's own thread."""
        self._broadcast([LiveEvent(kind, data)])

    async def run(self) -> None:
        """For ever: while somebody looks, read what has changed and tell it."""
        while True:
            await self._looked_at.wait()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._idle):
                    await self._woken.wait()
            self._woken.clear()
            try:
                await self._read_changes()
            except Transient as error:
                log.info("%s", error, extra={"action": "events"})
            await asyncio.sleep(self._round)

    async def _read_changes(self) -> None:
        async with self._reading:
            if self._state is None or not self._readers:
                return
            before, self._state = self._state, await self._reader.read(self._state)
            self._broadcast(changed_events(before, self._state))

    async def subscribe(
        self, topics: frozenset[str], key_id: str, last: str
    ) -> tuple[Subscription, list[bytes]]:
        """A new reader, and what it is told first; `Transient` when there are too many."""
        self._refuse_too_many(key_id)
        found = Subscription(topics, key_id)
        self._readers.add(found)
        try:
            async with self._reading:
                if self._state is None or len(self._readers) == 1:
                    self._state = await self._reader.read()
                missed, resumed = await self._missed(last)
                hello = {"topics": sorted(topics), "heartbeat_seconds": self._heartbeat}
                events = [
                    LiveEvent("hello", {**hello, "resumed": resumed}),
                    *first_events(self._state),
                    *missed,
                ]
        except BaseException:
            self.unsubscribe(found)
            raise
        self._looked_at.set()
        wanted = {*topics, "hello"}
        return found, [self._frame(each) for each in events if each.kind in wanted]

    def unsubscribe(self, reader: Subscription) -> None:
        self._readers.discard(reader)
        if not self._readers:
            self._looked_at.clear()
            self._state = None

    @property
    def streams(self) -> int:
        """How many there are."""
        return len(self._readers)

    def _refuse_too_many(self, key_id: str) -> None:
        of_key = Counter(each.key_id for each in self._readers)[key_id]
        if len(self._readers) >= MOST_STREAMS or of_key >= MOST_OF_KEY:
            raise Transient(
                f"There are {MOST_STREAMS} streams, or {MOST_OF_KEY} of this key, which is all there can be: "
                "close one, or try again later."
            )

    async def _missed(self, last: str) -> tuple[list[LiveEvent], bool]:
        """What was decided and done since the event of this id; whether the id is one."""
        decision, _, audit = last.partition(".")
        if not (decision.isdecimal() and audit.isdecimal() and len(last) <= 40):
            return [], False
        decisions = await self._reader.decisions_after(int(decision))
        entries = await self._reader.audit_after(int(audit))
        return [
            *(LiveEvent("decision", each, decision_seq=each.seq) for each in decisions),
            *(LiveEvent("audit", each, audit_seq=each.seq) for each in entries),
        ], True

    def _broadcast(self, events: Iterable[LiveEvent]) -> None:
        for event in events:
            interested = [each for each in self._readers if event.kind in each.topics]
            if interested:
                frame = self._frame(event)
                for each in interested:
                    each.offer(frame)

    def _frame(self, event: LiveEvent) -> bytes:
        if not (event.decision_seq or event.audit_seq):
            return encode_frame(event.kind, event.data)
        state = self._state or LiveState()
        decision = event.decision_seq or state.decision_seq
        return encode_frame(
            event.kind, event.data, f"{decision}.{event.audit_seq or state.audit_seq}"
        )

    async def stream(self, reader: Subscription, first: list[bytes]) -> AsyncGenerator[bytes, None]:
        """What goes to one reader's socket."""
        yield b"".join(first)
        while True:
            yield await reader.take(self._heartbeat)


def encode_frame(kind: str, data: Any, event_id: str | None = None) -> bytes:
    r"""An event as it goes over the wire.

    >>> encode_frame("counts", {"a": 1}, "7.0")
    b'id: 7.0\nevent: counts\ndata: {"a":1}\n\n'
    """
    body = msgspec.json.encode(data)
    if len(body) > MOST_BYTES:
        body = msgspec.json.encode({"too_large": len(body)})
    name = b"id: %s\n" % event_id.encode() if event_id else b""
    return b"%sevent: %s\ndata: %s\n\n" % (name, kind.encode(), body)


class EventRoutes:
    """The handler."""

    def __init__(self, hub: EventHub) -> None:
        self._hub = hub

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET",
                "/v1/events",
                "What happens, as server-sent events, for as long as it is read.",
                self.events,
                READER,
                query={
                    "topics": {"type": "string", "maxLength": 200, "examples": ["job,decision"]}
                },
                answers={
                    200: ("The stream.", SSE),
                    422: ("A topic is none.", Problem),
                    503: ("There are too many streams; try again.", Problem),
                },
                streams=True,
            )
        ]

    async def events(self, request: Request) -> Response | StreamingAnswer:
        if unknown := sorted(request.query.keys() - {"topics"}):
            raise Rejected(
                Reason.SCHEMA, f"There is no parameter `{unknown[0][:50]}` here; known: topics."
            )
        topics = frozenset(filter(None, request.query.get("topics", "").split(","))) or frozenset(
            TOPICS
        )
        if wrong := sorted(topics - set(TOPICS)):
            raise Rejected(
                Reason.SCHEMA, f"There is no topic `{wrong[0][:50]}`; known: {', '.join(TOPICS)}."
            )
        key = request.principal.key_id if request.principal else ""
        reader, first = await self._hub.subscribe(topics, key, request.last_event_id)
        pieces = self._hub.stream(reader, first)
        return StreamingAnswer(pieces, lambda: self._hub.unsubscribe(reader), SSE, _HEADERS)
