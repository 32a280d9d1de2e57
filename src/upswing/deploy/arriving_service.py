"""A model was trained: is it proved, how boldly does it go out, and when is its turn?

| what comes of it                         | the model              | and then                              |
|------------------------------------------|------------------------|---------------------------------------|
| its checkpoint cannot be served          | failed                 | a person is called                    |
| validation: fail, inconclusive           | failed, undecided      | a person is called                    |
| validation: pass, but not better         | aborted                | a person is called                    |
| validation: pass, not shown to be better | passed                 | its rollout waits for a person's word |
| training did not change it               | failed                 | it is not validated                   |
| validation: pass                         | passed                 | its rollout begins, or waits          |
| no task of the user's own can be played  | passed, if nothing is  | a canary from 5 %, if training's own  |
|                                          | worse                  | estimate says that it is better       |
| the model that it was trained from       | aborted                | the next training starts from what    |
| answers no more                          |                        | answers now                           |
| the baseline changed meanwhile           | is validated again     | only what a person registered         |
| nobody could prove it just now           | is validated again     | later; after five times: undecided    |

A model that training did not make waits for a person's approval.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from msgspec.structs import replace

from upswing.contracts.validation import ValidationReport
from upswing.deploy.arrival import Begin as Free
from upswing.deploy.arrival import Contender, Replace, Skip, Wait
from upswing.deploy.events import Begin
from upswing.deploy.journal import Arrived, Judged, Queue, reception_of, strategy_of, turn_of
from upswing.deploy.ledger_service import Ledger
from upswing.deploy.loading_service import Loads
from upswing.deploy.logged import Logged, Worth, worth_of
from upswing.deploy.moves import held_back, holdback_ended, model_move, promotion, rests, withdrawn
from upswing.deploy.record import Record, begin_record, begin_watching
from upswing.deploy.rollout import Rollout, plan_rollout, step
from upswing.deploy.standing import Standing
from upswing.deploy.states import ACTIVE, Model
from upswing.deploy.states import Rollout as State
from upswing.deploy.strategy import Abort
from upswing.deploy.watch import error_of
from upswing.errors import Denied, Misuse, Rejected, Transient
from upswing.ports import Decision, ModelRow
from upswing.ports_rollout import Audit, Incident, ModelMove, Superseded

log = logging.getLogger(__name__)
Prove = Callable[[str, str], Awaitable[ValidationReport]]
"""(candidate, current) → what came of it; both are served."""
Unchanged = Callable[[ModelRow], Awaitable[str | None]]
"""What to try next, where training said of its model that nothing in it has changed; None: it has."""
ReadsLogged = Callable[[ModelRow], Awaitable[Logged | None]]
"""What training estimated from logged episodes."""
REGISTERED = "registered-"
"""How the job of a model begins that training did not make."""
_TRIES = 5
_PAUSE = timedelta(seconds=30)
"""Real time before the next try, doubled each time."""
_NOTHING_PLAYED = "No task of your own can be played."
_WORDS = {"pass": Model.PASSED, "fail": Model.FAILED, "inconclusive": Model.UNDECIDED}


class Arrivals:
    """Proves what is new, and lets it begin."""

    def __init__(
        self,
        ledger: Ledger,
        loads: Loads,
        prove: Prove,
        unchanged: Unchanged | None = None,
        logged: ReadsLogged | None = None,
    ) -> None:
        self._logged = logged
        self._ledger, self._loads, self._prove = ledger, loads, prove
        self._unchanged = unchanged
        self.proving: str | None = None
        self._tries: dict[str, int] = {}
        self._later: dict[str, datetime] = {}
        self._over: set[str] = set()
        """Decisions to pass over that are journalled."""

    # ── proving ──────────────────────────────────────────────────────────────────────────────

    async def admit(self) -> bool:
        """Take the newest model that nobody has proved; False when there is none."""
        ledger = self._ledger
        async with ledger.lock:
            ledger.lead()
            row = await self._next(await ledger.read())
            if row is None:
                return False
            current = ledger.standing.baseline
            self.proving = row.model_id
            if row.state != Model.VALIDATING:
                move = model_move(ledger.standing, row.model_id, Model.VALIDATING)
                await ledger.carry_out(moves=(move,))
        try:
            await self._proved(row, current)
        finally:
            self.proving = None
        return True

    async def _next(self, standing: Standing) -> ModelRow | None:
        now = self._ledger.world.wall()
        new = [
            row
            for row in standing.models.values()
            if row.state in {Model.TRAINED, Model.VALIDATING}
        ]
        for row in sorted(new, key=lambda each: -each.version):
            if self._is_orphan(row):
                await self._drop(row)
                continue
            if await self._passed_over(standing, row):
                continue
            if row.model_id not in self._later or self._later[row.model_id] <= now:
                return row
        return None

    async def _passed_over(self, standing: Standing, row: ModelRow) -> bool:
        """Something newer is on its way, or answers already: this one need not be proved."""
        busy = [standing.on_its_way, standing.promoted, *standing.queued]
        newest = max((standing.version(each.model_id) for each in busy if each), default=0)
        if newest <= row.version:
            return False
        running = next(e for e in busy if e and standing.version(e.model_id) == newest)
        name = f"skip-{row.model_id}-{running.rollout_id}"
        if name not in self._over:
            self._over.add(name)
            mine = _contender(standing, row.model_id)
            inputs = Arrived(mine, _running(standing, running), "wait")
            await self._ledger.carry_out(decisions=(self._ledger.journalled(inputs, name),))
        return True

    def _is_orphan(self, row: ModelRow) -> bool:
        """Whether it was trained from a model that answers no more; a person's model has no parent."""
        ledger = self._ledger
        by_hand = row.job_id.startswith(REGISTERED)
        return not by_hand and (row.parent or ledger.base) != ledger.standing.baseline

    async def _drop(self, row: ModelRow) -> None:
        """One model at a time: what was learned from a former model is not worth a comparison."""
        ledger = self._ledger
        parent = row.parent or ledger.base
        sentence = f"It was trained from {parent}, but {ledger.standing.baseline} answers now."
        log.info("%s: %s", row.model_id, sentence, extra={"action": "dropped"})
        move = model_move(ledger.standing, row.model_id, Model.ABORTED)
        told = ledger.incident(None, row.model_id, "parent_replaced", sentence, row)
        await ledger.carry_out(moves=(move,), incidents=(told,))

    async def _proved(self, row: ModelRow, current: str) -> None:
        name = row.model_id
        try:
            if (advice := await self._advice(row)) is not None:
                judged = self._judged(row, current, "", "no_change", (advice,), None)
                await self._settle(replace(judged, changed=False), Model.FAILED, None)
                return
            await self._loads.there(current)
            await self._loads.there(name)
            report = await self._prove(name, current)
        except Superseded:
            raise
        except Transient as error:
            await self._again(row, current, error)
            return
        except (Rejected, Misuse, Denied) as error:
            judged = self._judged(row, current, "", "fail", (str(error),), None)
            await self._settle(judged, Model.FAILED, None)
            return
        except Exception as error:  # one model that nobody can prove ends no controller
            log.exception("%s could not be proved", name, extra={"action": "not_proved"})
            await self._again(row, current, error)
            return
        self._tries.pop(name, None)
        told = report.improvement.estimate if report.improvement else None
        sound = told if told is not None and math.isfinite(told) else None
        judged = self._judged(row, current, report.run_id, report.word, report.reasons, sound)
        judged = replace(judged, shown=is_shown(report))
        if not judged.shown and (worth := await self._worth(row)) is not None:
            judged = by_logged(judged, report, worth)
        await self._settle(judged, _WORDS[judged.word], report)

    async def _worth(self, row: ModelRow) -> Worth | None:
        """What training's own estimate says of a model that it made."""
        by_hand = row.job_id.startswith(REGISTERED)
        return None if by_hand or self._logged is None else worth_of(await self._logged(row))

    async def _advice(self, row: ModelRow) -> str | None:
        """What to try next, where nothing changed; what was registered by hand is validated in any case."""
        by_hand = row.job_id.startswith(REGISTERED)
        return None if by_hand or self._unchanged is None else await self._unchanged(row)

    async def _again(self, row: ModelRow, current: str, error: Exception) -> None:
        """Later, and not for ever."""
        name = row.model_id
        tries = self._tries[name] = self._tries.get(name, 0) + 1
        log.warning("%s: %s", name, error, extra={"action": "not_proved", "tries": tries})
        if tries < _TRIES:
            self._later[name] = self._ledger.world.wall() + _PAUSE * 2 ** (tries - 1)
            return
        judged = self._judged(row, current, "", "inconclusive", (str(error) or repr(error),), None)
        await self._settle(judged, Model.UNDECIDED, None)

    def _judged(
        self, row: ModelRow, current: str, run_id: str, word: str, reasons: tuple[str, ...],
        improvement: float | None,
    ) -> Judged:  # fmt: skip
        boldness = self._ledger.policy.boldness
        if row.job_id.startswith(REGISTERED):
            boldness = replace(boldness, approval=True)
        return Judged(row.model_id, current, run_id, word, reasons, improvement, boldness)

    async def _settle(self, judged: Judged, state: Model, report: ValidationReport | None) -> None:
        """The verdict becomes rows: the model's state, and its rollout if it ships."""
        ledger = self._ledger
        async with ledger.lock:
            standing = await ledger.read()
            if standing.baseline != judged.current and state is Model.PASSED:
                return  # what was proved is about another baseline: it is proved again
            strategy = strategy_of(judged)
            decision = ledger.journalled(judged)
            if isinstance(strategy, Abort):
                moves = [model_move(standing, judged.model_id, state)]
                if state is Model.PASSED:
                    moves.append(
                        ModelMove(judged.model_id, Model.ABORTED.value, (Model.PASSED.value,))
                    )
                reason = "not_better" if state is Model.PASSED else f"validation_{judged.word}"
                reason = reason if judged.changed else "no_change"
                why = " ".join((strategy.sentence, *judged.reasons))
                ledger.alert(reason, judged.model_id, why)
                incident = ledger.incident(None, judged.model_id, reason, why, judged)
                await ledger.carry_out(moves=moves, decisions=(decision,), incidents=(incident,))
                if ledger.metrics:
                    ledger.metrics.happened("aborted")
                return
            policy = ledger.policy
            rollout = plan_rollout(
                str(ledger.world.new_id()), judged.model_id, standing.baseline,
                judged.validation_id or decision.decision_id, strategy, ledger.world.clock(),
                policy.ramp_hours, policy.samples, results=report.results if report else None,
            )  # fmt: skip
            log.info(
                "%s: %s", judged.model_id, strategy.sentence,
                extra={"action": "validated", "model": judged.model_id},
            )  # fmt: skip
            if not strategy.shown:
                ledger.alert("needs_approval", judged.model_id, strategy.sentence)
            await ledger.carry_out((rollout,), decisions=(decision,))
            await self.turn()

    # ── turns ────────────────────────────────────────────────────────────────────────────────

    async def turn(self) -> None:
        """Whoever waits and may, begins."""
        ledger = self._ledger
        await self._drop_stale()
        queued = ledger.standing.queued
        if not queued:
            return
        queue = _queue(ledger.standing, queued)
        turn = turn_of(queue)
        by_model = {each.model_id: each for each in queued}
        over = [by_model[name] for name in turn.passed_over]
        if over:
            now = ledger.world.clock()
            ended = [withdrawn(each, "passed_over", turn.sentence, now) for each in over]
            await ledger.carry_out(ended, decisions=(ledger.journalled(queue),))
        await self._receive(by_model[turn.next or ""])

    async def _receive(self, rollout: Rollout) -> None:
        ledger, standing, now = self._ledger, self._ledger.standing, self._ledger.world.clock()
        running = standing.on_its_way
        inputs = self._met(standing, rollout.model_id)
        match reception_of(inputs):
            case Free():
                if await self._ready(rollout):
                    await self._begin(rollout, (ledger.journalled(inputs),))
            case Replace(sentence) if running is not None:
                if await self._ready(rollout):
                    ended = withdrawn(running, "replaced", sentence, now)
                    await ledger.carry_out((ended,), decisions=(ledger.journalled(inputs),))
                    await self._begin(rollout, ())
            case Skip(sentence):
                ended = withdrawn(rollout, "passed_over", sentence, now)
                await ledger.carry_out((ended,), decisions=(ledger.journalled(inputs),))
            case Wait() | Replace():
                whom = "switches" if inputs.barred else running.rollout_id if running else ""
                name = f"wait-{rollout.rollout_id}-{whom}"
                if rollout.sentence != (told := ledger.journalled(inputs, name)).sentence:
                    waiting = replace(rollout, sentence=told.sentence)
                    await ledger.carry_out((waiting,), decisions=(told,))

    def _met(self, standing: Standing, model_id: str) -> Arrived:
        """A newcomer, and whom it meets."""
        mine, running = _contender(standing, model_id), standing.on_its_way
        theirs = _running(standing, running) if running else None
        return Arrived(mine, theirs, self._ledger.policy.newcomers, self._ledger.barred)

    async def _drop_stale(self) -> None:
        """What was proved beside another baseline is proved again, unless its parent is gone."""
        ledger = self._ledger
        for each in ledger.standing.waiting:
            if each.baseline_id != ledger.standing.baseline:
                sentence = (
                    f"{ledger.standing.baseline} answers now: it is to be compared with that."
                )
                ended = withdrawn(each, "stale_validation", sentence, ledger.world.clock())
                row = ledger.standing.models.get(each.model_id)
                orphan = row is not None and self._is_orphan(row)
                after = Model.ABORTED if orphan else Model.VALIDATING
                move = model_move(ledger.standing, each.model_id, after)
                await ledger.carry_out((ended,), moves=(move,))

    async def prepare(self) -> None:
        """Outside the lock: whoever may begin next is loaded from now on."""
        standing = self._ledger.standing
        if (queued := standing.queued) and self._ledger.fence:
            name = turn_of(_queue(standing, queued)).next or ""
            if isinstance(reception_of(self._met(standing, name)), Free | Replace):
                await self._loads.glimpse(name)

    async def _ready(self, rollout: Rollout) -> bool:
        """Is it served? One that is being loaded waits, and one that never can be is out."""
        ledger, name = self._ledger, rollout.model_id
        try:
            return self._loads.ready(name)
        except Rejected as error:
            ended = withdrawn(rollout, "not_servable", str(error), ledger.world.clock())
            ledger.alert("not_servable", name, str(error))
            told = ledger.incident(rollout, name, "not_servable", str(error), rollout)
            await ledger.carry_out((ended,), incidents=(told,))
        except Transient as error:
            log.warning("%s: %s", name, error, extra={"action": "not_served"})
        return False

    async def _begin(self, rollout: Rollout, decisions: tuple[Decision, ...]) -> None:
        """Its turn has come."""
        ledger = self._ledger
        patience = timedelta(days=ledger.policy.undecided_days)
        after = step(rollout, Begin(patience=patience), ledger.world.clock())
        await self.enter(after, decisions)

    async def enter(
        self, after: Rollout, decisions: tuple[Decision, ...], *, by: str = "",
        audit: tuple[Audit, ...] = (), incidents: tuple[Incident, ...] = (), holdback: bool = True,
    ) -> None:  # fmt: skip
        """A rollout that has just got its first traffic, or all of it, or waits for approval."""
        ledger, standing, now = self._ledger, self._ledger.standing, self._ledger.world.clock()
        tallies, newest = await ledger.tallies(), await ledger.world.store.newest()
        limits, name = ledger.policy.limits, after.rollout_id
        log.info(
            "%s: %s", after.model_id, after.sentence,
            extra={"action": "begin", "rollout": name, "share": after.share},
        )  # fmt: skip
        if after.state in ACTIVE:
            lead = standing.lead if standing.active else name
            record = begin_record(after, limits, tallies, lead=lead, newest=newest)
            ended = holdback_ended(standing, f"{after.model_id} goes out.", now)
            await ledger.carry_out(
                (after, *ended), records={name: record}, decisions=decisions, by=by, audit=audit,
                incidents=incidents,
            )  # fmt: skip
        elif after.state is State.PROMOTED:
            after = held_back(standing, after, ledger.policy, now) if holdback else after
            earned = await ledger.world.store.earned(standing.baseline)
            frozen = earned.mean if earned.count >= limits.min_rewards else None
            record = begin_watching(
                Record(), after, limits, tallies, frozen=frozen, newest=newest[0],
                error=0.0 if frozen is None else error_of(frozen, earned.count),
            )  # fmt: skip
            await ledger.carry_out(
                promotion(standing, after, now), records={name: record},
                moves=rests(standing, after), decisions=decisions, by=by, audit=audit, reward=frozen,
            )  # fmt: skip
        else:
            await ledger.carry_out((after,), decisions=decisions, by=by, audit=audit)


def by_logged(judged: Judged, report: ValidationReport, worth: Worth) -> Judged:
    """A verdict that tasks of the user's own cannot give: nothing is worse, and it is worth a canary.

    Whatever strategy the policy has for what was proved: this was estimated, and the canary is the proof.
    """
    sound = report.results.safety_checks_passed and report.results.benchmark_passed
    if report.word == "fail" or not sound:
        return judged
    if not any(suite.own for suite in report.suites):
        if worth.improvement is None:
            return replace(judged, reasons=(*judged.reasons, _NOTHING_PLAYED, worth.sentence))
        return replace(
            judged, word="pass", improvement=worth.improvement, shown=worth.probable,
            reasons=(worth.sentence,), estimated=worth.sentence,
        )  # fmt: skip
    agrees = judged.word == "pass" and judged.improvement is not None and judged.improvement >= 0
    told = replace(judged, reasons=(*judged.reasons, worth.sentence))
    return (
        replace(told, shown=True, estimated=worth.sentence) if agrees and worth.probable else told
    )


def is_shown(report: ValidationReport) -> bool:
    """Whether the whole interval of the improvement lies above 0."""
    lower = report.improvement.lower if report.improvement else None
    return lower is not None and lower > 0


def _queue(standing: Standing, queued: tuple[Rollout, ...]) -> Queue:
    return Queue(tuple(_contender(standing, each.model_id) for each in queued))


def _contender(standing: Standing, model_id: str) -> Contender:
    return Contender(model_id, standing.version(model_id))


def _running(standing: Standing, rollout: Rollout) -> Contender:
    """What an operator holds is not replaced, like a canary at its last step."""
    last = rollout.state is State.PAUSED or bool(rollout.canary and rollout.canary.last)
    unproven = rollout.state is State.AWAITING and not rollout.strategy.shown
    return Contender(rollout.model_id, standing.version(rollout.model_id), last, unproven)
