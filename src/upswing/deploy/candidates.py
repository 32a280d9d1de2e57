"""A model was trained: is it validated, how boldly is it rolled out, and when is its turn?

| what comes of it                         | the model              | and then                              |
|------------------------------------------|------------------------|---------------------------------------|
| its checkpoint cannot be served          | failed                 | a person is called                    |
| validation: fail, inconclusive           | failed, undecided      | a person is called                    |
| validation: pass, but not better         | aborted                | a person is called                    |
| validation: pass, not shown to be better | passed                 | its rollout waits for an approval     |
| training did not change it               | failed                 | it is not validated                   |
| validation: pass                         | passed                 | its rollout begins, or waits          |
| no task of the user's own can be played  | passed, if nothing is  | a canary from 5 %, if training's own  |
|                                          | worse                  | estimate says that it is better       |
| the model that it was trained from       | aborted                | the next training starts from what    |
| answers no more                          |                        | answers now                           |
| the baseline changed meanwhile           | is validated again     | only what a person registered         |
| nobody could validate it just now        | is validated again     | later; after five times: undecided    |

A model that training did not make waits for a person's approval.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec.structs import replace

from upswing.contracts.validation import ValidationReport
from upswing.deploy.core.deployment_state import DeploymentState
from upswing.deploy.core.events import BeginRollout
from upswing.deploy.core.journal import (
    QueueInputs,
    StartInputs,
    StrategyInputs,
    next_turn,
    start_decision_of,
    strategy_for,
)
from upswing.deploy.core.offline import (
    CanaryWorth,
    LoggedEstimate,
    worth_of_estimate,
    worth_of_played_tasks,
)
from upswing.deploy.core.queueing import (
    ReplaceRunning,
    RolloutContender,
    SkipCandidate,
    StartNow,
    WaitForRunning,
)
from upswing.deploy.core.record import RolloutRecord, begin_record, begin_watching
from upswing.deploy.core.rollout import Rollout, apply_event, new_rollout
from upswing.deploy.core.rows import Incident, LeadershipLost, ModelStateChange
from upswing.deploy.core.states import ACTIVE, ModelState, RolloutState
from upswing.deploy.core.strategy import AbortStrategy
from upswing.deploy.core.transitions import (
    model_state_change,
    promotion_changes,
    retire_baseline,
    with_holdback,
    withdraw,
    without_holdback,
)
from upswing.deploy.core.watch import standard_error
from upswing.deploy.executor import RolloutExecutor
from upswing.deploy.metrics import ABORTED
from upswing.deploy.model_loader import ModelLoader
from upswing.errors import Denied, Misuse, Rejected, Transient
from upswing.infra.backoff import Backoff
from upswing.records import AuditEntry, Decision, ModelRow

log = logging.getLogger(__name__)
Validate = Callable[[str, str], Awaitable[ValidationReport]]
"""(candidate, current) → what came of it; both are served."""
NoChangeAdvice = Callable[[ModelRow], Awaitable[str | None]]
"""What to try next, where training said of its model that nothing in it has changed; None: it has."""
ReadEstimate = Callable[[ModelRow], Awaitable[LoggedEstimate | None]]
"""What training estimated from logged episodes."""


@dataclass(frozen=True, slots=True)
class CandidateChecks:
    """What is asked about a model before it may have traffic."""

    validate: Validate
    no_change_advice: NoChangeAdvice | None = None
    logged_estimate: ReadEstimate | None = None


REGISTERED = "registered-"
"""How the job of a model begins that training did not make."""
_TRIES = 5
_RETRIES = Backoff(30.0)
"""Seconds of real time before the next try."""
_NOTHING_PLAYED = "No task of your own can be played."
_STATE_OF_VERDICT = {
    "pass": ModelState.PASSED,
    "fail": ModelState.FAILED,
    "inconclusive": ModelState.UNDECIDED,
}


class CandidateQueue:
    """Validates what is new, and lets it begin."""

    def __init__(
        self,
        executor: RolloutExecutor,
        loader: ModelLoader,
        checks: CandidateChecks,
    ) -> None:
        self._executor, self._loader, self._checks = executor, loader, checks
        self.validating: str | None = None
        self._tries: dict[str, int] = {}
        self._later: dict[str, datetime] = {}
        self._over: set[str] = set()
        """Decisions to pass over that are journalled."""

    # ── validating ───────────────────────────────────────────────────────────────────────────

    async def admit(self) -> bool:
        """Take the newest model that nobody has validated; False when there is none."""
        executor = self._executor
        async with executor.lock:
            executor.leadership.require()
            row = await self._next(await executor.read())
            if row is None:
                return False
            current = executor.deployment.baseline
            self.validating = row.model_id
            if row.state != ModelState.VALIDATING:
                move = model_state_change(executor.deployment, row.model_id, ModelState.VALIDATING)
                await executor.carry_out(moves=(move,))
        try:
            await self._validate(row, current)
        finally:
            self.validating = None
        return True

    async def _next(self, deployment: DeploymentState) -> ModelRow | None:
        now = self._executor.env.wall_clock()
        new = [
            row
            for row in deployment.models.values()
            if row.state in {ModelState.TRAINED, ModelState.VALIDATING}
        ]
        for row in sorted(new, key=lambda each: -each.version):
            if self._is_orphan(row):
                await self._drop(row)
                continue
            if await self._passed_over(deployment, row):
                continue
            if row.model_id not in self._later or self._later[row.model_id] <= now:
                return row
        return None

    async def _passed_over(self, deployment: DeploymentState, row: ModelRow) -> bool:
        """Something newer is being rolled out, or answers already: this one need not be validated."""
        busy = [deployment.in_progress, deployment.promoted, *deployment.queued]
        newest = max((deployment.version_of(each.model_id) for each in busy if each), default=0)
        if newest <= row.version:
            return False
        running = next(e for e in busy if e and deployment.version_of(e.model_id) == newest)
        name = f"skip-{row.model_id}-{running.rollout_id}"
        if name not in self._over:
            self._over.add(name)
            mine = _contender(deployment, row.model_id)
            inputs = StartInputs(mine, _running(deployment, running), "wait")
            await self._executor.carry_out(
                decisions=(self._executor.journal_row(inputs, start_decision_of(inputs), name),)
            )
        return True

    def _is_orphan(self, row: ModelRow) -> bool:
        """Whether it was trained from a model that answers no more; a person's model has no parent."""
        executor = self._executor
        by_hand = row.job_id.startswith(REGISTERED)
        return not by_hand and (row.parent or executor.base) != executor.deployment.baseline

    async def _drop(self, row: ModelRow) -> None:
        """One model at a time: what was learned from a former model is not worth a comparison."""
        executor = self._executor
        parent = row.parent or executor.base
        sentence = f"It was trained from {parent}, but {executor.deployment.baseline} answers now."
        log.info("%s: %s", row.model_id, sentence, extra={"action": "dropped"})
        move = model_state_change(executor.deployment, row.model_id, ModelState.ABORTED)
        incident = executor.incident(None, row.model_id, "parent_replaced", sentence, row)
        await executor.carry_out(moves=(move,), incidents=(incident,))

    async def _validate(self, row: ModelRow, current: str) -> None:
        name = row.model_id
        try:
            if (advice := await self._advice(row)) is not None:
                judged = self._judged(row, current, "", "no_change", (advice,), None)
                await self._record_verdict(replace(judged, changed=False), ModelState.FAILED, None)
                return
            await self._loader.wait_loaded(current)
            await self._loader.wait_loaded(name)
            report = await self._checks.validate(name, current)
        except LeadershipLost:
            raise
        except Transient as error:
            await self._retry_later(row, current, error)
            return
        except (Rejected, Misuse, Denied) as error:
            judged = self._judged(row, current, "", "fail", (str(error),), None)
            await self._record_verdict(judged, ModelState.FAILED, None)
            return
        except Exception as error:  # one model that nobody can validate ends no controller
            log.exception("%s could not be validated", name, extra={"action": "not_proved"})
            await self._retry_later(row, current, error)
            return
        self._tries.pop(name, None)
        estimate = report.improvement.estimate if report.improvement else None
        sound = estimate if estimate is not None and math.isfinite(estimate) else None
        judged = self._judged(row, current, report.run_id, report.verdict, report.reasons, sound)
        judged = replace(judged, shown=is_improvement_shown(report))
        if not judged.shown:
            worth = await self._worth(row)
            judged = with_logged_estimate(judged, report, worth) if worth else judged
            judged = with_played_tasks(judged, report, worth)
        await self._record_verdict(judged, _STATE_OF_VERDICT[judged.verdict], report)

    async def _worth(self, row: ModelRow) -> CanaryWorth | None:
        """What training's own estimate says of a model that it made."""
        estimate = self._checks.logged_estimate
        if estimate is None or row.job_id.startswith(REGISTERED):
            return None
        return worth_of_estimate(await estimate(row))

    async def _advice(self, row: ModelRow) -> str | None:
        """What to try next, where nothing changed; what was registered by hand is validated in any case."""
        advice = self._checks.no_change_advice
        by_hand = row.job_id.startswith(REGISTERED)
        return None if advice is None or by_hand else await advice(row)

    async def _retry_later(self, row: ModelRow, current: str, error: Exception) -> None:
        """Later, and not for ever."""
        name = row.model_id
        tries = self._tries[name] = self._tries.get(name, 0) + 1
        log.warning("%s: %s", name, error, extra={"action": "not_proved", "tries": tries})
        if tries < _TRIES:
            self._later[name] = self._executor.env.wall_clock() + timedelta(
                seconds=_RETRIES.seconds(tries)
            )
            return
        judged = self._judged(row, current, "", "inconclusive", (str(error) or repr(error),), None)
        await self._record_verdict(judged, ModelState.UNDECIDED, None)

    def _judged(
        self,
        row: ModelRow,
        current: str,
        run_id: str,
        verdict: str,
        reasons: tuple[str, ...],
        improvement: float | None,
    ) -> StrategyInputs:
        boldness = self._executor.policy.boldness
        if row.job_id.startswith(REGISTERED):
            boldness = replace(boldness, approval=True)
        return StrategyInputs(
            row.model_id, current, run_id, verdict, reasons, improvement, boldness
        )

    async def _record_verdict(
        self, judged: StrategyInputs, state: ModelState, report: ValidationReport | None
    ) -> None:
        """The verdict becomes rows: the model's state, and its rollout if it ships."""
        executor = self._executor
        async with executor.lock:
            deployment = await executor.read()
            if deployment.baseline != judged.current and state is ModelState.PASSED:
                return  # what was validated is about another baseline: it is validated again
            strategy = strategy_for(judged)
            decision = executor.journal_row(judged, strategy)
            if isinstance(strategy, AbortStrategy):
                moves = [model_state_change(deployment, judged.model_id, state)]
                if state is ModelState.PASSED:
                    moves.append(
                        ModelStateChange(
                            judged.model_id, ModelState.ABORTED.value, (ModelState.PASSED.value,)
                        )
                    )
                reason = (
                    "not_better" if state is ModelState.PASSED else f"validation_{judged.verdict}"
                )
                reason = reason if judged.changed else "no_change"
                why = " ".join((strategy.sentence, *judged.reasons))
                executor.alert(reason, judged.model_id, why)
                incident = executor.incident(None, judged.model_id, reason, why, judged)
                await executor.carry_out(moves=moves, decisions=(decision,), incidents=(incident,))
                if executor.metrics:
                    executor.metrics.count_deployment(ABORTED)
                return
            policy = executor.policy
            rollout = new_rollout(
                str(executor.env.new_id()),
                judged.model_id,
                deployment.baseline,
                judged.validation_id or decision.decision_id,
                strategy,
                executor.env.clock(),
                policy.ramp_hours,
                policy.samples,
                results=report.results if report else None,
            )
            log.info(
                "%s: %s",
                judged.model_id,
                strategy.sentence,
                extra={"action": "validated", "model": judged.model_id},
            )
            if not strategy.shown:
                executor.alert("needs_approval", judged.model_id, strategy.sentence)
            await executor.carry_out((rollout,), decisions=(decision,))
            await self.start_next()

    # ── turns ────────────────────────────────────────────────────────────────────────────────

    async def start_next(self) -> None:
        """Whoever waits and may, begins."""
        executor = self._executor
        await self._drop_stale()
        queued = executor.deployment.queued
        if not queued:
            return
        queue = _queue(executor.deployment, queued)
        start_next = next_turn(queue)
        by_model = {each.model_id: each for each in queued}
        over = [by_model[name] for name in start_next.passed_over]
        if over:
            now = executor.env.clock()
            ended = [withdraw(each, "passed_over", start_next.sentence, now) for each in over]
            await executor.carry_out(ended, decisions=(executor.journal_row(queue, start_next),))
        await self._start_or_wait(by_model[start_next.next or ""])

    async def _start_or_wait(self, rollout: Rollout) -> None:
        executor, deployment, now = (
            self._executor,
            self._executor.deployment,
            self._executor.env.clock(),
        )
        running = deployment.in_progress
        inputs = self._start_inputs(deployment, rollout.model_id)
        start = start_decision_of(inputs)
        match start:
            case StartNow():
                if await self._ready(rollout):
                    await self._begin(rollout, (executor.journal_row(inputs, start),))
            case ReplaceRunning(sentence) if running is not None:
                if await self._ready(rollout):
                    ended = withdraw(running, "replaced", sentence, now)
                    await executor.carry_out(
                        (ended,), decisions=(executor.journal_row(inputs, start),)
                    )
                    await self._begin(rollout, ())
            case SkipCandidate(sentence):
                ended = withdraw(rollout, "passed_over", sentence, now)
                await executor.carry_out((ended,), decisions=(executor.journal_row(inputs, start),))
            case WaitForRunning() | ReplaceRunning():
                whom = "switches" if inputs.blocked else running.rollout_id if running else ""
                name = f"wait-{rollout.rollout_id}-{whom}"
                if (
                    rollout.sentence
                    != (waits := executor.journal_row(inputs, start, name)).sentence
                ):
                    waiting = replace(rollout, sentence=waits.sentence)
                    await executor.carry_out((waiting,), decisions=(waits,))

    def _start_inputs(self, deployment: DeploymentState, model_id: str) -> StartInputs:
        """A newcomer, and whom it meets."""
        mine, running = _contender(deployment, model_id), deployment.in_progress
        theirs = _running(deployment, running) if running else None
        return StartInputs(
            mine, theirs, self._executor.policy.newcomers, self._executor.gateways.blocked_reason
        )

    async def _drop_stale(self) -> None:
        """What was validated beside another baseline is validated again, unless its parent is gone."""
        executor = self._executor
        for each in executor.deployment.waiting:
            if each.baseline_id != executor.deployment.baseline:
                sentence = (
                    f"{executor.deployment.baseline} answers now: it is to be compared with that."
                )
                ended = withdraw(each, "stale_validation", sentence, executor.env.clock())
                row = executor.deployment.models.get(each.model_id)
                orphan = row is not None and self._is_orphan(row)
                after = ModelState.ABORTED if orphan else ModelState.VALIDATING
                move = model_state_change(executor.deployment, each.model_id, after)
                await executor.carry_out((ended,), moves=(move,))

    async def prepare(self) -> None:
        """Outside the lock: whoever may begin next is loaded from now on."""
        deployment = self._executor.deployment
        if (queued := deployment.queued) and self._executor.leadership.fence:
            name = next_turn(_queue(deployment, queued)).next or ""
            if isinstance(
                start_decision_of(self._start_inputs(deployment, name)), StartNow | ReplaceRunning
            ):
                await self._loader.start_load(name)

    async def _ready(self, rollout: Rollout) -> bool:
        """Is it served? One that is being loaded waits, and one that never can be is out."""
        executor, name = self._executor, rollout.model_id
        try:
            return self._loader.ready(name)
        except Rejected as error:
            ended = withdraw(rollout, "not_servable", str(error), executor.env.clock())
            executor.alert("not_servable", name, str(error))
            incident = executor.incident(rollout, name, "not_servable", str(error), rollout)
            await executor.carry_out((ended,), incidents=(incident,))
        except Transient as error:
            log.warning("%s: %s", name, error, extra={"action": "not_served"})
        return False

    async def _begin(self, rollout: Rollout, decisions: tuple[Decision, ...]) -> None:
        """Its turn has come."""
        executor = self._executor
        patience = timedelta(days=executor.policy.undecided_days)
        after = apply_event(rollout, BeginRollout(patience=patience), executor.env.clock())
        await self.enter(after, decisions)

    async def enter(
        self,
        after: Rollout,
        decisions: tuple[Decision, ...],
        *,
        by: str = "",
        audit: tuple[AuditEntry, ...] = (),
        incidents: tuple[Incident, ...] = (),
        holdback: bool = True,
    ) -> None:
        """A rollout that has just got its first traffic, or all of it, or waits for approval."""
        executor, deployment, now = (
            self._executor,
            self._executor.deployment,
            self._executor.env.clock(),
        )
        tallies, newest = (
            await executor.gateways.tallies(),
            await executor.env.store.newest_sequences(),
        )
        limits, name = executor.policy.limits, after.rollout_id
        log.info(
            "%s: %s",
            after.model_id,
            after.sentence,
            extra={"action": "begin", "rollout": name, "share": after.share},
        )
        if after.state in ACTIVE:
            lead = deployment.plan_rollout_id if deployment.active else name
            record = begin_record(after, limits, tallies, lead=lead, newest=newest)
            ended = without_holdback(deployment, f"{after.model_id} is being rolled out.", now)
            await executor.carry_out(
                (after, *ended),
                records={name: record},
                decisions=decisions,
                by=by,
                audit=audit,
                incidents=incidents,
            )
        elif after.state is RolloutState.PROMOTED:
            after = with_holdback(deployment, after, executor.policy, now) if holdback else after
            earned = await executor.env.store.mean_reward(deployment.baseline)
            frozen = earned.mean if earned.count >= limits.min_rewards else None
            record = begin_watching(
                RolloutRecord(),
                after,
                limits,
                tallies,
                frozen=frozen,
                newest=newest[0],
                error=0.0 if frozen is None else standard_error(frozen, earned.count),
            )
            await executor.carry_out(
                promotion_changes(deployment, after, now),
                records={name: record},
                moves=retire_baseline(deployment, after),
                decisions=decisions,
                by=by,
                audit=audit,
                reward=frozen,
            )
        else:
            await executor.carry_out((after,), decisions=decisions, by=by, audit=audit)


def with_logged_estimate(
    judged: StrategyInputs, report: ValidationReport, worth: CanaryWorth
) -> StrategyInputs:
    """A verdict that tasks of the user's own cannot give: nothing is worse, and it is worth a canary.

    Whatever strategy the policy has for what was proved: this was estimated, and the canary is the proof.
    """
    sound = report.results.safety_checks_passed and report.results.benchmark_passed
    if report.verdict == "fail" or not sound:
        return judged
    if not any(suite.own for suite in report.suites):
        if worth.improvement is None:
            return replace(judged, reasons=(*judged.reasons, _NOTHING_PLAYED, worth.sentence))
        return replace(
            judged,
            verdict="pass",
            improvement=worth.improvement,
            shown=worth.probable,
            reasons=(worth.sentence,),
            estimated=worth.sentence,
        )
    agrees = judged.verdict == "pass" and judged.improvement is not None and judged.improvement >= 0
    agreed = replace(judged, reasons=(*judged.reasons, worth.sentence))
    return (
        replace(agreed, shown=True, estimated=worth.sentence)
        if agrees and worth.probable
        else agreed
    )


def with_played_tasks(
    judged: StrategyInputs, report: ValidationReport, logged: CanaryWorth | None
) -> StrategyInputs:
    """Own tasks that leave it open, but make it probable: the canary decides, with little traffic."""
    found = report.improvement
    if judged.shown or judged.verdict != "pass" or found is None:
        return judged
    if found.estimate is None or found.lower is None:
        return judged
    worth = worth_of_played_tasks(found.estimate, found.lower, report.level, found.tasks, logged)
    return replace(judged, shown=True, estimated=worth.sentence) if worth.probable else judged


def is_improvement_shown(report: ValidationReport) -> bool:
    """Whether the whole interval of the improvement lies above 0."""
    lower = report.improvement.lower if report.improvement else None
    return lower is not None and lower > 0


def _queue(deployment: DeploymentState, queued: tuple[Rollout, ...]) -> QueueInputs:
    return QueueInputs(tuple(_contender(deployment, each.model_id) for each in queued))


def _contender(deployment: DeploymentState, model_id: str) -> RolloutContender:
    return RolloutContender(model_id, deployment.version_of(model_id))


def _running(deployment: DeploymentState, rollout: Rollout) -> RolloutContender:
    """What an operator holds is not replaced, like a canary at its last step."""
    last = rollout.state is RolloutState.PAUSED or bool(
        rollout.canary and rollout.canary.is_last_step
    )
    unproven = rollout.state is RolloutState.AWAITING and not rollout.strategy.shown
    return RolloutContender(
        rollout.model_id, deployment.version_of(rollout.model_id), last, unproven
    )
