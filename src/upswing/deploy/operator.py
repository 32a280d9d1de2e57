"""An operator asks for something: may it happen, and what follows?

| action                    | what it does                                                            |
|---------------------------|-------------------------------------------------------------------------|
| approve                   | lets it begin; while it ramps: stands for the proof                      |
| pause, resume             | holds the traffic where it is; the step goes on where it stood           |
| rollback                  | rolls it back, be it a canary or the model that answers                  |
| traffic, below 100 %      | holds a model at that share: beside others, too; no lease, no ramp       |
| traffic, 0 %              | ends its rollout: newcomers do not wait for it; it may have traffic again |
| traffic, 100 %            | makes it the baseline; of the baseline: takes all candidates back        |
| override                  | a canary without a passed validation, rolled back by the same tests      |
| revalidate                | its validation is run once more                                          |
| register                  | a model that training did not make; it is validated like any other       |

What was never validated gets no traffic except by an override, and never all of it. Every action leaves a
row in the audit and, where something is decided, one in the journal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

import msgspec
from msgspec.structs import replace

from upswing.deploy.candidates import CandidateQueue
from upswing.deploy.core.canary import Promote, RollBack
from upswing.deploy.core.deployment_state import decode_rollout
from upswing.deploy.core.events import (
    ActionDecided,
    ApproveRollout,
    BeginRollout,
    PauseRollout,
    ResumeRollout,
    RolloutEvent,
    WithdrawRollout,
)
from upswing.deploy.core.journal import TransitionInputs, apply_events
from upswing.deploy.core.next_step import next_step
from upswing.deploy.core.ramp import ramp_steps
from upswing.deploy.core.record import begin_watching
from upswing.deploy.core.rollout import Rollout, new_rollout
from upswing.deploy.core.rows import Incident, ModelStateChange, RegisteredModel
from upswing.deploy.core.states import ACTIVE, OVERRIDABLE, ModelState, RolloutState
from upswing.deploy.core.strategy import CAUTIOUS, CanaryStrategy, ImmediateStrategy
from upswing.deploy.core.transitions import (
    model_state_change,
    promotion_changes,
    restore_standby,
    retire_baseline,
    rollback_changes,
    standby_model,
    standby_of,
    without_holdback,
)
from upswing.deploy.core.watch import frozen_error, frozen_reward
from upswing.deploy.executor import RolloutExecutor
from upswing.deploy.model_loader import ModelLoader, PlannedAction
from upswing.errors import Conflict, Misuse, Reason, Rejected
from upswing.records import AuditEntry, Decision

_TOLERANCE = 1e-9
_SHIPPABLE = {ModelState.PASSED, ModelState.RETIRED, ModelState.CANARY, ModelState.DEPLOYED}


@dataclass(frozen=True, slots=True)
class Transition:
    """What an operator's events make of a rollout; computed once, and journalled as it was."""

    inputs: TransitionInputs
    after: Rollout


class Operator:
    """Carries out what operators ask for."""

    def __init__(
        self, executor: RolloutExecutor, loader: ModelLoader, candidates: CandidateQueue
    ) -> None:
        self._executor, self._loader, self._candidates = executor, loader, candidates

    async def act(self, action: str, model_id: str | None, by: str, why: str = "") -> Rollout:
        """An operator's action on a rollout; without a model, `rollback` finds the one it is about."""
        match action, model_id:
            case "rollback", _:
                return await self.rollback(model_id, by, why)
            case "approve", str():
                return await self.approve(model_id, by, why)
            case "pause", str():
                return await self.pause(model_id, by, why)
            case "resume", str():
                return await self.resume(model_id, by, why)
            case "override", str():
                return await self.override(model_id, by, why)
            case _:
                raise Misuse(f"Nobody knows how to {action}.")

    # ── a rollout ────────────────────────────────────────────────────────────────────────────

    async def approve(self, model_id: str, by: str, why: str = "") -> Rollout:
        """Agree to the first traffic, or to 100 %."""
        event = ApproveRollout(by, patience=timedelta(days=self._executor.policy.undecided_days))

        async def plan() -> PlannedAction[Rollout]:
            rollout = await self._live(model_id)
            if rollout.override:
                raise Conflict(f"{model_id} has no passed validation: it never gets all traffic.")
            waits = rollout.state is RolloutState.AWAITING
            if waits:
                self._refuse_stale(rollout)
                await self._refuse_blocked(model_id)
            step = self._transition(rollout, event)
            if waits and step.after.state is RolloutState.RAMPING:
                self._refuse_second(rollout, step.after.share)
            return PlannedAction(
                (model_id,) if waits else (),
                lambda: self._apply(step, "approve", by, {"why": why}),
            )

        return await self._loader.with_loaded(plan)

    def _refuse_stale(self, rollout: Rollout) -> None:
        """It was validated beside a model that no longer answers."""
        now = self._executor.deployment.baseline
        if rollout.baseline_id != now:
            raise Conflict(
                f"{rollout.model_id} was compared with {rollout.baseline_id}, and {now} answers now: "
                "it is validated again first."
            )

    async def _refuse_blocked(self, model_id: str) -> None:
        """What no gateway may serve does not begin."""
        await self._executor.gateways.refresh()
        if reason := self._executor.gateways.blocked_reason:
            raise Conflict(f"{model_id} does not begin. {reason}")

    async def pause(self, model_id: str, by: str, why: str = "") -> Rollout:
        """Hold the traffic where it is."""
        async with self._executor.lock:
            rollout = await self._live(model_id)
            step = self._transition(rollout, PauseRollout(by))
            return await self._apply(step, "pause", by, {"why": why})

    async def resume(self, model_id: str, by: str, why: str = "") -> Rollout:
        """Let the ramp go on where it stood."""
        async with self._executor.lock:
            rollout = await self._live(model_id)
            step = self._transition(rollout, ResumeRollout(by))
            self._refuse_second(rollout, step.after.share)
            return await self._apply(step, "resume", by, {"why": why})

    async def rollback(self, model_id: str | None, by: str, why: str = "") -> Rollout:
        """Roll a model back; None: the one being rolled out, or else the one that answers."""
        sentence = f"{by} rolled it back{f': {why}' if why else ''}."

        async def plan() -> PlannedAction[Rollout]:
            rollout = await self._with_traffic(model_id)
            standby = standby_model(self._executor.deployment, rollout)
            return PlannedAction(
                (standby,) if rollout.state is RolloutState.PROMOTED else (),
                lambda: self._roll_back(rollout, sentence, "rollback", by),
            )

        return await self._loader.with_loaded(plan)

    async def _with_traffic(self, model_id: str | None) -> Rollout:
        self._executor.leadership.require()
        deployment = await self._executor.read()
        found = deployment.active[0] if deployment.active else deployment.promoted
        rollout = await self._live(model_id) if model_id else found
        if rollout is None:
            raise Conflict(f"{deployment.baseline} answers alone, and nothing stands behind it.")
        if rollout.state not in ACTIVE | {RolloutState.PROMOTED}:
            raise Conflict(
                f"The rollout of {rollout.model_id} is {rollout.state}: it has no traffic."
            )
        return rollout

    async def _roll_back(self, rollout: Rollout, sentence: str, what: str, by: str) -> Rollout:
        executor, now = self._executor, self._executor.env.clock()
        step = self._transition(rollout, ActionDecided(RollBack("operator", sentence)))
        after = step.after
        record = await executor.repository.record(rollout.rollout_id)
        incident = executor.incident(rollout, rollout.model_id, "operator", sentence, record)
        changed: tuple[Rollout, ...] = (after,)
        moves: tuple[ModelStateChange, ...] = ()
        if rollout.state is RolloutState.PROMOTED:
            standby = standby_of(executor.deployment, rollout)
            changed = rollback_changes(executor.deployment, after, now)
            moves = restore_standby(executor.deployment, standby, now)
        await executor.carry_out(
            changed,
            moves=moves,
            decisions=(executor.journal_row(step.inputs, after),),
            incidents=(incident,),
            audit=(self._audit(by, what, rollout.model_id, {"sentence": sentence}),),
            by=by,
            urgent=True,
        )
        return after

    def _transition(self, rollout: Rollout, *events: RolloutEvent) -> Transition:
        """What these events make of a rollout, or `Conflict`."""
        inputs = TransitionInputs(rollout, events, self._executor.env.clock())
        return Transition(inputs, apply_events(inputs))

    async def _apply(
        self,
        step: Transition,
        what: str,
        by: str,
        detail: object = None,
        incidents: tuple[Incident, ...] = (),
    ) -> Rollout:
        """Carry a transition out, with everything that follows."""
        executor, rollout, after = self._executor, step.inputs.rollout, step.after
        audit = (self._audit(by, what, rollout.model_id, detail),)
        decisions = (executor.journal_row(step.inputs, after),)
        if rollout.state not in ACTIVE and after.state in ACTIVE | {RolloutState.PROMOTED}:
            await self._candidates.enter(
                after,
                decisions,
                by=by,
                audit=audit,
                incidents=incidents,
                holdback=what != "traffic",
            )
        elif after.state is RolloutState.PROMOTED:
            await self._promote(rollout, after, decisions, audit, by)
        else:
            await executor.carry_out((after,), decisions=decisions, audit=audit, by=by)
        return after

    async def _promote(
        self,
        rollout: Rollout,
        after: Rollout,
        decisions: tuple[Decision, ...],
        audit: tuple[AuditEntry, ...],
        by: str,
    ) -> None:
        executor, limits = self._executor, self._executor.policy.limits
        record = await executor.repository.record(rollout.rollout_id)
        frozen = frozen_reward(record.evidence, limits) if record.evidence else None
        newest = (await executor.env.store.newest_sequences())[0]
        begin_watching(
            record,
            after,
            limits,
            await executor.gateways.tallies(),
            frozen=frozen,
            newest=newest,
            error=frozen_error(record.evidence) if record.evidence else 0.0,
        )
        await executor.carry_out(
            promotion_changes(executor.deployment, after, executor.env.clock()),
            records={after.rollout_id: record},
            moves=retire_baseline(executor.deployment, after),
            decisions=decisions,
            audit=audit,
            by=by,
            reward=frozen,
        )

    # ── traffic ──────────────────────────────────────────────────────────────────────────────

    async def set_traffic(self, model_id: str, percentage: float, by: str) -> None:
        """Hold a model at this share, or with 100 make it the baseline."""
        await self.split({model_id: percentage}, by)

    async def split(self, percentages: Mapping[str, float], by: str) -> None:
        """Hold models side by side at fixed shares; the baseline gets the rest."""
        shares = {name: _share(percentage) for name, percentage in percentages.items()}
        total = math.fsum(shares.values())
        if not shares or not total <= 1 + _TOLERANCE:
            raise Rejected(
                Reason.SCHEMA, f"The shares sum to {total * 100:g} %, of {len(shares)} models."
            )
        if len(shares) > 1 and max(shares.values()) >= 1:
            raise Rejected(Reason.SCHEMA, "Who gets 100 % gets it alone.")

        async def plan() -> PlannedAction[None]:
            self._executor.leadership.require()
            await self._executor.read()
            targets = [
                (await self._rollout_for_share(name, share), share)
                for name, share in shares.items()
            ]
            for target, share in targets:
                if target is not None and target.state not in ACTIVE and 0 < share < 1:
                    await self._refuse_blocked(target.model_id)
            held = {
                target.rollout_id: share
                for target, share in targets
                if target is not None and share < 1
            }
            if held:
                self._refuse_too_many(held)
            # Who gives traffic up waits for no server.
            needs = [
                target.model_id
                for target, share in targets
                if target is not None
                and share
                and (target.state not in ACTIVE or share > target.share)
            ]
            return PlannedAction(needs, lambda: self._hold_all(shares, by))

        await self._loader.with_loaded(plan)

    async def _hold_all(self, shares: Mapping[str, float], by: str) -> None:
        had = {each.model_id: each.share for each in self._executor.deployment.active}
        # Whoever gives comes first, so that on the way, too, nobody gets what is not there.
        for name in sorted(shares, key=lambda each: shares[each] - had.get(each, 0.0)):
            await self._hold(name, shares[name], by)

    async def _hold(self, name: str, share: float, by: str) -> None:
        """One model's share, whatever its rollout was at."""
        executor, detail = self._executor, {"traffic_percentage": share * 100}
        rollout = await self._rollout_for_share(name, share)
        if rollout is None:
            sentence, active = f"{by} gave all traffic to {name}.", executor.deployment.active
            for each in active:
                await self._roll_back(each, sentence, "traffic", by)
            ended = without_holdback(executor.deployment, sentence, executor.env.clock())
            if ended or not active:
                audit = self._audit(by, "traffic", name, detail)
                await executor.carry_out(ended, audit=(audit,))
            return
        if not share:
            await self._end(name, by, detail)
            return
        events: tuple[RolloutEvent, ...] = ()
        if rollout.state not in ACTIVE:
            patience = timedelta(days=executor.policy.undecided_days)
            agreed = ApproveRollout(by, patience=patience)
            waits = rollout.state is RolloutState.AWAITING
            events = (agreed,) if waits else (agreed, BeginRollout(patience=patience))
        if share < 1:
            events = (*events, PauseRollout(by, share))
        elif not events:
            events = (ActionDecided(Promote(f"{by} gave it all traffic.")),)
        await self._apply(self._transition(rollout, *events), "traffic", by, detail)

    async def _end(self, name: str, by: str, detail: object) -> None:
        """It has no traffic any more, and stands in nobody's way."""
        executor, sentence = self._executor, f"{by} took its traffic away."
        rollout = executor.deployment.rollout_of(name)
        if rollout is None:
            await executor.carry_out(audit=(self._audit(by, "traffic", name, detail),), by=by)
            return
        over: RolloutEvent = WithdrawRollout("operator", sentence)
        if rollout.override:  # what was never validated does not rest, it goes back
            over = ActionDecided(RollBack("operator", sentence))
        await self._apply(self._transition(rollout, over), "traffic", by, detail)

    async def _rollout_for_share(self, name: str, share: float) -> Rollout | None:
        """The rollout by which this model can have this share; None: it is the baseline."""
        executor = self._executor
        if name == executor.deployment.baseline:
            if share < 1:
                raise Conflict(f"{name} is the baseline: it gets what the others leave.")
            return None
        row = await executor.repository.include_model(name)
        live = executor.deployment.rollout_of(name)
        if live is not None and live.state in ACTIVE:
            return live
        if row is None and name != executor.base:
            raise Misuse(
                f"There is no model {name}; `upswing models` and GET /admin/models list them."
            )
        if row is not None and ModelState(row.state) not in _SHIPPABLE:
            why = next_step(name, ModelState(row.state))
            raise Conflict(f"Without a passed validation no model gets a share of its own. {why}")
        return self._with_share(live or await self._once_more(name), share)

    async def _once_more(self, name: str) -> Rollout:
        """A rollout for a model that was out before, or passed and was passed over."""
        executor, deployment = self._executor, self._executor.deployment
        row = await executor.env.store.latest_rollout(name)
        last = self._executor.env.dead_letters.bad_rows.read_one(
            "deploy", "rollouts", row, decode_rollout
        )
        validation = last.validation_id if last and not last.override else ""
        validation = "base" if name == executor.base else validation
        if not validation:
            raise Conflict(f"{name} has no passed validation.")
        return new_rollout(
            str(executor.env.new_id()),
            name,
            deployment.baseline,
            validation,
            ImmediateStrategy("An operator chose it."),
            executor.env.clock(),
            results=last.results if last else None,
        )

    def _with_share(self, rollout: Rollout, share: float) -> Rollout:
        """The operator's share decides the strategy; a ramp stands ready for whoever resumes it."""
        policy, baseline = self._executor.policy, self._executor.deployment.baseline
        if share >= 1:
            strategy = ImmediateStrategy("An operator gave it all traffic.")
            return replace(rollout, baseline_id=baseline, strategy=strategy, steps=())
        initial = policy.boldness.initial
        steps = ramp_steps(initial, policy.ramp_hours, policy.samples)
        held = CanaryStrategy(initial, f"An operator holds it at {share * 100:g} %.")
        return replace(rollout, baseline_id=baseline, strategy=held, steps=steps)

    def _refuse_second(self, rollout: Rollout, share: float) -> None:
        """One ramps at a time, and only into what the others leave."""
        other = self._executor.deployment.ramping
        if other is not None and other.rollout_id != rollout.rollout_id:
            raise Conflict(f"{other.model_id} ramps: one at a time.")
        self._refuse_too_many({rollout.rollout_id: share})

    def _refuse_too_many(self, shares: Mapping[str, float]) -> None:
        """All shares together leave room for the baseline."""
        others = [e.share for e in self._executor.deployment.active if e.rollout_id not in shares]
        total = math.fsum((*others, *shares.values()))
        if not total <= 1 + _TOLERANCE:
            raise Conflict(f"With what others have the shares would sum to {total * 100:g} %.")

    # ── models ───────────────────────────────────────────────────────────────────────────────

    async def override(self, model_id: str, by: str, why: str) -> Rollout:
        """Push a model out without a passed validation: as a canary, and under the same tests."""
        sentence = f"{by} overrides the missing validation: {why}"

        async def plan() -> PlannedAction[Rollout]:
            rollout = await self._overriding(model_id, by, sentence)
            return PlannedAction((model_id,), lambda: self._override(rollout, by, why, sentence))

        return await self._loader.with_loaded(plan)

    async def _overriding(self, model_id: str, by: str, sentence: str) -> Rollout:
        """The rollout that this would be."""
        executor, policy = self._executor, self._executor.policy
        executor.leadership.require()
        deployment = await executor.read()
        row = await executor.repository.include_model(model_id)
        if row is None:
            raise Misuse(
                f"There is no model {model_id}; `upswing models` and GET /admin/models list them."
            )
        if model_id == self._candidates.validating or ModelState(row.state) not in OVERRIDABLE:
            raise Conflict(f"{model_id} is {row.state}: there is nothing to override.")
        share = min(CAUTIOUS, policy.boldness.initial)
        rollout = new_rollout(
            str(executor.env.new_id()),
            model_id,
            deployment.baseline,
            "",
            CanaryStrategy(share, sentence),
            executor.env.clock(),
            policy.ramp_hours,
            policy.samples,
            override=by,
        )
        self._refuse_second(rollout, share)
        await self._refuse_blocked(model_id)
        return rollout

    async def _override(self, rollout: Rollout, by: str, why: str, sentence: str) -> Rollout:
        executor, name = self._executor, rollout.model_id
        begin = BeginRollout(patience=timedelta(days=executor.policy.undecided_days))
        executor.alert("emergency_override", name, sentence)
        incident = executor.incident(rollout, name, "emergency_override", sentence, rollout)
        step = self._transition(rollout, begin)
        return await self._apply(step, "override", by, {"why": why}, incidents=(incident,))

    async def revalidate(self, model_id: str, by: str, why: str = "") -> None:
        """Have a model validated once more, whatever came of it before."""
        executor = self._executor
        async with executor.lock:
            executor.leadership.require()
            await executor.read()
            if await executor.repository.include_model(model_id) is None:
                raise Misuse(
                    f"There is no model {model_id}; `upswing models` and GET /admin/models list them."
                )
            if (rollout := executor.deployment.rollout_of(model_id)) is not None:
                raise Conflict(f"The rollout of {model_id} is {rollout.state}.")
            if needed := self._needed(model_id):
                raise Conflict(f"{model_id} {needed}: while it is validated it could not answer.")
            move = model_state_change(executor.deployment, model_id, ModelState.VALIDATING)
            audit = self._audit(by, "revalidate", model_id, {"why": why})
            await executor.carry_out(moves=(move,), audit=(audit,), by=by)

    async def register(self, new: RegisteredModel, by: str) -> None:
        """Make a model known; it is validated, and then waits for approval."""
        executor = self._executor
        async with executor.lock:
            executor.leadership.require()
            await executor.read()
            if new.model_id == executor.base:
                raise Conflict(f"{new.model_id} is the base.")
            audit = self._audit(
                by, "register", new.model_id, {"base_model": new.base_model, "path": new.path}
            )
            await executor.carry_out(newcomer=new, audit=(audit,), by=by)

    # ── inside ───────────────────────────────────────────────────────────────────────────────

    def _needed(self, model_id: str) -> str:
        """For what a model that rests is kept, as the end of a sentence; empty: for nothing."""
        executor, deployment = self._executor, self._executor.deployment
        if model_id in executor.gateways.pinned:
            return "is what a gateway is pinned to (RL_MODEL_VERSION)"
        if deployment.holdback is not None and deployment.holdback.model_id == model_id:
            return f"is the holdback of {deployment.baseline}"
        name = standby_model(deployment, deployment.promoted) if deployment.promoted else ""
        return f"stands by for {deployment.baseline}" if name == model_id else ""

    async def _live(self, model_id: str) -> Rollout:
        executor = self._executor
        executor.leadership.require()
        deployment = await executor.read()
        rollout = deployment.rollout_of(model_id)
        if rollout is not None:
            return rollout
        row = await executor.env.store.model(model_id)
        if row is None and model_id != executor.base:
            raise Misuse(
                f"There is no model {model_id}; `upswing models` and GET /admin/models list them."
            )
        why = next_step(model_id, ModelState(row.state)) if row is not None else ""
        raise Conflict(why or f"No rollout of {model_id} is under way.")

    def _audit(self, by: str, what: str, about: str, detail: object = None) -> AuditEntry:
        return AuditEntry(by, what, about, msgspec.json.encode(detail), self._executor.env.clock())


def _share(percentage: float) -> float:
    if not 0 <= percentage <= 100:
        raise Rejected(Reason.SCHEMA, "A share is a number from 0 to 100.")
    return percentage / 100
