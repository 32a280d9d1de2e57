"""How does a decision become rows, and how do rows become a plan?

**Rows first, then the plan.** A change is one transaction: rollouts, models, evidence, journal, outbox.
The plan is made from the rows and from nothing else, so a crash at any point leaves one of two things:

| the crash comes        | what is true                 | the next controller                            |
|------------------------|------------------------------|------------------------------------------------|
| before the commit      | nothing has happened         | decides the same from the same evidence         |
| between commit and plan| it has happened              | writes the plan before anything else            |

In between, a gateway follows the old plan, for as long as its lease at most. Were the plan written first,
a crash would leave traffic that no row explains, and the next controller would undo it.

**A way back does not wait for the store.** When its transaction has not ended after two seconds, the plan
that follows from it is written all the same; in memory the model stays withdrawn until a row says so.
The next controller judges before it gives anybody traffic that the board does not give, so a crash in just
that moment changes nothing either.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from upswing.aside import Burial
from upswing.contracts.traffic import Model as Served
from upswing.contracts.traffic import Plan, Switches
from upswing.deploy.announce import Word, announcement, word_of
from upswing.deploy.events import Outage
from upswing.deploy.gateways import barred, pinned_models, versions
from upswing.deploy.journal import STAGE, Inputs, Stepped, decide, kind_of
from upswing.deploy.metrics import DeployMetrics
from upswing.deploy.moves import model_moves, standby
from upswing.deploy.policy import DeployPolicy
from upswing.deploy.reading_service import begun_anew, readable
from upswing.deploy.record import Record, Tallies, note_share
from upswing.deploy.record import read as read_record
from upswing.deploy.record import row_of as record_row
from upswing.deploy.rollout import Rollout, step
from upswing.deploy.standing import (
    Standing,
    after_change,
    baseline_alone,
    beside,
    plan_of,
    row_of,
    shares,
    standing_of,
)
from upswing.deploy.states import ACTIVE
from upswing.deploy.states import Rollout as State
from upswing.errors import Transient
from upswing.ports import Decision, ModelRow
from upswing.ports_rollout import (
    LEASE,
    Audit,
    Board,
    Change,
    Incident,
    Leader,
    ModelMove,
    NewModel,
    Serving,
    Store,
    Superseded,
)

log = logging.getLogger(__name__)
STORE_PATIENCE = 2.0
"""Seconds that a way back waits for the store, of the five it may take."""


@dataclass(frozen=True, slots=True)
class World:
    """Everything outside."""

    store: Store
    board: Board
    serving: Serving
    clock: Callable[[], datetime]
    """Of ramps; a demo or a test may hand in a fast one."""
    wall: Callable[[], datetime]
    """Real time, for leases; it only passes."""
    new_id: Callable[[], UUID]
    changed: Callable[[], None] = lambda: None
    """Something was committed that follows to the bus."""
    burial: Burial = field(default_factory=Burial)
    """Where rows go that cannot be read."""


class Unserved(Transient):
    """Nobody serves the baseline, so there is no plan: it has to be loaded first, outside the lock."""


@dataclass(frozen=True, slots=True)
class WayBack:
    """A way back that is traffic, and no row yet."""

    before: State
    """Of the rollout that is taken back."""
    changed: tuple[Rollout, ...]
    moves: tuple[ModelMove, ...]

    def holds(self, row: Rollout | None) -> bool:
        """Do the rows still give traffic to the one that is taken back?"""
        if row is None:
            return False
        return row.state in ACTIVE if self.before in ACTIVE else row.state is self.before


class Ledger:
    """The rows, and the plan that follows from them. One change at a time: hold `lock`."""

    def __init__(
        self, world: World, policy: DeployPolicy, base: str, holder: str,
        metrics: DeployMetrics | None = None,
    ) -> None:  # fmt: skip
        self.world, self.policy, self.base, self._holder = world, policy, base, holder
        self.metrics = metrics
        self.lock = asyncio.Lock()
        self.fence = 0
        self.standing = Standing(base)
        self.served: dict[str, Served] = {}
        self.gateways: Mapping[str, Switches] = {}
        """Those that live, as they were last heard of."""
        self.pinned: frozenset[str] = frozenset()
        """Models that some of them are pinned to."""
        self._withdrawn: dict[str, WayBack] = {}
        self._found: Plan | None = None
        """What gateways followed when this controller took over."""
        self._origin = ""
        self._plan: Plan | None = None
        self._version = 0
        self._held: datetime | None = None
        """When the plan last held, by the clock of ramps."""
        self._written: datetime | None = None
        """When that was, in real time; None: it did not hold since."""

    # ── leading ──────────────────────────────────────────────────────────────────────────────

    async def take_over(self) -> Leader | None:
        """From now on this controller writes, and no older one does.

        A store that was put back from a copy may know an older fence than the board does.
        """
        world, held = self.world, await self.first_on_the_bus()
        self._found, above = held, held.fence if held else 0
        self.fence, before = await world.store.take_over(self._holder, world.wall(), above)
        self._held, self._written = before.held if before else None, None
        self._plan, self._version = None, 0
        self._withdrawn.clear()
        log.info("leading with fence %d", self.fence, extra={"action": "take_over"})
        return before

    async def first_on_the_bus(self) -> Plan | None:
        """The plan that is there; `Foreign` when it is of another store that keeps it up."""
        held = await self.world.board.read()
        self._origin = self._origin or await self.world.store.origin(str(self.world.new_id()))
        if held is not None:
            await self.world.board.check(self._signed(held))
        return held

    def _signed(self, plan: Plan) -> Plan:
        return msgspec.structs.replace(plan, origin=self._origin, written=self.world.wall())

    def lead(self) -> None:
        if not self.fence:
            raise Superseded("This controller does not lead: another one does, or nobody yet.")

    def stand_back(self) -> None:
        self.fence = 0

    @property
    def behind(self) -> bool:
        """Do the rows say something that no plan says yet?"""
        return self._plan is None

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    async def read(self) -> Standing:
        """How everything stands, from the rows."""
        rows = await self.world.store.standing()
        await self._read_pins()
        self.standing = standing_of(readable(rows, self.world.burial.aside), self.base)
        self._withdrawn = {
            name: back
            for name, back in self._withdrawn.items()
            if back.holds(_find(self.standing, name))
        }
        return self.standing

    async def know(self, model_id: str) -> ModelRow | None:
        """A model that may have been over long ago becomes part of the picture."""
        row = await self.world.store.model(model_id)
        if row is not None:
            models = {**self.standing.models, model_id: row}
            self.standing = replace(self.standing, models=models)
        return row

    async def record(self, rollout_id: str) -> Record:
        """What a rollout has shown; what cannot be read it has to show again."""
        body = await self.world.store.record(rollout_id)
        found = self.world.burial.aside.sound(
            STAGE, "evidence", [body], read_record,
            key=lambda _: rollout_id, raw=lambda _: body or b"",
        )  # fmt: skip
        rollout = _find(self.standing, rollout_id)
        unseen = rollout is not None and rollout.state is State.RAMPING
        if found and not (unseen and found[0].evidence is None and body is not None):
            return found[0]
        return await self._anew(rollout_id)

    async def _anew(self, rollout_id: str) -> Record:
        """Whoever has traffic is looked at from now on, as if it had just begun."""
        rollout = _find(self.standing, rollout_id)
        if rollout is None:
            return Record()
        tallies, newest = await self.tallies(), await self.world.store.newest()
        record = begun_anew(rollout, self.policy.limits, tallies, self.standing.lead, newest)
        if self.fence:
            await self.world.burial.bury()
            kept = record_row(rollout_id, record)
            await self._commit(Change(self.world.clock(), records=(kept,)))
        return record

    async def tallies(self) -> Tallies:
        """What gateways have counted; nothing when nobody can say."""
        try:
            return await self.world.board.tallies()
        except Superseded:
            raise
        except Transient as error:
            log.warning("%s", error, extra={"action": "tallies"})
            return {}

    async def hear_gateways(self) -> None:
        """Which gateways live, and what their switches mean; who cannot be asked is as before."""
        try:
            self.gateways = await self.world.board.gateways()
        except Superseded:
            raise
        except Transient as error:
            log.warning("%s", error, extra={"action": "gateways"})
            return
        await self._read_pins()

    async def _read_pins(self) -> None:
        wanted = versions(self.gateways)
        rows = await self.world.store.models() if wanted else ()
        self.pinned = pinned_models(wanted, rows)

    @property
    def barred(self) -> str:
        """Why no gateway may serve what goes out; empty: one may."""
        return barred(self.gateways)

    async def ensure(self, model_id: str) -> Served:
        """Have a model served; the base by its name."""
        row = self.standing.models.get(model_id) or await self.world.store.model(model_id)
        served = await self.world.serving.ensure(row if row is not None else model_id)
        self.served[model_id] = served
        return served

    # ── changing ─────────────────────────────────────────────────────────────────────────────

    def journalled(self, inputs: Inputs, decision_id: str = "") -> Decision:
        """The journal's row: the inputs, and what follows from them."""
        outcome, sentence = decide(inputs)
        return Decision(
            decision_id or str(self.world.new_id()), STAGE, kind_of(inputs, outcome), sentence,
            msgspec.json.encode(inputs), msgspec.json.encode(outcome), self.world.clock(),
        )  # fmt: skip

    def incident(
        self, rollout: Rollout | None, model_id: str, reason: str, sentence: str, metrics: object
    ) -> Incident:
        return Incident(
            str(self.world.new_id()), rollout.rollout_id if rollout else None, model_id, reason,
            sentence, msgspec.json.encode(metrics), self.world.clock(),
        )  # fmt: skip

    def alert(self, reason: str, model_id: str, sentence: str) -> None:
        """Call a person."""
        log.error(
            "%s: %s", model_id, sentence,
            extra={"action": "alert", "model": model_id, "reason": reason},
        )  # fmt: skip
        if self.metrics:
            self.metrics.alert(reason)

    async def carry_out(
        self, changed: Iterable[Rollout] = (), *, records: Mapping[str, Record] | None = None,
        moves: Iterable[ModelMove] = (), decisions: Iterable[Decision] = (),
        incidents: Iterable[Incident] = (), audit: Iterable[Audit] = (),
        newcomer: NewModel | None = None, by: str = "", reward: float | None = None,
        urgent: bool = False,
    ) -> None:  # fmt: skip
        """Commit, then write the plan that follows; `urgent`: the plan waits two seconds at most."""
        changed, decisions = tuple(changed), tuple(decisions)
        now, before = self.world.clock(), self.standing
        after = after_change(before, changed)
        kept = await self._noted(after, dict(records or {}))
        number = decisions[0].decision_id if decisions else ""
        told = [
            (word, self._announced(each, word, by, now, number))
            for each in changed
            if (word := word_of(_find(before, each.rollout_id), each)) is not None
        ]
        change = Change(
            now=now, rollouts=tuple(row_of(each) for each in changed),
            records=tuple(record_row(name, record) for name, record in kept.items()),
            models=(*moves, *model_moves(before, changed, now, reward=reward)),
            newcomer=newcomer, decisions=decisions, messages=tuple(body for _, body in told),
            incidents=tuple(incidents), audit=tuple(audit),
        )  # fmt: skip
        await (self._urgently(change, changed) if urgent else self._commit(change))
        if told:
            self._plan = None  # until the next one is written
        for word, _ in told:
            self._count(word)
        await self.read()
        await self.publish()

    async def _commit(self, change: Change) -> None:
        self.lead()
        await self.world.store.commit(self.fence, change)
        self.world.changed()

    async def _urgently(self, change: Change, changed: tuple[Rollout, ...]) -> None:
        """A way back, of the first that changes: two seconds from now the plan is without it."""
        try:
            async with asyncio.timeout(STORE_PATIENCE):
                await self._commit(change)
        except Superseded:
            raise
        except (TimeoutError, Transient) as error:
            name = changed[0].rollout_id
            if (row := _find(self.standing, name)) is not None:
                self._withdrawn[name] = WayBack(row.state, changed, change.models)
            await self._write(self._planned())
            raise Transient(f"The traffic is back, and the store does not know it: {error!r}.") from error  # fmt: skip

    async def _noted(self, after: Standing, records: dict[str, Record]) -> dict[str, Record]:
        """The records that change: those given, and those whose share or plan does."""
        at = self.world.wall()
        for each in after.active:
            name = each.rollout_id
            record = records.get(name) or await self.record(name)
            new = note_share(record, at, beside(after, each))
            if after.lead not in record.sources:
                record.sources, new = [*record.sources, after.lead], True
            if new:
                records[name] = record
        return records

    def _announced(
        self, rollout: Rollout, word: Word, by: str, now: datetime, number: str
    ) -> bytes:
        name = rollout.model_id
        return announcement(
            rollout, word, self.standing.models.get(name), self.served.get(name),
            platform=self.world.serving.platform, by=by, now=now,
            number=number or str(self.world.new_id()),
        )  # fmt: skip

    def _count(self, status: str) -> None:
        if self.metrics:
            self.metrics.happened(status)

    # ── the plan ─────────────────────────────────────────────────────────────────────────────

    async def publish(self, *, renew: bool = False) -> None:
        """Write the plan that follows from the rows, when it is new or its lease is to be renewed."""
        self.lead()
        await self.resume()
        full = self._full()
        await self._write(self._planned(), renew=renew)
        now, wall = self.world.clock(), self.world.wall()
        self._written = wall if full else None
        self._held = now if full else self._held
        await self.world.store.beat(self.fence, wall, now if full else None)

    async def resume(self) -> None:
        """What nobody led through, or no gateway might serve, counts for nothing; before anything is judged."""
        if self._full() and self._lapsed():
            await self._outage()

    async def refresh(self) -> None:
        """Write the plan if it is another one than before."""
        await self._write(self._planned())

    async def publish_baseline(self) -> None:
        """Write a plan without candidates, unless gateways reach a baseline already.

        One that the rows do not name may be a way back that they do not know: it answers until all is judged.
        """
        self.lead()
        served = self.served[self.standing.baseline]
        held = self._found.baseline if self._found else None
        if held == served:
            return
        if held and held.model_id != served.model_id and await self.world.serving.alive(held):
            return
        await self._write(baseline_alone(self.standing))

    async def _write(self, standing: Standing, *, renew: bool = False) -> None:
        """The board's part, which needs no store."""
        self.lead()
        if standing.baseline not in self.served:
            raise Unserved(f"{standing.baseline} is to answer, and no server has it yet.")
        plan = plan_of(
            standing, self.served, fence=self.fence, version=self._version,
            lease_until=self.world.wall() + LEASE, lease_seconds=LEASE.total_seconds(),
            standing_by=_stands_by(standing), pinned=self.pinned,
        )  # fmt: skip
        if renew or self._plan is None or _essence(plan) != _essence(self._plan):
            self._version += 1
            plan = self._signed(msgspec.structs.replace(plan, version=self._version))
            try:
                await self.world.board.write(plan)
            except Superseded:
                raise
            except Transient:
                self._plan = None  # whatever is there now, it is written anew
                raise
            self._plan = plan
        if self.metrics:
            self.metrics.traffic(shares(standing))

    def _planned(self) -> Standing:
        """The rows, and the ways back that are ahead of them."""
        standing = self.standing
        for back in self._withdrawn.values():
            standing = after_change(standing, back.changed, back.moves)
        return standing

    def _full(self) -> bool:
        """Does everybody get the share that the rows say? What no gateway may serve gets none."""
        names = {each.model_id for each in self.standing.active}
        return names <= self.served.keys() and not self._withdrawn and not self.barred

    def _lapsed(self) -> bool:
        """Was there a time without the plan since it last held?"""
        return self._written is None or self.world.wall() - self._written > LEASE

    async def _outage(self) -> None:
        """A step goes on where it stood: what nobody led through counts for nothing."""
        rollout = self.standing.ramping
        if rollout is None or rollout.canary is None:
            return
        now, since = self.world.clock(), rollout.canary.since
        lasted = now - max(since, self._held or since)
        if lasted <= timedelta():
            return
        event = Outage(lasted)
        decision = self.journalled(Stepped(rollout, (event,), now))
        change = Change(
            now=now, rollouts=(row_of(step(rollout, event, now)),), decisions=(decision,)
        )
        await self._commit(change)
        self._held, self._written = now, self.world.wall()
        await self.read()


def _find(standing: Standing, rollout_id: str) -> Rollout | None:
    return next((each for each in standing.rollouts if each.rollout_id == rollout_id), None)


def _stands_by(standing: Standing) -> str:
    """Who answers when the promoted model is taken back."""
    if standing.promoted is None:
        return ""
    behind = standby(standing, standing.promoted)
    return behind if isinstance(behind, str) else behind.model_id


def _essence(plan: Plan) -> tuple[object, ...]:
    leased = plan.lease_until is not None
    beside = plan.holdback, plan.base, plan.trained, plan.pinned
    return (
        plan.rollout,
        plan.baseline,
        plan.candidates,
        leased,
        plan.operator,
        plan.withdrawn,
        beside,
    )
