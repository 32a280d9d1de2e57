"""How is a candidate tried against the current model? Task by task, both side by side.

    once: abilities, safety ─┐
    own tasks, 4 answers ────┴─▶ look ─▶ own tasks, 8 answers ─▶ look ─▶ 16 answers ─▶ look ─▶ report

Safety tasks are sampled beside that, 4 and 12 answers each, where the greedy ones leave it undecided.

| what happens                                         | what follows                              |
|------------------------------------------------------|-------------------------------------------|
| the model answers, the sandbox or the judge answers  | the task's next move                      |
| `Transient`, or no answer in time                    | tried again, with back-off, a few times   |
| still not, or another of our errors                  | the cell is spoiled: left out and counted |
| the judge fails                                      | rules alone decide; noted in the report   |
| it should be over soon                               | no further own task or look is begun      |
| the deadline comes                                   | what is missing counts as not covered     |
| the process is killed                                | kept cells are not done again             |
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from upswing.contracts.validation import ValidationReport
from upswing.validate.constant import Constant, best_constant
from upswing.validate.looks import SAFETY_ANSWERS, Room, after_look
from upswing.validate.moves import Ask, Judge, RunsCode
from upswing.validate.player_service import Pace, Player, Sleep
from upswing.validate.report import Circumstances, Run, report, weigh
from upswing.validate.sampling import GREEDY, Sampling
from upswing.validate.session_service import (
    KeepsCells,
    KeepsScores,
    Players,
    Progress,
    Session,
)
from upswing.validate.suite import Suite
from upswing.validate.verdict import Policy

__all__ = ["KeepsCells", "Progress", "Validator"]
log = logging.getLogger(__name__)


class Validator:
    """Runs validations. One object may run several, one after the other or at once."""

    def __init__(
        self,
        ask: Ask,
        cells: KeepsCells,
        *,
        clock: Callable[[], datetime],
        sandbox: RunsCode | None = None,
        judge: Judge | None = None,
        sleep: Sleep = asyncio.sleep,
        pace: Pace = Pace(),  # noqa: B008  it is frozen
        once: Ask | None = None,
        resampled: Ask | None = None,
        sampling: Sampling = GREEDY,
        scores: KeepsScores | None = None,
    ) -> None:
        """`ask` is for the user's own tasks, drawn as `sampling` says, `once` for all others.

        `resampled` draws further answers to safety tasks, where these leave safety undecided; None:
        there are no others. `scores` keeps what baselines reached, so that they are not asked again.
        """
        self._ask, self._once, self._cells, self._clock = ask, once or ask, cells, clock
        self._resampled = resampled
        self._sandbox, self._judge = sandbox, judge
        self._sleep, self._pace = sleep, pace
        self._sampling, self._scores = sampling, scores

    async def run(
        self,
        run: Run,
        suites: Sequence[Suite],
        policy: Policy = Policy(),  # noqa: B008  it is frozen
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> ValidationReport:
        """The report. With a run id that was begun before, only what is missing is done."""
        started = self._clock()
        players = Players(
            self._player(self._ask),
            self._player(self._once),
            self._player(self._resampled) if self._resampled else None,
        )
        session = Session(players, self._cells, self._scores, run, suites, progress, self._pace)
        await session.take_up()
        late, looks = False, list[int]()
        try:
            async with asyncio.timeout(self._pace.deadline.total_seconds()):
                await self._looks(session, run, policy, looks)
        except TimeoutError:
            late = True
        constants = await asyncio.to_thread(_constants, session, suites)
        notes = (
            *_notes([each for each in players if each], late, self._pace),
            *session.notes(),
            *_told(constants),
        )
        how = Circumstances(
            started, self._clock(), self._judge.name if self._judge else None, notes,
            tuple(looks), self._sampling.temperature if session.has_own else None,
            self._sampling.top_p if session.has_own else None,
            {name: found.score for name, found in constants.items()},
        )  # fmt: skip
        made = await asyncio.to_thread(
            report, run, session.planned(), session.counted(), policy, how
        )
        about = {"action": "validated", "run": run.run_id, "word": made.word}
        log.info("%s: %s", run.candidate, " ".join(made.reasons), extra=about)
        return made

    async def _looks(self, session: Session, run: Run, policy: Policy, looks: list[int]) -> None:
        """Answers, a look, and more answers while the table of `looks` asks for them."""
        await session.open()
        samples, safety = list(run.samples[1:]), list(SAFETY_ANSWERS)
        if session.has_own:
            looks.append(run.samples[0])
        while samples or safety:
            weighed = await asyncio.to_thread(
                weigh, run, session.planned(), session.counted(), policy
            )
            room = Room(
                own=bool(samples) and session.has_own and session.time_for(samples[0]),
                safety=bool(safety) and session.time_for_safety(safety[0]),
            )
            step = after_look(weighed.verdict, weighed.scores, policy, room)
            about = {"action": "look", "run": run.run_id, "samples": session.samples}
            log.info("%s: %s", run.candidate, step.sentence, extra=about)
            if step.stop:
                return
            if step.safety:
                await session.answer_safety(safety.pop(0))
            if step.own:
                looks.append(samples.pop(0))
                await session.answer(looks[-1])

    def _player(self, ask: Ask) -> Player:
        return Player(ask, self._sandbox, self._judge, self._sleep, self._pace)


def _constants(session: Session, suites: Sequence[Suite]) -> dict[str, Constant]:
    """The best constant answer to the tasks of each of the user's own suites."""
    found = {
        suite.name: best_constant(
            [task for task in suite.tasks if task.task_id in session.taken[suite.name]],
            session.said[suite.name],
        )
        for suite in suites
        if suite.own and suite.tasks
    }
    return {name: each for name, each in found.items() if each is not None}


def _told(constants: dict[str, Constant]) -> Iterator[str]:
    for name, found in constants.items():
        if name == "production":  # whatever is right there is a user's
            yield f"The best constant answer scores {found.score:.2f} in {name}."
        else:
            yield f"The best constant answer scores {found.score:.2f} in {name}: “{found.answer[:60]}”."


def _notes(players: Sequence[Player], late: bool, pace: Pace) -> Iterator[str]:
    if late:
        yield f"The deadline of {pace.deadline.total_seconds() / 60:g} minutes came before the end."
    for fences in sorted(set().union(*(player.fences for player in players))):
        weak = " Code was not held in by the kernel alone." if "hooks" in fences else ""
        yield f"Code ran behind these fences: {', '.join(fences)}.{weak}"
    silent = sum(player.silent for player in players)
    if silent:
        yield f"The judge gave no usable answer {silent} times; rules alone decided there."
