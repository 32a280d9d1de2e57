"""Every canary and the model that answers are evaluated: what is new, what does it mean, what now?

Read what came since, work it in, judge, act. Whatever follows is one transaction with the evidence that
it follows from.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import assert_never

import msgspec

from upswing.deploy.core.canary import Hold, Promote, RollBack, SetWeight
from upswing.deploy.core.deployment_state import DeploymentState
from upswing.deploy.core.events import ActionDecided, EndHoldback
from upswing.deploy.core.journal import (
    CanaryInputs,
    TransitionInputs,
    WatchInputs,
    apply_events,
    evaluate_canary,
    evaluate_promoted,
    hold_reason,
)
from upswing.deploy.core.record import (
    RolloutRecord,
    Tallies,
    add_complaints,
    add_rewards,
    add_tallies,
    add_watch_rewards,
    add_watch_tallies,
    begin_watching,
    total_counts,
)
from upswing.deploy.core.rollout import Rollout, apply_event
from upswing.deploy.core.transitions import (
    promotion_changes,
    restore_standby,
    retire_baseline,
    rollback_changes,
    standby_model,
    standby_of,
    with_holdback,
)
from upswing.deploy.core.watch import (
    KeepModel,
    ModelDegraded,
    begin_watch,
    frozen_error,
    frozen_reward,
)
from upswing.deploy.executor import RolloutExecutor
from upswing.deploy.model_loader import ModelLoader
from upswing.errors import Rejected, Transient
from upswing.records import Decision

log = logging.getLogger(__name__)
_BATCHES = 40
"""Of rewards in one round; the rest waits for the next."""
DEAD_AFTER = timedelta(seconds=20)
"""Real time in which a server may come back before its model counts as dead."""


class Reconciler:
    """Evaluates, and carries out what follows."""

    def __init__(self, executor: RolloutExecutor, loader: ModelLoader) -> None:
        self._executor, self._loader = executor, loader
        self._away: dict[str, datetime] = {}
        """Since when a model's server has not answered."""

    async def reconcile(self, *, regular: bool = True) -> None:
        """Evaluate all of them; `regular`: servers are asked whether they live, whatever is counted."""
        executor = self._executor
        await executor.read()
        tallies = await executor.gateways.tallies()
        await executor.gateways.refresh()
        await self._check_others(regular)
        await executor.resume()
        deployment = executor.deployment

        async def canary(name: str) -> None:
            found = [each for each in executor.deployment.active if each.rollout_id == name]
            if found:
                await self._canary(found[0], tallies, regular)

        async def promoted(rollout: Rollout) -> None:
            await self._promoted(rollout, tallies, regular)

        dead_letters, active = (
            executor.env.dead_letters,
            [each.rollout_id for each in deployment.active],
        )
        await dead_letters.process_each("deploy", "looks", active, canary)
        answers = executor.deployment.promoted
        await dead_letters.process_each(
            "deploy",
            "looks",
            [answers] if answers else [],
            promoted,
            key=lambda each: each.rollout_id,
        )
        self._report_error_rates(tallies)
        if executor.metrics:
            executor.metrics.retain_canaries({each.model_id for each in executor.deployment.active})

    # ── a canary ─────────────────────────────────────────────────────────────────────────────

    async def _canary(self, rollout: Rollout, tallies: Tallies, regular: bool) -> None:
        executor = self._executor
        record = await executor.repository.record(rollout.rollout_id)
        if record.evidence is None or rollout.canary is None:
            return
        before = msgspec.json.encode(record)
        await self._add_evidence(record, rollout, tallies)
        recent = record.evidence.errors.recent_candidate.error_rate
        limits = executor.policy.limits
        seen = CanaryInputs(
            rollout.model_id,
            rollout.rollout_id,
            rollout.canary,
            record.evidence,
            limits,
            executor.env.clock(),
            alive=await self._alive(rollout.model_id, ask=regular or recent > limits.errors),
            room=executor.deployment.share_left_for(rollout),
            override=bool(rollout.override),
            blocked=executor.gateways.blocked_reason,
        )
        await self._act(rollout, record, before, seen, tallies)

    async def _act(
        self,
        rollout: Rollout,
        record: RolloutRecord,
        before: bytes,
        seen: CanaryInputs,
        tallies: Tallies,
    ) -> None:
        executor = self._executor
        evaluation, name = evaluate_canary(seen), rollout.rollout_id
        action = evaluation.action
        if executor.metrics:
            executor.metrics.set_canary(rollout, evaluation.figures)
        after = apply_event(
            rollout, ActionDecided(action, seen.evidence.rewards.candidates), seen.now
        )
        match action:
            case Hold():
                waits = hold_reason(seen, evaluation)
                is_new_reason = waits != record.hold
                record.hold = waits
                if is_new_reason or msgspec.json.encode(record) != before or after != rollout:
                    await executor.carry_out(
                        (after,),
                        records={name: record},
                        decisions=(executor.journal_row(seen, evaluation),)
                        if is_new_reason
                        else (),
                    )
            case SetWeight():
                record.hold = ""
                await executor.carry_out(
                    (after,),
                    records={name: record},
                    decisions=(executor.journal_row(seen, evaluation),),
                )
                _log_change(after, "ramped")
            case Promote():
                await self._promote(after, record, tallies, executor.journal_row(seen, evaluation))
            case RollBack():
                incident = executor.incident(
                    rollout,
                    rollout.model_id,
                    action.reason,
                    action.sentence,
                    {
                        "figures": evaluation.figures,
                        "verdict": evaluation.verdict,
                        "evidence": seen.evidence,
                        "canary": seen.canary,
                    },
                )
                executor.alert(action.reason, rollout.model_id, action.sentence)
                await executor.carry_out(
                    (after,),
                    records={name: record},
                    decisions=(executor.journal_row(seen, evaluation),),
                    incidents=(incident,),
                    urgent=True,
                )
                _log_change(after, "rollback")
            case _:
                assert_never(action)

    async def _promote(
        self, after: Rollout, record: RolloutRecord, tallies: Tallies, decision: Decision
    ) -> None:
        executor, now = self._executor, self._executor.env.clock()
        limits, evidence = executor.policy.limits, record.evidence
        after = with_holdback(executor.deployment, after, executor.policy, now)
        frozen = frozen_reward(evidence, limits) if evidence else None
        newest = evidence.rewards.seq if evidence else 0
        begin_watching(
            record,
            after,
            limits,
            tallies,
            frozen=frozen,
            newest=newest,
            error=frozen_error(evidence) if evidence else 0.0,
        )
        await executor.carry_out(
            promotion_changes(executor.deployment, after, now),
            records={after.rollout_id: record},
            moves=retire_baseline(executor.deployment, after),
            decisions=(decision,),
            reward=frozen,
        )
        _log_change(after, "promoted")

    async def _add_evidence(
        self, record: RolloutRecord, rollout: Rollout, tallies: Tallies
    ) -> None:
        """Everything that came since, in batches."""
        if record.evidence is None:
            return
        store, evidence = self._executor.env.store, record.evidence
        models = (rollout.model_id, rollout.baseline_id)
        add_tallies(record, rollout, tallies)
        for _ in range(_BATCHES):
            rewards = await store.rewards_after(evidence.rewards.seq, models)
            add_rewards(record, rollout, rewards)
            if not rewards.more:
                break
        for _ in range(_BATCHES):
            before = evidence.complaints
            complaints = await store.complaints_after(before.seq, models, pending=before.pending)
            add_complaints(record, rollout, complaints)
            if not complaints.more:
                break

    # ── the model that answers ───────────────────────────────────────────────────────────────

    async def _promoted(self, rollout: Rollout, tallies: Tallies, regular: bool) -> None:
        executor, store = self._executor, self._executor.env.store
        record = await executor.repository.record(rollout.rollout_id)
        if record.watch is None:
            return
        before = msgspec.json.encode(record)
        rollout = await self._end_due_holdback(rollout)
        held = rollout.holdback
        if held is None:
            record.watch.held = None
        models = (rollout.model_id, held.model_id) if held else (rollout.model_id,)
        add_watch_tallies(record, rollout, tallies)
        for _ in range(_BATCHES):
            rewards = await store.rewards_after(record.watch.fall.seq, models)
            add_watch_rewards(record, rollout, rewards)
            if not rewards.more:
                break
        ask = (
            regular
            or record.watch.errors.recent_candidate.error_rate > executor.policy.limits.errors
        )
        standby = standby_of(executor.deployment, rollout)
        name = standby_model(executor.deployment, rollout)
        seen = WatchInputs(
            rollout.model_id,
            rollout.rollout_id,
            record.watch,
            executor.policy.limits,
            alive=await self._alive(rollout.model_id, ask=ask, beside=name),
            standby=name in executor.planner.served,
        )
        answer = evaluate_promoted(seen)
        match answer:
            case KeepModel():
                if msgspec.json.encode(record) != before:
                    await executor.carry_out(records={rollout.rollout_id: record})
            case ModelDegraded():
                await self._degraded(
                    rollout, record, before, answer, executor.journal_row(seen, answer)
                )
            case RollBack():
                await self._roll_back(
                    rollout, record, answer, executor.journal_row(seen, answer), standby
                )
            case _:
                assert_never(answer)

    async def _end_due_holdback(self, rollout: Rollout) -> Rollout:
        """A holdback ends when its days are over, or its model is withdrawn."""
        executor, held, now = self._executor, rollout.holdback, self._executor.env.clock()
        if held is None or executor.deployment.active:
            return rollout
        if executor.deployment.holdback is None:
            why = f"{held.model_id} is withdrawn: it keeps no share."
        elif now >= held.until:
            why = "The days of its holdback are over."
        else:
            return rollout
        stepped = TransitionInputs(rollout, (EndHoldback(why),), now)
        after = apply_events(stepped)
        log.info("%s: %s", rollout.model_id, why, extra={"action": "holdback_ended"})
        await executor.carry_out((after,), decisions=(executor.journal_row(stepped, after),))
        return after

    async def give_up(self, rollout: Rollout, why: str) -> None:
        """The model that answers can never be served again: who stands by answers."""
        executor = self._executor
        record = await executor.repository.record(rollout.rollout_id)
        watch = record.watch or begin_watch(executor.policy.limits, None)
        seen = WatchInputs(
            rollout.model_id, rollout.rollout_id, watch, executor.policy.limits, alive=False
        )
        log.error("%s: %s", rollout.model_id, why, extra={"action": "give_up"})
        answer = evaluate_promoted(seen)
        if isinstance(answer, RollBack):
            standby = standby_of(executor.deployment, rollout)
            await self._roll_back(
                rollout, record, answer, executor.journal_row(seen, answer), standby
            )

    async def _degraded(
        self,
        rollout: Rollout,
        record: RolloutRecord,
        before: bytes,
        answer: ModelDegraded,
        decision: Decision,
    ) -> None:
        """A person hears of it, once."""
        executor, new = self._executor, record.alerted != answer.reason
        record.alerted = answer.reason
        if new:
            executor.alert(answer.reason, rollout.model_id, answer.sentence)
        incident = executor.incident(
            rollout, rollout.model_id, answer.reason, answer.sentence, {"watch": record.watch}
        )
        if new or msgspec.json.encode(record) != before:
            await executor.carry_out(
                records={rollout.rollout_id: record},
                decisions=(decision,) if new else (),
                incidents=(incident,) if new else (),
            )

    async def _roll_back(
        self,
        rollout: Rollout,
        record: RolloutRecord,
        action: RollBack,
        decision: Decision,
        standby: Rollout | str,
    ) -> None:
        executor, now = self._executor, self._executor.env.clock()
        after = apply_event(rollout, ActionDecided(action), now)
        incident = executor.incident(
            rollout, rollout.model_id, action.reason, action.sentence, {"watch": record.watch}
        )
        executor.alert(action.reason, rollout.model_id, action.sentence)
        await executor.carry_out(
            rollback_changes(executor.deployment, after, now),
            records={rollout.rollout_id: record},
            moves=restore_standby(executor.deployment, standby, now),
            decisions=(decision,),
            incidents=(incident,),
            urgent=True,
        )
        _log_change(after, "rollback")

    # ── servers ──────────────────────────────────────────────────────────────────────────────

    async def _alive(self, model_id: str, *, ask: bool, beside: str = "") -> bool:
        """Does its server answer? One that is away for both models is not this one's fault."""
        executor = self._executor
        if not ask and model_id in executor.planner.served and model_id not in self._away:
            return True
        if await self._is_answering(model_id):
            self._away.pop(model_id, None)
            return True
        since = self._away.setdefault(model_id, executor.env.wall_clock())
        if self._loader.is_loading(model_id) or executor.env.wall_clock() - since < DEAD_AFTER:
            return True
        return not await self._is_answering(beside or executor.deployment.baseline)

    async def _is_answering(self, model_id: str) -> bool:
        """It answers, or does after it was loaded anew."""
        executor = self._executor
        served = executor.planner.served.get(model_id)
        try:
            if served is not None and await executor.env.serving.alive(served):
                return True
            await self._loader.wait_briefly(model_id)
        except (Transient, Rejected) as error:
            log.warning("%s: %s", model_id, error, extra={"action": "not_served"})
            return False
        return True

    async def _check_others(self, regular: bool) -> None:
        """The base, the holdback and what gateways are pinned to are served beside the plan's own."""
        executor, held = self._executor, self._executor.deployment.holdback
        for name in sorted(
            {executor.base, *executor.gateways.pinned, *((held.model_id,) if held else ())}
        ):
            if regular and name in executor.planner.served:
                await self._is_answering(name)
                continue
            try:
                self._loader.ready(name)
            except (Transient, Rejected) as error:
                log.warning("%s: %s", name, error, extra={"action": "not_served"})

    def _report_error_rates(self, tallies: Tallies) -> None:
        metrics = self._executor.metrics
        if metrics:
            for name in _named(self._executor.deployment):
                counts = total_counts(tallies, name)
                metrics.error_rate(name, counts.errors / counts.requests if counts.requests else 0)


def _named(deployment: DeploymentState) -> list[str]:
    return [deployment.baseline, *(each.model_id for each in deployment.active)]


def _log_change(rollout: Rollout, action: str) -> None:
    log.info(
        "%s: %s",
        rollout.model_id,
        rollout.sentence,
        extra={"action": action, "rollout": rollout.rollout_id, "share": rollout.share},
    )
