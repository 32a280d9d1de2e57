"""Where do the gateway and the controller meet? In four buckets of the bus.

| bucket       | key                  | value                                      | written by        |
|--------------|----------------------|--------------------------------------------|-------------------|
| `rl_traffic` | `plan`               | the traffic plan                           | the controller    |
| `rl_tally`   | a gateway's instance | its counts, which only rise; forgotten in  | that gateway      |
|              |                      | a day unless they are told again           |                   |
| `rl_pins`    | an episode's hash    | the model that it got; forgotten in a day  | several gateways  |
| `rl_gateways` | a gateway's instance | its switches; forgotten in a minute       | that gateway      |

A write is heard at once as a plain message on the key's subject. A message that the bucket then
refuses (its writer was late) is heard too, so it is only a nudge: what counts is what is stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import datetime

import msgspec
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.errors import (
    BucketNotFoundError,
    KeyNotFoundError,
    NotFoundError,
    ServiceUnavailableError,
)
from nats.js.kv import KeyValue

from upswing.contracts.typed import json_decoder
from upswing.errors import Transient
from upswing.infra.nats.bus import Bus

log = logging.getLogger(__name__)
TRAFFIC, TALLY, PINS, PLAN = "rl_traffic", "rl_tally", "rl_pins", "plan"
GATEWAYS = "rl_gateways"
_PIN_SECONDS = TALLY_SECONDS = 24 * 3600.0
"""Without a word of it, an episode is over, and a gateway is dead: none comes back by that name."""
GATEWAY_SECONDS = 60.0
"""Without a word of it, a gateway does not live."""
_POLL_SECONDS = 2.0
"""How long a plan can go unheard whose nudge was lost."""
_INFO_SECONDS = 1.0
_SETTLE = (0.0, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
"""Seconds between looks after a nudge: the message can be heard before it is stored."""
_MOST_PINS = 200_000
_AWAY = (NatsError, TimeoutError, OSError, ServiceUnavailableError, NotFoundError)


async def ensure_bucket(bus: Bus, name: str, ttl: float | None = None) -> KeyValue:
    """The bucket, made or given its time to live if need be; a gateway may not."""
    try:
        try:
            held = await bus.js.key_value(name)
        except BucketNotFoundError:
            return await bus.js.create_key_value(bucket=name, history=1, ttl=ttl)
        if ttl is not None:
            await _ensure_time_to_live(bus, name, ttl)
        return held  # noqa: TRY300 - what can fail stands before it
    except _AWAY as error:
        raise Transient(f"The bus has no bucket {name} just now: {error!r}.") from error


async def _ensure_time_to_live(bus: Bus, name: str, ttl: float) -> None:
    """One that an older version made may keep everything for ever."""
    config = (await bus.js.stream_info(f"KV_{name}")).config
    if config.max_age != ttl:
        window = min(ttl, config.duplicate_window or ttl)
        await bus.js.update_stream(config.evolve(max_age=ttl, duplicate_window=window))
        log.info("bucket %s forgets after %g s", name, ttl, extra={"action": "bucket"})


async def make_buckets(bus: Bus, tally_seconds: float = TALLY_SECONDS) -> None:
    """All of them, before a gateway looks for them: the loop does that when it starts.

    `tally_seconds`: until the counts of a silent gateway are forgotten.
    """
    await ensure_bucket(bus, TRAFFIC)
    await ensure_bucket(bus, TALLY, tally_seconds)
    await ensure_bucket(bus, PINS, _PIN_SECONDS)
    await ensure_bucket(bus, GATEWAYS, GATEWAY_SECONDS)


async def existing_bucket(bus: Bus, name: str) -> KeyValue:
    """The bucket that the loop has made."""
    try:
        return await bus.js.key_value(name)
    except _AWAY as error:
        raise Transient(f"The bus has no bucket {name} just now: {error!r}.") from error


class _State(msgspec.Struct, frozen=True):
    last_seq: int
    last_ts: datetime


class _Info(msgspec.Struct, frozen=True):
    state: _State
    ts: datetime
    """When it was told; servers before 2.10 do not say."""


_INFO = json_decoder(_Info)


def age_from_stream_info(info: bytes, revision: int | None) -> float | None:
    """How old a stream's newest message is, by the stream's own words; None: it is not this one, or nobody says.

    >>> told = b'{"state": {"last_seq": 7, "last_ts": "2026-01-05T08:00:00Z"}, "ts": "2026-01-05T08:00:30Z"}'
    >>> age_from_stream_info(told, 7), age_from_stream_info(told, 6), age_from_stream_info(b"{}", 7)
    (30.0, None, None)
    """
    try:
        decoded = _INFO.decode(info)
        age = (decoded.ts - decoded.state.last_ts).total_seconds()
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError):
        return None  # one of the times has no zone, or there is none
    known = decoded.state.last_seq == revision and age > -1  # else the bus's own clock was set back
    return age if known else None


async def plan_age(bus: Bus, revision: int | None) -> float | None:
    """Seconds since this revision of the plan was stored, by the bus's clock; None: nobody says."""
    try:
        subject = f"$JS.API.STREAM.INFO.KV_{TRAFFIC}"
        answer = await bus.client.request(subject, b"", timeout=_INFO_SECONDS)
    except _AWAY:
        return None
    return age_from_stream_info(answer.data, revision)


class TrafficBoard:
    """A gateway's view of the buckets."""

    def __init__(self, bus: Bus, instance: str) -> None:
        self.bus, self._instance = bus, instance
        self._buckets: dict[str, KeyValue] = {}
        self._nudged = asyncio.Event()
        self._announced = b""

    async def follow(self, apply: Callable[[bytes, float | None], None]) -> None:
        """Tell every stored plan, soon after it is written, and how old it is in seconds, for ever."""
        subject = f"$KV.{TRAFFIC}.{PLAN}"

        async def on_announcement(message: Msg) -> None:
            self._announced = message.data
            self._nudged.set()

        await self.bus.client.subscribe(subject, cb=on_announcement)
        known = -1
        while True:
            known = await self._read_plan(known, apply)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_POLL_SECONDS):  # `wait_for` may lose a cancellation
                    await self._nudged.wait()

    async def _read_plan(self, known: int, apply: Callable[[bytes, float | None], None]) -> int:
        """Read the plan until it is the one that was announced; the newest revision."""
        self._nudged.clear()
        for pause in _SETTLE:
            await asyncio.sleep(pause)
            try:
                entry = await (await self._bucket(TRAFFIC)).get(PLAN)
                fresh = entry.revision is not None and entry.revision != known and entry.value
                age = await self._age_of_entry(entry) if fresh else None
            except KeyNotFoundError:
                continue
            except (*_AWAY, Transient) as error:
                log.info("the plan cannot be read: %r", error, extra={"action": "plan_unread"})
                return known
            if entry.revision is not None and entry.revision != known and entry.value:
                known = entry.revision
                apply(entry.value, age)
            if entry.value == self._announced or not self._announced:
                break
        self._announced = b""
        return known

    async def _age_of_entry(self, entry: KeyValue.Entry) -> float | None:
        """Seconds since it was stored: none for one that was just heard, else by the bus's own clock."""
        return 0.0 if entry.value == self._announced else await plan_age(self.bus, entry.revision)

    async def _bucket(self, name: str) -> KeyValue:
        if name not in self._buckets:
            self._buckets[name] = await existing_bucket(self.bus, name)
        return self._buckets[name]

    async def put_tally(self, raw: bytes) -> None:
        """Publish this gateway's counts."""
        try:
            await (await self._bucket(TALLY)).put(self._instance, raw)
        except _AWAY as error:
            raise Transient(f"The counts cannot be written just now: {error!r}.") from error

    async def put_switches(self, raw: bytes) -> None:
        """Say that this gateway lives, and what it may serve."""
        try:
            await (await self._bucket(GATEWAYS)).put(self._instance, raw)
        except _AWAY as error:
            raise Transient(f"The switches cannot be written just now: {error!r}.") from error

    async def leave(self) -> None:
        """Say that this gateway is no more."""
        try:
            await (await self._bucket(GATEWAYS)).delete(self._instance)
        except _AWAY as error:
            raise Transient(f"The switches cannot be removed just now: {error!r}.") from error


_PINS_PREFIX = f"$KV.{PINS}."


class Pins:
    """What gateways have assigned, as far as this one has heard of it."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, str] = OrderedDict()
        self._unsent: deque[tuple[str, str]] = deque()
        self._wake = asyncio.Event()
        self.remembered = asyncio.Event()
        """What was assigned before is known: before that, a conversation may look like a new one."""

    async def run(self, bus: Bus) -> None:
        """Hear and tell, for ever."""
        store = await existing_bucket(bus, PINS)

        async def on_pin(message: Msg) -> None:
            self._remember_pin(
                message.subject.removeprefix(_PINS_PREFIX), message.data.decode("latin-1")
            )

        await bus.client.subscribe(_PINS_PREFIX + ">", cb=on_pin)
        await self._load_pins(store)
        self.remembered.set()
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self.send_pending(bus)

    async def send_pending(self, bus: Bus) -> None:
        """Publish what was assigned here; what cannot be sent now is sent with the next."""
        with contextlib.suppress(*_AWAY):
            while self._unsent:
                key, model_id = self._unsent[0]
                await bus.client.publish(_PINS_PREFIX + key, model_id.encode())
                self._unsent.popleft()

    async def _load_pins(self, store: KeyValue) -> None:
        """What was assigned before this gateway came."""
        try:
            watcher = await store.watchall()
            async for entry in watcher:
                if entry is None:  # that was all
                    break
                if entry.value and entry.key not in self._known:
                    self._remember_pin(entry.key, entry.value.decode("latin-1"))
            await watcher.stop()  # type: ignore[no-untyped-call]
        except _AWAY as error:
            raise Transient(f"The pins cannot be read just now: {error!r}.") from error

    def get(self, key: str) -> str | None:
        return self._known.get(key)

    def put(self, key: str, model_id: str) -> None:
        self._remember_pin(key, model_id)
        if len(self._unsent) < _MOST_PINS:
            self._unsent.append((key, model_id))
        self._wake.set()

    def _remember_pin(self, key: str, model_id: str) -> None:
        self._known[key] = model_id
        self._known.move_to_end(key)
        while len(self._known) > _MOST_PINS:
            self._known.popitem(last=False)
