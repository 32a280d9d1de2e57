"""How do messages come and go? One connection that survives the server's restarts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

import msgspec
import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, PubAck
from nats.js.errors import APIError, NotFoundError, ServiceUnavailableError

from upswing.contracts.topics import STREAMS
from upswing.errors import Misuse, Reason, Rejected, Transient
from upswing.infra.nats.streams import ensure_streams
from upswing.records import OutboxEntry, Receipt, StreamMessage

log = logging.getLogger(__name__)
ACK_WAIT_SECONDS = 30.0
MAX_ACK_PENDING = 2000
PULL_SECONDS = 10.0
"""How long a request for messages stands before it is made anew."""
CONNECT_SECONDS = 5.0
"""For the first connection; one that was lost later is sought for ever."""
PING_SECONDS = 5.0
"""Between two questions whether the server is still there. After three without an answer the connection is
made anew: a line that fell silent looks like one on which nothing is said."""
_PINGS = 2
_HEADERS = 1024
"""Bytes for the headers of a message."""
_AWAY = (NatsError, TimeoutError, OSError, ServiceUnavailableError)


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message in hand; until it is acknowledged, it comes again."""

    message: StreamMessage
    _raw: Msg

    async def ack(self) -> None:
        """Fire and forget: a lost ack means one more delivery, which changes nothing."""
        await self._raw.ack()

    async def redeliver_later(self, seconds: float) -> None:
        await self._raw.nak(delay=seconds)


class Pull:
    """A durable pull consumer, with one request standing at the server at all times.

    A message is handed over as soon as it arrives. (nats-py's own `fetch` waits for a full batch
    or its end when an earlier request of its own lapsed late; a lone message then waits too.)
    """

    def __init__(self, bus: Bus, stream: str, subject: str, durable: str) -> None:
        self._bus = bus
        self._stream = stream
        self._subject = subject
        self._durable = durable
        self._inbox: Subscription | None = None
        self._owed = 0
        """Messages that the standing request may still bring."""
        self._lapses = 0.0
        self._reconnects = 0

    async def last_seq(self) -> int:
        """The newest message of the stream."""
        try:
            return int((await self._bus.js.stream_info(self._stream)).state.last_seq)
        except (*_AWAY, NotFoundError) as error:
            raise Transient(f"The bus cannot be asked just now: {error!r}.") from error

    async def fetch(self, limit: int, wait_seconds: float) -> list[Delivery]:
        """What has arrived, `limit` at a time; none after `wait_seconds`."""
        try:
            inbox = await self._pending_subscription(limit)
            messages = [await inbox.next_msg(timeout=wait_seconds)]
            while len(messages) < limit and inbox.pending_msgs:
                messages.append(await inbox.next_msg(timeout=1))
        except TimeoutError:
            return []
        except (*_AWAY, NotFoundError) as error:
            self._inbox = None
            raise Transient(f"The bus cannot be read just now: {error!r}.") from error
        return [
            Delivery(_stream_message(self._stream, message), message)
            for message in messages
            if self._is_work(message)
        ]

    def _is_work(self, message: Msg) -> bool:
        """A message without data and with a status says that the request has lapsed."""
        if message.headers and "Status" in message.headers and not message.data:
            self._owed = 0
            return False
        self._owed -= 1
        return True

    async def _pending_subscription(self, limit: int) -> Subscription:
        """The inbox, with a request behind it."""
        client = self._bus.client
        if self._inbox is None:
            await self._ensure_consumer()
            self._inbox = await client.subscribe(client.new_inbox())
            self._owed = 0
        now = asyncio.get_running_loop().time()
        lost = client.stats["reconnects"] != self._reconnects
        if self._owed <= 0 or now > self._lapses or lost:
            self._reconnects = client.stats["reconnects"]
            request = {"batch": limit, "expires": int(PULL_SECONDS * 1e9)}
            subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._durable}"
            await client.publish(subject, msgspec.json.encode(request), reply=self._inbox.subject)
            self._owed, self._lapses = limit, now + PULL_SECONDS + 1
        return self._inbox

    async def _ensure_consumer(self) -> None:
        await self._bus.js.add_consumer(
            self._stream,
            ConsumerConfig(
                name=self._durable,
                durable_name=self._durable,
                ack_policy=AckPolicy.EXPLICIT,
                ack_wait=self._bus.ack_wait_seconds,
                max_ack_pending=MAX_ACK_PENDING,
                filter_subject=self._subject,
            ),
        )


class Bus:
    """Our connection to a server or cluster."""

    def __init__(
        self, client: Client, js: JetStreamContext, ack_wait_seconds: float = ACK_WAIT_SECONDS
    ) -> None:
        """`ack_wait_seconds`: after which a message that nobody acknowledged is delivered again."""
        self.client = client
        self.js = js
        self.ack_wait_seconds = ack_wait_seconds

    @classmethod
    async def connect(
        cls,
        url: str,
        *,
        name: str = "upswing",
        ping_seconds: float = PING_SECONDS,
        ack_wait_seconds: float = ACK_WAIT_SECONDS,
    ) -> Self:
        """Connect, and go on trying for ever when the server goes away later."""
        user = urlsplit(url.split(",", maxsplit=1)[0]).username

        async def on_error(error: Exception) -> None:
            told = str(error) or type(error).__name__
            log.warning("bus: %s", told, extra={"action": "bus_error"})

        try:
            client = await asyncio.wait_for(
                nats.connect(
                    url,
                    name=name,
                    inbox_prefix=f"_INBOX_{user}".encode() if user else b"_INBOX",
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=0.1,
                    connect_timeout=CONNECT_SECONDS,
                    ping_interval=ping_seconds,
                    max_outstanding_pings=_PINGS,
                    error_cb=on_error,
                ),
                CONNECT_SECONDS,
            )
        except _AWAY as error:
            why = str(error) or "no answer in time"
            raise Transient(f"The bus at {redacted_url(url)} cannot be reached: {why}.") from None
        js = client.jetstream(timeout=5, publish_async_max_pending=4000)
        return cls(client, js, ack_wait_seconds)

    @property
    def connected(self) -> bool:
        return bool(self.client.is_connected)

    @property
    def server_id(self) -> str:
        """Of the server that answers now."""
        return str(self.client._server_info.get("server_id", ""))  # noqa: SLF001 - it has no other name

    @property
    def max_message_bytes(self) -> int:
        """Of a message, with room for its headers."""
        return int(self.client.max_payload) - 4096

    async def prepare(self) -> list[str]:
        """Make or repair the streams."""
        try:
            return await ensure_streams(self.js)
        except _AWAY as error:
            raise Transient(f"The bus has no working JetStream just now: {error!r}.") from error

    def pull(self, stream: str, subject: str, durable: str) -> Pull:
        return Pull(self, stream, subject, durable)

    async def publish(self, entries: Sequence[OutboxEntry]) -> list[Receipt]:
        """Publish in order; a receipt for each that the bus acknowledged."""
        if not entries or not self.connected:
            return []
        sent: list[tuple[int, asyncio.Future[PubAck]]] = []
        try:
            for entry in entries:
                headers = {"Nats-Msg-Id": entry.msg_id}
                future = await self.js.publish_async(
                    entry.subject, entry.payload, headers=headers, wait_stall=5
                )
                sent.append((entry.seq, future))
            await asyncio.wait([future for _, future in sent], timeout=10)
        except _AWAY as error:
            log.info("bus away while publishing: %r", error, extra={"action": "publish"})
        return [
            Receipt(seq, future.result().stream, future.result().seq)
            for seq, future in sent
            if future.done() and not future.cancelled() and future.exception() is None
        ]

    def check_message(self, entry: OutboxEntry) -> None:
        """`Rejected` for a message that no stream of ours takes, or that is too long for the bus."""
        subject, most = entry.subject, self.client.max_payload
        if not is_carried(subject):
            raise Rejected(Reason.SCHEMA, f"No stream carries {subject[:200]!r}.")
        if not entry.msg_id.isprintable() or not entry.msg_id.isascii() or not entry.msg_id:
            raise Rejected(Reason.SCHEMA, "Its message id cannot stand in a header.")
        if most and len(entry.payload) + _HEADERS > most:
            message = f"It has {len(entry.payload)} bytes; the bus carries {most}."
            raise Rejected(Reason.TOO_LARGE, message)

    async def send_empty_message(self, subject: str) -> None:
        """A core message without a body; nobody waits for it."""
        if self.connected:
            await self.client.publish(subject)

    async def first_seq(self, stream: str) -> int:
        """The oldest message that the stream still holds."""
        try:
            return int((await self.js.stream_info(stream)).state.first_seq)
        except _AWAY as error:
            raise Transient(f"The bus cannot be asked just now: {error!r}.") from error

    async def held_range(self, stream: str) -> tuple[int, int]:
        """The oldest and the newest message of a stream, by number; none when the second is less."""
        try:
            state = (await self.js.stream_info(stream)).state
        except NotFoundError:
            raise Misuse(f"The bus has no stream {stream}: name one that is there.") from None
        except ValueError:
            raise Misuse(f"{stream!r} cannot be the name of a stream.") from None
        except _AWAY as error:
            raise Transient(f"The bus cannot be asked just now: {error!r}.") from error
        return int(state.first_seq), int(state.last_seq)

    async def messages(self, stream: str, first: int, last: int) -> AsyncIterator[bytes]:
        """What these messages say, one after the other; nobody else misses one for it."""
        async for _, body in self.messages_with_subjects(stream, first, last):
            yield body

    async def messages_with_subjects(
        self, stream: str, first: int, last: int
    ) -> AsyncIterator[tuple[str, bytes]]:
        """The same, each with its subject.

        Each is asked for by its number, because a further consumer would take them away from a
        stream that is a queue.
        """
        seq = first
        while seq <= last:
            try:
                message = await self.js.get_msg(stream, seq=seq, subject=">", next=True)
            except NotFoundError:
                return
            except _AWAY as error:
                raise Transient(f"The bus cannot be read just now: {error!r}.") from error
            seq = int(message.seq or last) + 1
            if seq <= last + 1:
                yield message.subject or "", message.data or b""

    async def erase_messages(self, stream: str, seqs: Sequence[int]) -> None:
        """Overwrite messages in the stream's files. One that is gone already is fine."""
        for seq in seqs:
            try:
                await self.js.delete_msg(stream, seq)
            except NotFoundError:
                continue
            except APIError as error:
                if error.err_code not in {10057, 10037, 10049}:  # deleted, gone, or out of range
                    raise Transient(
                        f"Message {seq} of {stream} could not be erased: {error}."
                    ) from error
            except _AWAY as error:
                raise Transient(
                    f"Message {seq} of {stream} could not be erased just now."
                ) from error

    async def close(self) -> None:
        await self.client.close()


def is_carried(subject: str) -> bool:
    """Whether a stream of ours takes messages on this subject.

    >>> is_carried("agent.rl.trajectory.v1"), is_carried("agent.rl.dead.reward"), is_carried("agent rl")
    (True, True, False)
    """
    parts = subject.split(".")
    plain = all(part and part.isprintable() and not set(part) & set(" *>") for part in parts)
    return plain and any(
        _matches_subject_pattern(parts, pattern.split("."))
        for stream in STREAMS
        for pattern in stream.subjects
    )


def _matches_subject_pattern(parts: list[str], pattern: list[str]) -> bool:
    if pattern[-1] == ">":
        return len(parts) >= len(pattern) and _matches_subject_pattern(
            parts[: len(pattern) - 1], pattern[:-1]
        )
    return len(parts) == len(pattern) and all(
        want in {"*", part} for want, part in zip(pattern, parts, strict=True)
    )


def _stream_message(stream: str, message: Msg) -> StreamMessage:
    meta = message.metadata
    return StreamMessage(
        stream,
        message.subject,
        meta.sequence.stream,
        meta.num_delivered,
        message.data,
        message.headers or {},
    )


def redacted_url(url: str) -> str:
    """The address without its password."""
    return ",".join(
        f"{part.scheme}://{part.hostname}:{part.port or 4222}"
        for part in map(urlsplit, url.split(","))
    )
