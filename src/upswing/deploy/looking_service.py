"""A look at every canary and at the model that answers: what is new, what does it mean, what now?

Read what came since, work it in, judge, act. Whatever follows is one transaction with the evidence that
it follows from.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import assert_never

import msgspec

from upswing.deploy.canary import Hold, Promote, RollBack, SetWeight
from upswing.deploy.events import Decided, EndHoldback
from upswing.deploy.journal import LookedAt, Stepped, Watched, look_at, waits_for, watched_answer
from upswing.deploy.ledger_service import Ledger
from upswing.deploy.loading_service import Loads
from upswing.deploy.moves import answers_again, held_back, promotion, rests, retreat, standby
from upswing.deploy.record import (
    Record,
    Tallies,
    begin_watching,
    take_complaints,
    take_rewards,
    take_tallies,
    total,
    watch_rewards,
    watch_tallies,
)
from upswing.deploy.rollout import Rollout, step
from upswing.deploy.standing import Standing
from upswing.deploy.watch import Degraded, Keep, begin_watch, frozen_error, frozen_reward
from upswing.errors import Rejected, Transient
from upswing.ports import Decision

log = logging.getLogger(__name__)
_BATCHES = 40
"""Of rewards in one look; the rest waits for the next."""
DEAD_AFTER = timedelta(seconds=20)
"""Real time in which a server may come back before its model counts as dead."""


class Looker:
    """Looks, and carries out what follows."""

    def __init__(self, ledger: Ledger, loads: Loads) -> None:
        self._ledger, self._loads = ledger, loads
        self._away: dict[str, datetime] = {}
        """Since when a model's server has not answered."""

    async def look(self, *, regular: bool = True) -> None:
        """At all of them; `regular`: servers are asked whether they live, whatever is counted."""
        ledger = self._ledger
        await ledger.read()
        tallies = await ledger.tallies()
        await ledger.hear_gateways()
        await self._beside(regular)
        await ledger.resume()
        standing = ledger.standing

        async def canary(name: str) -> None:
            found = [each for each in ledger.standing.active if each.rollout_id == name]
            if found:
                await self._canary(found[0], tallies, regular)

        async def promoted(rollout: Rollout) -> None:
            await self._promoted(rollout, tallies, regular)

        burial, active = ledger.world.burial, [each.rollout_id for each in standing.active]
        await burial.each("deploy", "looks", active, canary)
        answers = ledger.standing.promoted
        await burial.each(
            "deploy",
            "looks",
            [answers] if answers else [],
            promoted,
            key=lambda each: each.rollout_id,
        )
        self._tell_errors(tallies)

    # ── a canary ─────────────────────────────────────────────────────────────────────────────

    async def _canary(self, rollout: Rollout, tallies: Tallies, regular: bool) -> None:
        ledger = self._ledger
        record = await ledger.record(rollout.rollout_id)
        if record.evidence is None or rollout.canary is None:
            return
        known = msgspec.json.encode(record)
        await self._work_in(record, rollout, tallies)
        recent = record.evidence.errors.recent_candidate.share
        limits = ledger.policy.limits
        seen = LookedAt(
            rollout.model_id, rollout.rollout_id, rollout.canary, record.evidence, limits,
            ledger.world.clock(),
            alive=await self._alive(rollout.model_id, ask=regular or recent > limits.errors),
            room=ledger.standing.room_for(rollout), override=bool(rollout.override),
            barred=ledger.barred,
        )  # fmt: skip
        await self._act(rollout, record, known, seen, tallies)

    async def _act(
        self, rollout: Rollout, record: Record, known: bytes, seen: LookedAt, tallies: Tallies
    ) -> None:
        ledger = self._ledger
        looked, name = look_at(seen), rollout.rollout_id
        action = looked.action
        after = step(rollout, Decided(action, seen.evidence.rewards.candidates), seen.now)
        match action:
            case Hold():
                waits = waits_for(seen, looked)
                told = waits != record.hold
                record.hold = waits
                if told or msgspec.json.encode(record) != known or after != rollout:
                    await ledger.carry_out(
                        (after,), records={name: record},
                        decisions=(ledger.journalled(seen),) if told else (),
                    )  # fmt: skip
            case SetWeight():
                record.hold = ""
                await ledger.carry_out(
                    (after,), records={name: record}, decisions=(ledger.journalled(seen),)
                )
                _say(after, "ramped")
            case Promote():
                await self._promote(after, record, tallies, ledger.journalled(seen))
            case RollBack():
                incident = ledger.incident(
                    rollout, rollout.model_id, action.reason, action.sentence,
                    {"figures": looked.figures, "verdict": looked.verdict, "evidence": seen.evidence, "canary": seen.canary},
                )  # fmt: skip
                ledger.alert(action.reason, rollout.model_id, action.sentence)
                await ledger.carry_out(
                    (after,), records={name: record}, decisions=(ledger.journalled(seen),),
                    incidents=(incident,), urgent=True,
                )  # fmt: skip
                _say(after, "rollback")
            case _:
                assert_never(action)

    async def _promote(
        self, after: Rollout, record: Record, tallies: Tallies, decision: Decision
    ) -> None:
        ledger, now = self._ledger, self._ledger.world.clock()
        limits, evidence = ledger.policy.limits, record.evidence
        after = held_back(ledger.standing, after, ledger.policy, now)
        frozen = frozen_reward(evidence, limits) if evidence else None
        newest = evidence.rewards.seq if evidence else 0
        begin_watching(
            record, after, limits, tallies, frozen=frozen, newest=newest,
            error=frozen_error(evidence) if evidence else 0.0,
        )  # fmt: skip
        await ledger.carry_out(
            promotion(ledger.standing, after, now), records={after.rollout_id: record},
            moves=rests(ledger.standing, after), decisions=(decision,), reward=frozen,
        )  # fmt: skip
        _say(after, "promoted")

    async def _work_in(self, record: Record, rollout: Rollout, tallies: Tallies) -> None:
        """Everything that came since, in batches."""
        if record.evidence is None:
            return
        store, evidence = self._ledger.world.store, record.evidence
        models = (rollout.model_id, rollout.baseline_id)
        take_tallies(record, rollout, tallies)
        for _ in range(_BATCHES):
            rewards = await store.rewards_after(evidence.rewards.seq, models)
            take_rewards(record, rollout, rewards)
            if not rewards.more:
                break
        for _ in range(_BATCHES):
            known = evidence.complaints
            complaints = await store.complaints_after(known.seq, models, aside=known.aside)
            take_complaints(record, rollout, complaints)
            if not complaints.more:
                break

    # ── the model that answers ───────────────────────────────────────────────────────────────

    async def _promoted(self, rollout: Rollout, tallies: Tallies, regular: bool) -> None:
        ledger, store = self._ledger, self._ledger.world.store
        record = await ledger.record(rollout.rollout_id)
        if record.watch is None:
            return
        known = msgspec.json.encode(record)
        rollout = await self._held(rollout)
        held = rollout.holdback
        if held is None:
            record.watch.held = None
        models = (rollout.model_id, held.model_id) if held else (rollout.model_id,)
        watch_tallies(record, rollout, tallies)
        for _ in range(_BATCHES):
            rewards = await store.rewards_after(record.watch.fall.seq, models)
            watch_rewards(record, rollout, rewards)
            if not rewards.more:
                break
        ask = regular or record.watch.errors.recent_candidate.share > ledger.policy.limits.errors
        behind = standby(ledger.standing, rollout)
        name = behind.model_id if isinstance(behind, Rollout) else behind
        seen = Watched(
            rollout.model_id, rollout.rollout_id, record.watch, ledger.policy.limits,
            alive=await self._alive(rollout.model_id, ask=ask, beside=name),
            standing_by=name in ledger.served,
        )  # fmt: skip
        answer = watched_answer(seen)
        match answer:
            case Keep():
                if msgspec.json.encode(record) != known:
                    await ledger.carry_out(records={rollout.rollout_id: record})
            case Degraded():
                await self._degraded(rollout, record, known, answer, ledger.journalled(seen))
            case RollBack():
                await self._retreat(rollout, record, answer, ledger.journalled(seen), behind)
            case _:
                assert_never(answer)

    async def _held(self, rollout: Rollout) -> Rollout:
        """A holdback ends when its days are over, or its model is withdrawn."""
        ledger, held, now = self._ledger, rollout.holdback, self._ledger.world.clock()
        if held is None or ledger.standing.active:
            return rollout
        if ledger.standing.holdback is None:
            why = f"{held.model_id} is withdrawn: it keeps no share."
        elif now >= held.until:
            why = "The days of its holdback are over."
        else:
            return rollout
        stepped = Stepped(rollout, (EndHoldback(why),), now)
        after = step(rollout, stepped.events[0], now)
        log.info("%s: %s", rollout.model_id, why, extra={"action": "holdback_ended"})
        await ledger.carry_out((after,), decisions=(ledger.journalled(stepped),))
        return after

    async def give_up(self, rollout: Rollout, why: str) -> None:
        """The model that answers can never be served again: who stands by answers."""
        ledger = self._ledger
        record = await ledger.record(rollout.rollout_id)
        watch = record.watch or begin_watch(ledger.policy.limits, None)
        seen = Watched(
            rollout.model_id, rollout.rollout_id, watch, ledger.policy.limits, alive=False
        )
        log.error("%s: %s", rollout.model_id, why, extra={"action": "give_up"})
        answer = watched_answer(seen)
        if isinstance(answer, RollBack):
            behind = standby(ledger.standing, rollout)
            await self._retreat(rollout, record, answer, ledger.journalled(seen), behind)

    async def _degraded(
        self, rollout: Rollout, record: Record, known: bytes, answer: Degraded, decision: Decision
    ) -> None:
        """A person hears of it, once."""
        ledger, new = self._ledger, record.alerted != answer.reason
        record.alerted = answer.reason
        if new:
            ledger.alert(answer.reason, rollout.model_id, answer.sentence)
        incident = ledger.incident(
            rollout, rollout.model_id, answer.reason, answer.sentence, {"watch": record.watch}
        )
        if new or msgspec.json.encode(record) != known:
            await ledger.carry_out(
                records={rollout.rollout_id: record},
                decisions=(decision,) if new else (),
                incidents=(incident,) if new else (),
            )  # fmt: skip

    async def _retreat(
        self, rollout: Rollout, record: Record, action: RollBack, decision: Decision,
        behind: Rollout | str,
    ) -> None:  # fmt: skip
        ledger, now = self._ledger, self._ledger.world.clock()
        after = step(rollout, Decided(action), now)
        incident = ledger.incident(
            rollout, rollout.model_id, action.reason, action.sentence, {"watch": record.watch}
        )
        ledger.alert(action.reason, rollout.model_id, action.sentence)
        await ledger.carry_out(
            retreat(ledger.standing, after, now), records={rollout.rollout_id: record},
            moves=answers_again(ledger.standing, behind, now),
            decisions=(decision,), incidents=(incident,),
            urgent=True,
        )  # fmt: skip
        _say(after, "rollback")

    # ── servers ──────────────────────────────────────────────────────────────────────────────

    async def _alive(self, model_id: str, *, ask: bool, beside: str = "") -> bool:
        """Does its server answer? One that is away for both models is not this one's fault."""
        ledger = self._ledger
        if not ask and model_id in ledger.served and model_id not in self._away:
            return True
        if await self._answers(model_id):
            self._away.pop(model_id, None)
            return True
        since = self._away.setdefault(model_id, ledger.world.wall())
        if self._loads.under_way(model_id) or ledger.world.wall() - since < DEAD_AFTER:
            return True
        return not await self._answers(beside or ledger.standing.baseline)

    async def _answers(self, model_id: str) -> bool:
        """It answers, or does after it was loaded anew."""
        ledger = self._ledger
        served = ledger.served.get(model_id)
        try:
            if served is not None and await ledger.world.serving.alive(served):
                return True
            await self._loads.soon(model_id)
        except (Transient, Rejected) as error:
            log.warning("%s: %s", model_id, error, extra={"action": "not_served"})
            return False
        return True

    async def _beside(self, regular: bool) -> None:
        """The base, the holdback and what gateways are pinned to are served beside the plan's own."""
        ledger, held = self._ledger, self._ledger.standing.holdback
        for name in sorted({ledger.base, *ledger.pinned, *((held.model_id,) if held else ())}):
            if regular and name in ledger.served:
                await self._answers(name)
                continue
            try:
                self._loads.ready(name)
            except (Transient, Rejected) as error:
                log.warning("%s: %s", name, error, extra={"action": "not_served"})

    def _tell_errors(self, tallies: Tallies) -> None:
        metrics = self._ledger.metrics
        if metrics:
            for name in _named(self._ledger.standing):
                counts = total(tallies, name)
                metrics.error_rate(name, counts.errors / counts.requests if counts.requests else 0)


def _named(standing: Standing) -> list[str]:
    return [standing.baseline, *(each.model_id for each in standing.active)]


def _say(rollout: Rollout, word: str) -> None:
    log.info(
        "%s: %s", rollout.model_id, rollout.sentence,
        extra={"action": word, "rollout": rollout.rollout_id, "share": rollout.share},
    )  # fmt: skip
