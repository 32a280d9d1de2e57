"""How is a candidate tried against the current model? Task by task, both side by side.

    once: abilities, safety ─┐
    own tasks, 4 answers ────┴─▶ look ─▶ own tasks, 8 answers ─▶ look ─▶ 16 answers ─▶ look ─▶ report

Safety tasks are sampled beside that, 4 and 12 answers each, where the greedy ones leave it undecided.

| what happens                                         | what follows                              |
|------------------------------------------------------|-------------------------------------------|
| the model answers, the sandbox or the judge answers  | the task's next move                      |
| `Transient`, or no answer in time                    | tried again, with back-off, a few times   |
| still not, or another of our errors                  | the sample score is spoiled: left out and counted |
| the judge fails                                      | rules alone decide; noted in the report   |
| it should be over soon                               | no further own task or look is begun      |
| the deadline comes                                   | what is missing counts as not covered     |
| the process is killed                                | kept sample scores are not done again             |
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from upswing.contracts.validation import SampleScore, ValidationReport
from upswing.validate.core.constant_answer import ConstantAnswer, best_constant_answer
from upswing.validate.core.moves import AskModelFn, CodeRunner
from upswing.validate.core.report import RunMetadata, ValidationRun, build_report, score_run
from upswing.validate.core.sampling import GREEDY, Sampling
from upswing.validate.core.stopping import SAFETY_ANSWERS, TimeLeft, decide_after_look
from upswing.validate.core.suite import TaskSuite
from upswing.validate.core.task_facts import AnalyseTasks, task_facts
from upswing.validate.core.verdict import ValidationPolicy
from upswing.validate.judge import LimitedJudge
from upswing.validate.player import RunPace, Sleep, TaskPlayer
from upswing.validate.sample_score_store import BaselineScores
from upswing.validate.session import (
    RunPlayers,
    SampleScoreStore,
    SuiteRunProgress,
    ValidationSession,
)

__all__ = ["ModelClients", "SampleScoreStore", "SuiteRunProgress", "Validator"]
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelClients:
    """How the models are asked, by kind of task."""

    own: AskModelFn
    """For the user's own tasks, drawn as `sampling` says."""
    once: AskModelFn | None = None
    """For all other tasks; None: as for the own ones."""
    resampled: AskModelFn | None = None
    """Draws further answers to safety tasks, where `once` leaves safety undecided; None: there are no others."""
    sampling: Sampling = GREEDY


class Validator:
    """Runs validations. One object may run several, one after the other or at once."""

    def __init__(
        self,
        models: ModelClients,
        sample_scores: SampleScoreStore,
        *,
        clock: Callable[[], datetime],
        sandbox: CodeRunner | None = None,
        judge: LimitedJudge | None = None,
        sleep: Sleep = asyncio.sleep,
        pace: RunPace = RunPace(),  # noqa: B008  it is frozen
        scores: BaselineScores | None = None,
        analyse: AnalyseTasks | None = None,
    ) -> None:
        """`scores` keeps what baselines reached, so that they are not asked again.

        `analyse` looks into what failed, where the verdict is `fail`.
        """
        self._analyse = analyse
        self._models, self._sample_scores, self._scores, self._clock = (
            models,
            sample_scores,
            scores,
            clock,
        )
        self._sandbox, self._judge = sandbox, judge
        self._sleep, self._pace = sleep, pace

    async def run(
        self,
        run: ValidationRun,
        suites: Sequence[TaskSuite],
        policy: ValidationPolicy = ValidationPolicy(),  # noqa: B008  it is frozen
        on_progress: Callable[[SuiteRunProgress], None] = lambda _: None,
    ) -> ValidationReport:
        """The report. With a run id that was begun before, only what is missing is done."""
        started, models = self._clock(), self._models
        players = RunPlayers(
            self._player(models.own),
            self._player(models.once or models.own),
            self._player(models.resampled) if models.resampled else None,
        )
        session = ValidationSession(
            players, self._sample_scores, self._scores, run, suites, on_progress, self._pace
        )
        await session.restore()
        timed_out, looks = False, list[int]()
        try:
            async with asyncio.timeout(self._pace.deadline.total_seconds()) as limit:
                await self._run_looks(session, run, policy, looks, limit)
        except TimeoutError:
            timed_out = True
        constants = await asyncio.to_thread(_constant_answers, session, suites)
        notes = (
            *_run_notes([each for each in players if each], timed_out, self._pace),
            *session.notes(),
            *_constant_notes(constants),
        )
        run_metadata = RunMetadata(
            started,
            self._clock(),
            self._judge.name if self._judge else None,
            notes,
            tuple(looks),
            models.sampling.temperature if session.has_own else None,
            models.sampling.top_p if session.has_own else None,
            {name: found.score for name, found in constants.items()},
        )
        report = await asyncio.to_thread(
            build_report,
            run,
            session.planned_suites(),
            session.counted_scores(),
            policy,
            run_metadata,
        )
        if report.verdict == "fail" and self._analyse is not None:
            report = await asyncio.to_thread(
                _with_analysis, report, suites, session.counted_scores(), self._analyse
            )
        extra = {"action": "validated", "run": run.run_id, "word": report.verdict}
        log.info("%s: %s", run.candidate, " ".join(report.reasons), extra=extra)
        return report

    async def _run_looks(
        self,
        session: ValidationSession,
        run: ValidationRun,
        policy: ValidationPolicy,
        looks: list[int],
        limit: asyncio.Timeout,
    ) -> None:
        """Answers, a look, and more answers while the table of `looks` asks for them."""
        await session.run_first()
        samples, safety = list(run.samples[1:]), list(SAFETY_ANSWERS)
        if session.has_own:
            looks.append(run.samples[0])
        while samples or safety:
            scored = await asyncio.to_thread(
                score_run, run, session.planned_suites(), session.counted_scores(), policy
            )
            time_left = TimeLeft(
                own=bool(samples) and session.has_own and session.has_time_for(samples[0]),
                safety=bool(safety) and session.has_time_for_safety(),
            )
            decision = decide_after_look(scored.verdict, scored.scores, policy, time_left)
            extra = {"action": "look", "run": run.run_id, "samples": session.samples}
            log.info("%s: %s", run.candidate, decision.sentence, extra=extra)
            if decision.stop:
                return
            if decision.safety:
                limit.reschedule(session.safety_deadline)
                await session.run_safety_samples(safety.pop(0))
            if decision.own:
                looks.append(samples.pop(0))
                await session.run_samples(looks[-1])

    def _player(self, ask: AskModelFn) -> TaskPlayer:
        return TaskPlayer(ask, self._sandbox, self._judge, self._sleep, self._pace)


def _with_analysis(
    report: ValidationReport,
    suites: Sequence[TaskSuite],
    sample_scores: Iterable[SampleScore],
    analyse: AnalyseTasks,
) -> ValidationReport:
    """The report with what its failed tasks have in common."""
    by_suite: dict[str, list[SampleScore]] = {}
    for sample_score in sample_scores:
        by_suite.setdefault(sample_score.suite, []).append(sample_score)
    facts = list(task_facts(suites, by_suite))
    found = analyse(report.candidate, report.current, report.run_id, facts)
    return replace(report, analysis=found)


def _constant_answers(
    session: ValidationSession, suites: Sequence[TaskSuite]
) -> dict[str, ConstantAnswer]:
    """The best constant answer to the tasks of each of the user's own suites."""
    found = {
        suite.name: best_constant_answer(
            [task for task in suite.tasks if task.task_id in session.selected[suite.name]],
            session.last_answers[suite.name],
        )
        for suite in suites
        if suite.own and suite.tasks
    }
    return {name: each for name, each in found.items() if each is not None}


def _constant_notes(constants: dict[str, ConstantAnswer]) -> Iterator[str]:
    for name, found in constants.items():
        if name == "production":  # whatever is right there is a user's
            yield f"The best constant answer scores {found.score:.2f} in {name}."
        else:
            yield f"The best constant answer scores {found.score:.2f} in {name}: “{found.answer[:60]}”."


def _run_notes(players: Sequence[TaskPlayer], timed_out: bool, pace: RunPace) -> Iterator[str]:
    if timed_out:
        yield f"The deadline of {pace.deadline.total_seconds() / 60:g} minutes came before the end."
    for fences in sorted(set().union(*(player.fences for player in players))):
        weak = " Code was not held in by the kernel alone." if "hooks" in fences else ""
        yield f"Code ran behind these fences: {', '.join(fences)}.{weak}"
    silent = sum(player.judge_failures for player in players)
    if silent:
        yield f"The judge gave no usable answer {silent} times; rules alone decided there."
