"""How does the controller's plan reach the gateways, and how do their counts reach the controller?

    write ─▶ read what is stored ─▶ another store's, and kept up? ─▶ Foreign
                                ├─▶ a higher fence? ─▶ Superseded
                                └─▶ replace exactly that revision ─▶ somebody was quicker? ─▶ read again

So of two controllers only the newer one writes, and of two loops the first, whatever either believes. Counts are heard as they are
put; every half minute all of them are read anew, in case one was missed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from datetime import timedelta

from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.errors import (
    KeyNotFoundError,
    KeyWrongLastSequenceError,
    NotFoundError,
    ServiceUnavailableError,
)
from nats.js.kv import KeyValue

from upswing.contracts.traffic import (
    Plan,
    Switches,
    Tally,
    read_plan,
    read_switches,
    read_tally,
    write_plan,
)
from upswing.deploy.core.rows import LEASE, check_plan_write
from upswing.errors import Rejected, Transient
from upswing.infra.nats.bus import Bus
from upswing.infra.nats.traffic import (
    GATEWAY_SECONDS,
    GATEWAYS,
    PLAN,
    TALLY,
    TRAFFIC,
    ensure_bucket,
    make_buckets,
    plan_age,
)

log = logging.getLogger(__name__)
_AWAY = (NatsError, TimeoutError, OSError, ServiceUnavailableError, NotFoundError)
_TRIES = 8
"""Writers that may come in between."""
_READ_SECONDS = 3.0
_LIVING_SECONDS = GATEWAY_SECONDS / 4
"""Until the gateways that live are read anew: one that died says nothing."""


class PlanBoard:
    """The controller's view of the buckets."""

    def __init__(self, bus: Bus, lease: timedelta = LEASE, *, tally_seconds: float = 30.0) -> None:
        """`lease`: for how long another loop's plan counts as kept up; `tally_seconds`: between two reads of all counts."""
        self._bus, self._lease, self._tally_seconds = bus, lease, tally_seconds
        self._known: dict[str, KeyValue] = {}
        self._tallies: dict[str, Tally] = {}
        self._read_at: float | None = None
        self._switches: dict[str, bytes] = {}
        self._living_at: float | None = None

    async def prepare(self) -> None:
        """Make the buckets that are missing."""
        await make_buckets(self._bus)

    # ── the plan ─────────────────────────────────────────────────────────────────────────────

    async def write(self, plan: Plan) -> None:
        """Replace the plan; `Superseded` when somebody else writes it."""
        raw = write_plan(plan)
        self._require_connection()
        try:
            plans = await self._bucket(TRAFFIC)
            for _ in range(_TRIES):
                revision, held = await self._stored(plans)
                await self._refuse(held, revision, plan)
                with contextlib.suppress(KeyWrongLastSequenceError):
                    await plans.update(PLAN, raw, last=revision)
                    return
        except _AWAY as error:
            raise Transient(f"The traffic plan cannot be written just now: {error!r}.") from error
        raise Transient("Others write the traffic plan all the time.")

    async def check(self, plan: Plan) -> None:
        """`Superseded` when this plan could not be written."""
        self._require_connection()
        try:
            revision, held = await self._stored(await self._bucket(TRAFFIC))
            await self._refuse(held, revision, plan)
        except _AWAY as error:
            raise Transient(f"The traffic plan cannot be read just now: {error!r}.") from error

    async def _refuse(self, held: Plan | None, revision: int, plan: Plan) -> None:
        """Of another store's plan the bus says how old it is."""
        foreign = held is not None and held.origin != plan.origin
        age = await plan_age(self._bus, revision) if foreign else None
        check_plan_write(held, plan, age, self._lease)

    async def read(self) -> Plan | None:
        """The plan that is stored; None when there is none, or none that can be used."""
        self._require_connection()
        try:
            return (await self._stored(await self._bucket(TRAFFIC)))[1]
        except _AWAY as error:
            raise Transient(f"The traffic plan cannot be read just now: {error!r}.") from error

    async def _stored(self, plans: KeyValue) -> tuple[int, Plan | None]:
        try:
            entry = await plans.get(PLAN)
        except KeyNotFoundError as gone:  # a key that was deleted has a revision all the same
            return (gone.entry.revision or 0) if gone.entry else 0, None
        try:
            return entry.revision or 0, read_plan(entry.value or b"")
        except Rejected as error:
            log.warning("%s", error, extra={"action": "bad_plan"})
            return entry.revision or 0, None

    def _require_connection(self) -> None:
        """A bus that is away is not waited for: a rollback has five seconds."""
        if not self._bus.connected:
            raise Transient("The bus is away, and with it the traffic plan.")

    async def _bucket(self, name: str) -> KeyValue:
        if name not in self._known:
            self._known[name] = await ensure_bucket(self._bus, name)
        return self._known[name]

    # ── the counts ───────────────────────────────────────────────────────────────────────────

    async def follow(self, wake: Callable[[], None]) -> None:
        """Hear every count as it is put, and every gateway that comes or goes, for ever."""
        prefix, gateway_prefix = f"$KV.{TALLY}.", f"$KV.{GATEWAYS}."

        async def on_tally(message: Msg) -> None:
            self._note(message.subject.removeprefix(prefix), message.data)
            wake()

        async def on_gateway(message: Msg) -> None:
            if (
                self._switches.get(message.subject.removeprefix(gateway_prefix), b"")
                != message.data
            ):
                self._living_at = None
                wake()

        subscriptions = [
            await self._bus.client.subscribe(prefix + ">", cb=on_tally),
            await self._bus.client.subscribe(gateway_prefix + ">", cb=on_gateway),
        ]
        try:
            await self._bus.client.flush()
            self._living_at = self._read_at = None  # what was put before anyone listened
            wake()
            await asyncio.Event().wait()
        finally:
            with contextlib.suppress(*_AWAY):
                for each in subscriptions:
                    await each.unsubscribe()

    async def gateways(self) -> Mapping[str, Switches]:
        """The gateways that live, and what each may serve; one that cannot be understood may everything."""
        now = asyncio.get_running_loop().time()
        if self._living_at is None or now - self._living_at > _LIVING_SECONDS:
            self._require_connection()
            self._living_at = now  # what is heard from here on asks for another reading
            try:
                async with asyncio.timeout(_READ_SECONDS):
                    self._switches = await self._all(GATEWAYS)
            except _AWAY as error:
                self._living_at = None
                raise Transient(f"The gateways cannot be read just now: {error!r}.") from error
        return {name: _switches(name, raw) for name, raw in self._switches.items()}

    async def _all(self, name: str) -> dict[str, bytes]:
        """Everything that a bucket holds."""
        found: dict[str, bytes] = {}
        watcher = await (await self._bucket(name)).watchall()
        try:
            async for entry in watcher:
                if entry is None:  # that was all
                    break
                if entry.value:
                    found[entry.key] = entry.value
        finally:
            await watcher.stop()  # type: ignore[no-untyped-call]
        return found

    async def tallies(self) -> Mapping[str, Tally]:
        """The newest counts of every gateway."""
        now = asyncio.get_running_loop().time()
        if self._read_at is None or now - self._read_at > self._tally_seconds:
            self._require_connection()
            try:
                async with asyncio.timeout(_READ_SECONDS):
                    await self._read_all()
            except _AWAY as error:
                raise Transient(f"The counts cannot be read just now: {error!r}.") from error
            self._read_at = now
        return dict(self._tallies)

    async def _read_all(self) -> None:
        """All there are; those of gateways that are long dead are there no more."""
        stored = await self._all(TALLY)
        for gateway, raw in stored.items():
            self._note(gateway, raw)
        for gateway in self._tallies.keys() - stored.keys():
            self._tallies.pop(gateway, None)

    def _note(self, gateway: str, raw: bytes) -> None:
        if not raw:
            self._tallies.pop(gateway, None)
            return
        try:
            self._tallies[gateway] = read_tally(raw)
        except Rejected as error:
            log.warning("%s: %s", gateway, error, extra={"action": "bad_tally"})


def _switches(gateway: str, raw: bytes) -> Switches:
    try:
        return read_switches(raw)
    except Rejected as error:
        log.warning("%s: %s", gateway, error, extra={"action": "bad_switches"})
        return Switches()
