"""How does a program listen to the bus, and speak on it? Blocking calls over one connection in a thread of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import TimeoutError as TookTooLong
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import msgspec

from upswing.contracts import Feedback, Trajectory, decode
from upswing.contracts.topics import ROLES, TOPICS, Topic, consumer_name
from upswing.errors import Misuse, Transient
from upswing.infra.instance import find_running_instance
from upswing.infra.nats.bus import Bus, Delivery, Pull
from upswing.records import OutboxEntry
from upswing.redact.messages import redact_feedback, redact_trajectory
from upswing.rl_trainer import arguments
from upswing.rl_trainer.messages import redactor
from upswing.sdk.target import data_folder

T = TypeVar("T")
_SECONDS = 15.0
"""For one answer of the bus."""


def publish_nats(
    subject: str,
    payload: Mapping[str, Any],
    schema_validate: bool = True,
    *,
    url: str | None = None,
) -> int:
    """Publish a message; its number in the stream, once it is durable.

    Trajectories and feedback are redacted first. Without `schema_validate` a message goes out as it is given, and
    whoever reads it decides; the loop keeps what it cannot read as a dead letter.
    """
    topic = _topic(arguments.text(subject, "subject"))
    payload = arguments.message(payload, "payload")
    raw = _checked(topic, payload) if schema_validate else msgspec.json.encode(payload)
    name = next((str(payload[key]) for key in payload if key.endswith("_id")), "")
    with _BusThread(_bus_url(url)) as bus:
        entry = OutboxEntry(1, subject, f"{subject}-{name}" if name else os.urandom(8).hex(), raw)
        receipts = bus.run(bus.bus.publish([entry]))
    if not receipts:
        raise Transient("The bus did not take the message: ask again.")
    return receipts[0].stream_seq


def subscribe_nats(
    subject: str,
    queue_group: str = "rl-trainers",
    *,
    url: str | None = None,
    idle_seconds: float | None = None,
) -> NatsSubscription:
    """Messages of a subject, one by one, each to one member of the group.

    A message is acknowledged when the next one is asked for: what a program dies over comes again. With `idle_seconds` the
    iteration ends when nothing came for so long.

        with subscribe_nats("agent.rl.training.status.v1") as messages:
            for message in messages:
                print(message["status"])
    """
    topic = _topic(arguments.text(subject, "subject"))
    arguments.text(queue_group, "queue_group")
    if idle_seconds is not None:
        arguments.seconds(idle_seconds, "idle_seconds")
    if topic.stream is None:
        raise Misuse(f"{subject} is not kept in a stream; only streams can be read again.")
    return NatsSubscription(topic, queue_group, _bus_url(url), idle_seconds)


class NatsSubscription:
    """The messages; an iterator and a context manager."""

    def __init__(self, topic: Topic, group: str, url: str, idle_seconds: float | None) -> None:
        self._bus = _BusThread(url)
        user = urlsplit(url).username or ""
        durable = consumer_name(topic, user) if user in ROLES else group
        self._pull: Pull = self._bus.bus.pull(str(topic.stream), topic.subject, durable)
        self._idle = idle_seconds
        self._held: Delivery | None = None

    def __iter__(self) -> Iterator[Any]:
        waited = 0.0
        while self._idle is None or waited < self._idle:
            step = 1.0 if self._idle is None else min(1.0, self._idle)
            found = self._bus.run(self._pull.fetch(1, step))
            waited = 0.0 if found else waited + step
            for delivery in found:
                self._held = delivery
                yield msgspec.json.decode(delivery.message.payload)
                self._acknowledge()

    def _acknowledge(self) -> None:
        if self._held is not None:
            self._bus.run(self._held.ack())
            self._held = None

    def close(self) -> None:
        self._bus.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _BusThread:
    """A connection with an event loop of its own, which answers the server's pings while nobody asks."""

    def __init__(self, url: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="upswing-bus", daemon=True)
        self._thread.start()
        try:
            self.bus = self.run(Bus.connect(url, name="upswing-rl-trainer"))
        except BaseException:
            self._end_loop()
            raise

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(_SECONDS)
        except TookTooLong:
            future.cancel()
            raise Transient("The bus does not answer.") from None

    def close(self) -> None:
        if self._thread.is_alive():
            self.run(self.bus.close())
            self._end_loop()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _topic(subject: str) -> Topic:
    found = next((topic for topic in TOPICS if topic.subject == subject), None)
    if found is None or ">" in subject:
        known = ", ".join(topic.subject for topic in TOPICS if topic.message is not None)
        raise Misuse(f"There is no subject {subject!r}; there are: {known}.")
    return found


def _checked(topic: Topic, payload: Mapping[str, Any]) -> bytes:
    if topic.message is None:
        raise Misuse(f"{topic.subject} carries no message of a schema.")
    tree: dict[str, Any] = dict(payload)
    if topic.message is Trajectory:
        tree = redact_trajectory(_decoded(topic, tree), redactor()).tree
    elif topic.message is Feedback:
        tree = redact_feedback(_decoded(topic, tree), redactor()).tree
    raw = msgspec.json.encode(tree)
    decode(topic.message, raw)
    return raw


def _decoded(topic: Topic, tree: dict[str, Any]) -> dict[str, Any]:
    if topic.message is None:
        return tree
    plain: dict[str, Any] = msgspec.to_builtins(decode(topic.message, msgspec.json.encode(tree)))
    return plain


def _bus_url(url: str | None) -> str:
    """The bus: given, of the environment, or of the loop that runs here."""
    if found := url or os.environ.get("NATS_URL"):
        return found
    folder: Path = data_folder(None, os.environ)
    running = find_running_instance(folder)
    if running is None or not running.nats_url:
        raise Misuse(f"No bus is known: set NATS_URL, or start a loop in {folder} (`upswing up`).")
    return running.nats_url
