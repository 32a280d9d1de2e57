"""An operator says something: may it happen, and what follows?

| word                      | what it does                                                            |
|---------------------------|-------------------------------------------------------------------------|
| approve                   | lets it begin; while it ramps: its word stands for the proof             |
| pause, resume             | holds the traffic where it is; the step goes on where it stood           |
| rollback                  | takes it back, be it a canary or the model that answers                  |
| traffic, below 100 %      | holds a model at that share: beside others, too; no lease, no ramp       |
| traffic, 0 %              | ends its rollout: newcomers do not wait for it; it may have traffic again |
| traffic, 100 %            | makes it the baseline; of the baseline: takes all candidates back        |
| override                  | a canary without a passed validation, taken back by the same tests       |
| revalidate                | its validation is run once more                                          |
| register                  | a model that training did not make; it is validated like any other       |

What was never validated gets no traffic except by an override, and never all of it. Every word leaves a
row in the audit and, where something is decided, one in the journal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta

import msgspec
from msgspec.structs import replace

from upswing.deploy.arriving_service import Arrivals
from upswing.deploy.canary import Promote, RollBack
from upswing.deploy.events import Approve, Begin, Decided, Event, Pause, Resume, Withdraw
from upswing.deploy.journal import Stepped, stepped_to
from upswing.deploy.ledger_service import Ledger
from upswing.deploy.loading_service import Intent, Loads
from upswing.deploy.moves import (
    answers_again,
    holdback_ended,
    model_move,
    promotion,
    rests,
    retreat,
    standby,
)
from upswing.deploy.ramp import ramp
from upswing.deploy.record import begin_watching
from upswing.deploy.rollout import Rollout, plan_rollout
from upswing.deploy.standing import decoded
from upswing.deploy.states import ACTIVE, OVERRIDABLE, Model
from upswing.deploy.states import Rollout as State
from upswing.deploy.strategy import CAUTIOUS, Gradual, Immediate
from upswing.deploy.watch import frozen_error, frozen_reward
from upswing.errors import Conflict, Misuse, Reason, Rejected
from upswing.ports import Decision
from upswing.ports_rollout import Audit, Incident, ModelMove, NewModel

_TOLERANCE = 1e-9
_SHIPPABLE = {Model.PASSED, Model.RETIRED, Model.CANARY, Model.DEPLOYED}


class Operator:
    """Carries out what operators say."""

    def __init__(self, ledger: Ledger, loads: Loads, arrivals: Arrivals) -> None:
        self._ledger, self._loads, self._arrivals = ledger, loads, arrivals

    # ── a rollout ────────────────────────────────────────────────────────────────────────────

    async def approve(self, model_id: str, by: str, why: str = "") -> Rollout:
        """Agree to the first traffic, or to 100 %."""
        event = Approve(by, patience=timedelta(days=self._ledger.policy.undecided_days))

        async def plan() -> Intent[Rollout]:
            rollout = await self._live(model_id)
            if rollout.override:
                raise Conflict(f"{model_id} has no passed validation: it never gets all traffic.")
            waits = rollout.state is State.AWAITING
            if waits:
                self._refuse_stale(rollout)
                await self._refuse_barred(model_id)
                after = stepped_to(Stepped(rollout, (event,), self._ledger.world.clock()))
                if after.state is State.RAMPING:
                    self._refuse_second(rollout, after.share)
            return Intent(
                (model_id,) if waits else (),
                lambda: self._say(rollout, (event,), "approve", by, {"why": why}),
            )

        return await self._loads.first(plan)

    def _refuse_stale(self, rollout: Rollout) -> None:
        """It was proved beside a model that no longer answers."""
        now = self._ledger.standing.baseline
        if rollout.baseline_id != now:
            raise Conflict(
                f"{rollout.model_id} was compared with {rollout.baseline_id}, and {now} answers now: "
                "it is validated again first."
            )

    async def _refuse_barred(self, model_id: str) -> None:
        """What no gateway may serve does not begin."""
        await self._ledger.hear_gateways()
        if said := self._ledger.barred:
            raise Conflict(f"{model_id} does not begin. {said}")

    async def pause(self, model_id: str, by: str, why: str = "") -> Rollout:
        """Hold the traffic where it is."""
        async with self._ledger.lock:
            rollout = await self._live(model_id)
            return await self._say(rollout, (Pause(by),), "pause", by, {"why": why})

    async def resume(self, model_id: str, by: str, why: str = "") -> Rollout:
        """Let the ramp go on where it stood."""
        async with self._ledger.lock:
            rollout = await self._live(model_id)
            after = stepped_to(Stepped(rollout, (Resume(by),), self._ledger.world.clock()))
            self._refuse_second(rollout, after.share)
            return await self._say(rollout, (Resume(by),), "resume", by, {"why": why})

    async def rollback(self, model_id: str | None, by: str, why: str = "") -> Rollout:
        """Take a model back; None: the one on its way, or else the one that answers."""
        sentence = f"{by} took it back{f': {why}' if why else ''}."

        async def plan() -> Intent[Rollout]:
            rollout = await self._with_traffic(model_id)
            behind = standby(self._ledger.standing, rollout)
            name = behind.model_id if isinstance(behind, Rollout) else behind
            return Intent(
                (name,) if rollout.state is State.PROMOTED else (),
                lambda: self._take_back(rollout, sentence, "rollback", by),
            )

        return await self._loads.first(plan)

    async def _with_traffic(self, model_id: str | None) -> Rollout:
        self._ledger.lead()
        standing = await self._ledger.read()
        found = standing.active[0] if standing.active else standing.promoted
        rollout = await self._live(model_id) if model_id else found
        if rollout is None:
            raise Conflict(f"{standing.baseline} answers alone, and nothing stands behind it.")
        if rollout.state not in ACTIVE | {State.PROMOTED}:
            raise Conflict(f"The rollout of {rollout.model_id} is {rollout.state}: it has no traffic.")  # fmt: skip
        return rollout

    async def _take_back(self, rollout: Rollout, sentence: str, what: str, by: str) -> Rollout:
        ledger, now = self._ledger, self._ledger.world.clock()
        inputs = Stepped(rollout, (Decided(RollBack("operator", sentence)),), now)
        after = stepped_to(inputs)
        record = await ledger.record(rollout.rollout_id)
        incident = ledger.incident(rollout, rollout.model_id, "operator", sentence, record)
        changed: tuple[Rollout, ...] = (after,)
        moves: tuple[ModelMove, ...] = ()
        if rollout.state is State.PROMOTED:
            behind = standby(ledger.standing, rollout)
            changed = retreat(ledger.standing, after, now)
            moves = answers_again(ledger.standing, behind, now)
        await ledger.carry_out(
            changed, moves=moves, decisions=(ledger.journalled(inputs),), incidents=(incident,),
            audit=(self._audit(by, what, rollout.model_id, {"sentence": sentence}),), by=by,
            urgent=True,
        )  # fmt: skip
        return after

    async def _say(
        self, rollout: Rollout, events: tuple[Event, ...], what: str, by: str,
        detail: object = None, incidents: tuple[Incident, ...] = (),
    ) -> Rollout:  # fmt: skip
        """Let events happen to a rollout, with everything that follows."""
        ledger = self._ledger
        inputs = Stepped(rollout, events, ledger.world.clock())
        after = stepped_to(inputs)
        audit = (self._audit(by, what, rollout.model_id, detail),)
        decisions = (ledger.journalled(inputs),)
        if rollout.state not in ACTIVE and after.state in ACTIVE | {State.PROMOTED}:
            await self._arrivals.enter(
                after, decisions, by=by, audit=audit, incidents=incidents,
                holdback=what != "traffic",
            )  # fmt: skip
        elif after.state is State.PROMOTED:
            await self._promote(rollout, after, decisions, audit, by)
        else:
            await ledger.carry_out((after,), decisions=decisions, audit=audit, by=by)
        return after

    async def _promote(
        self, rollout: Rollout, after: Rollout, decisions: tuple[Decision, ...],
        audit: tuple[Audit, ...], by: str,
    ) -> None:  # fmt: skip
        ledger, limits = self._ledger, self._ledger.policy.limits
        record = await ledger.record(rollout.rollout_id)
        frozen = frozen_reward(record.evidence, limits) if record.evidence else None
        newest = (await ledger.world.store.newest())[0]
        begin_watching(
            record, after, limits, await ledger.tallies(), frozen=frozen, newest=newest,
            error=frozen_error(record.evidence) if record.evidence else 0.0,
        )  # fmt: skip
        await ledger.carry_out(
            promotion(ledger.standing, after, ledger.world.clock()),
            records={after.rollout_id: record}, moves=rests(ledger.standing, after),
            decisions=decisions, audit=audit, by=by, reward=frozen,
        )  # fmt: skip

    # ── traffic ──────────────────────────────────────────────────────────────────────────────

    async def set_traffic(self, model_id: str, percentage: float, by: str) -> None:
        """Hold a model at this share, or with 100 make it the baseline."""
        await self.split({model_id: percentage}, by)

    async def split(self, percentages: Mapping[str, float], by: str) -> None:
        """Hold models side by side at fixed shares; the baseline gets the rest."""
        told = {name: _share(percentage) for name, percentage in percentages.items()}
        total = math.fsum(told.values())
        if not told or not total <= 1 + _TOLERANCE:
            raise Rejected(Reason.SCHEMA, f"The shares sum to {total * 100:g} %, of {len(told)} models.")  # fmt: skip
        if len(told) > 1 and max(told.values()) >= 1:
            raise Rejected(Reason.SCHEMA, "Who gets 100 % gets it alone.")

        async def plan() -> Intent[None]:
            self._ledger.lead()
            await self._ledger.read()
            ways = [(await self._way(name, share), share) for name, share in told.items()]
            for way, share in ways:
                if way is not None and way.state not in ACTIVE and 0 < share < 1:
                    await self._refuse_barred(way.model_id)
            held = {way.rollout_id: share for way, share in ways if way is not None and share < 1}
            if held:
                self._refuse_crowd(held)
            # Who gives traffic up waits for no server.
            needs = [
                way.model_id
                for way, share in ways
                if way is not None and share and (way.state not in ACTIVE or share > way.share)
            ]
            return Intent(needs, lambda: self._hold_all(told, by))

        await self._loads.first(plan)

    async def _hold_all(self, told: Mapping[str, float], by: str) -> None:
        had = {each.model_id: each.share for each in self._ledger.standing.active}
        # Whoever gives comes first, so that on the way, too, nobody gets what is not there.
        for name in sorted(told, key=lambda each: told[each] - had.get(each, 0.0)):
            await self._hold(name, told[name], by)

    async def _hold(self, name: str, share: float, by: str) -> None:
        """One model's share, whatever its rollout was at."""
        ledger, detail = self._ledger, {"traffic_percentage": share * 100}
        rollout = await self._way(name, share)
        if rollout is None:
            sentence, active = f"{by} gave all traffic to {name}.", ledger.standing.active
            for each in active:
                await self._take_back(each, sentence, "traffic", by)
            ended = holdback_ended(ledger.standing, sentence, ledger.world.clock())
            if ended or not active:
                audit = self._audit(by, "traffic", name, detail)
                await ledger.carry_out(ended, audit=(audit,))
            return
        if not share:
            await self._end(name, by, detail)
            return
        events: tuple[Event, ...] = ()
        if rollout.state not in ACTIVE:
            patience = timedelta(days=ledger.policy.undecided_days)
            agreed = Approve(by, patience=patience)
            waits = rollout.state is State.AWAITING
            events = (agreed,) if waits else (agreed, Begin(patience=patience))
        if share < 1:
            events = (*events, Pause(by, share))
        elif not events:
            events = (Decided(Promote(f"{by} gave it all traffic.")),)
        await self._say(rollout, events, "traffic", by, detail)

    async def _end(self, name: str, by: str, detail: object) -> None:
        """It has no traffic any more, and stands in nobody's way."""
        ledger, sentence = self._ledger, f"{by} took its traffic away."
        rollout = ledger.standing.of(name)
        if rollout is None:
            await ledger.carry_out(audit=(self._audit(by, "traffic", name, detail),), by=by)
            return
        over: Event = Withdraw("operator", sentence)
        if rollout.override:  # what was never validated does not rest, it goes back
            over = Decided(RollBack("operator", sentence))
        await self._say(rollout, (over,), "traffic", by, detail)

    async def _way(self, name: str, share: float) -> Rollout | None:
        """The rollout by which this model can have this share; None: it is the baseline."""
        ledger = self._ledger
        if name == ledger.standing.baseline:
            if share < 1:
                raise Conflict(f"{name} is the baseline: it gets what the others leave.")
            return None
        row = await ledger.know(name)
        live = ledger.standing.of(name)
        if live is not None and live.state in ACTIVE:
            return live
        if row is None and name != ledger.base:
            raise Misuse(f"There is no model {name}; GET /admin/models lists them.")
        if row is not None and Model(row.state) not in _SHIPPABLE:
            raise Conflict(f"{name} is {row.state}: without a passed validation it gets traffic by an override only.")  # fmt: skip
        return self._as_told(live or await self._once_more(name), share)

    async def _once_more(self, name: str) -> Rollout:
        """A rollout for a model that was out before, or passed and was passed over."""
        ledger, standing = self._ledger, self._ledger.standing
        row = await ledger.world.store.latest(name)
        last = self._ledger.world.burial.aside.one("deploy", "rollouts", row, decoded)
        validation = last.validation_id if last and not last.override else ""
        validation = "base" if name == ledger.base else validation
        if not validation:
            raise Conflict(f"{name} has no passed validation.")
        return plan_rollout(
            str(ledger.world.new_id()), name, standing.baseline, validation,
            Immediate("An operator chose it."), ledger.world.clock(),
            results=last.results if last else None,
        )  # fmt: skip

    def _as_told(self, rollout: Rollout, share: float) -> Rollout:
        """The operator's share decides the strategy; a ramp stands ready for whoever resumes it."""
        policy, baseline = self._ledger.policy, self._ledger.standing.baseline
        if share >= 1:
            strategy = Immediate("An operator gave it all traffic.")
            return replace(rollout, baseline_id=baseline, strategy=strategy, steps=())
        initial = policy.boldness.initial
        steps = ramp(initial, policy.ramp_hours, policy.samples)
        held = Gradual(initial, f"An operator holds it at {share * 100:g} %.")
        return replace(rollout, baseline_id=baseline, strategy=held, steps=steps)

    def _refuse_second(self, rollout: Rollout, share: float) -> None:
        """One ramps at a time, and only into what the others leave."""
        other = self._ledger.standing.ramping
        if other is not None and other.rollout_id != rollout.rollout_id:
            raise Conflict(f"{other.model_id} ramps: one at a time.")
        self._refuse_crowd({rollout.rollout_id: share})

    def _refuse_crowd(self, told: Mapping[str, float]) -> None:
        """All shares together leave room for the baseline."""
        others = [e.share for e in self._ledger.standing.active if e.rollout_id not in told]
        total = math.fsum((*others, *told.values()))
        if not total <= 1 + _TOLERANCE:
            raise Conflict(f"With what others have the shares would sum to {total * 100:g} %.")

    # ── models ───────────────────────────────────────────────────────────────────────────────

    async def override(self, model_id: str, by: str, why: str) -> Rollout:
        """Push a model out without a passed validation: as a canary, and under the same tests."""
        sentence = f"{by} overrides the missing validation: {why}"

        async def plan() -> Intent[Rollout]:
            rollout = await self._overriding(model_id, by, sentence)
            return Intent((model_id,), lambda: self._override(rollout, by, why, sentence))

        return await self._loads.first(plan)

    async def _overriding(self, model_id: str, by: str, sentence: str) -> Rollout:
        """The rollout that this would be."""
        ledger, policy = self._ledger, self._ledger.policy
        ledger.lead()
        standing = await ledger.read()
        row = await ledger.know(model_id)
        if row is None:
            raise Misuse(f"There is no model {model_id}; GET /admin/models lists them.")
        if model_id == self._arrivals.proving or Model(row.state) not in OVERRIDABLE:
            raise Conflict(f"{model_id} is {row.state}: there is nothing to override.")
        share = min(CAUTIOUS, policy.boldness.initial)
        rollout = plan_rollout(
            str(ledger.world.new_id()), model_id, standing.baseline, "",
            Gradual(share, sentence), ledger.world.clock(), policy.ramp_hours, policy.samples,
            override=by,
        )  # fmt: skip
        self._refuse_second(rollout, share)
        await self._refuse_barred(model_id)
        return rollout

    async def _override(self, rollout: Rollout, by: str, why: str, sentence: str) -> Rollout:
        ledger, name = self._ledger, rollout.model_id
        begin = Begin(patience=timedelta(days=ledger.policy.undecided_days))
        ledger.alert("emergency_override", name, sentence)
        incident = ledger.incident(rollout, name, "emergency_override", sentence, rollout)
        return await self._say(
            rollout, (begin,), "override", by, {"why": why}, incidents=(incident,)
        )

    async def revalidate(self, model_id: str, by: str, why: str = "") -> None:
        """Have a model validated once more, whatever came of it before."""
        ledger = self._ledger
        async with ledger.lock:
            ledger.lead()
            await ledger.read()
            if await ledger.know(model_id) is None:
                raise Misuse(f"There is no model {model_id}; GET /admin/models lists them.")
            if (rollout := ledger.standing.of(model_id)) is not None:
                raise Conflict(f"The rollout of {model_id} is {rollout.state}.")
            if needed := self._needed(model_id):
                raise Conflict(f"{model_id} {needed}: while it is validated it could not answer.")
            move = model_move(ledger.standing, model_id, Model.VALIDATING)
            audit = self._audit(by, "revalidate", model_id, {"why": why})
            await ledger.carry_out(moves=(move,), audit=(audit,), by=by)

    async def register(self, new: NewModel, by: str) -> None:
        """Make a model known; it is validated, and then waits for approval."""
        ledger = self._ledger
        async with ledger.lock:
            ledger.lead()
            await ledger.read()
            if new.model_id == ledger.base:
                raise Conflict(f"{new.model_id} is the base.")
            audit = self._audit(by, "register", new.model_id, {"base_model": new.base_model, "path": new.path})  # fmt: skip
            await ledger.carry_out(newcomer=new, audit=(audit,), by=by)

    # ── inside ───────────────────────────────────────────────────────────────────────────────

    def _needed(self, model_id: str) -> str:
        """For what a model that rests is kept, as the end of a sentence; empty: for nothing."""
        ledger, standing = self._ledger, self._ledger.standing
        if model_id in ledger.pinned:
            return "is what a gateway is pinned to (RL_MODEL_VERSION)"
        if standing.holdback is not None and standing.holdback.model_id == model_id:
            return f"is the holdback of {standing.baseline}"
        behind = standby(standing, standing.promoted) if standing.promoted else ""
        name = behind.model_id if isinstance(behind, Rollout) else behind
        return f"stands by for {standing.baseline}" if name == model_id else ""

    async def _live(self, model_id: str) -> Rollout:
        ledger = self._ledger
        ledger.lead()
        standing = await ledger.read()
        rollout = standing.of(model_id)
        if rollout is not None:
            return rollout
        if await ledger.world.store.model(model_id) is None and model_id != ledger.base:
            raise Misuse(f"There is no model {model_id}; GET /admin/models lists them.")
        raise Conflict(f"No rollout of {model_id} is on its way.")

    def _audit(self, by: str, what: str, about: str, detail: object = None) -> Audit:
        return Audit(by, what, about, msgspec.json.encode(detail), self._ledger.world.clock())


def _share(percentage: float) -> float:
    if not 0 <= percentage <= 100:
        raise Rejected(Reason.SCHEMA, "A share is a number from 0 to 100.")
    return percentage / 100
