"""How is a candidate tried against the current model? Task by task, both side by side.

| what happens                                         | what follows                              |
|------------------------------------------------------|-------------------------------------------|
| the model answers, the sandbox or the judge answers  | the task's next move                      |
| `Transient`, or no answer in time                    | tried again, with back-off, a few times   |
| still not, or another of our errors                  | the cell is spoiled: left out and counted |
| the judge fails                                      | rules alone decide; noted in the report   |
| the deadline comes                                   | what is missing counts as not covered     |
| the process is killed                                | kept cells are not done again             |
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from upswing.contracts.validation import Cell, Side, ValidationReport
from upswing.validate.moves import Ask, Done, InfraError, Judge, RunsCode
from upswing.validate.plan import Pairing, key, left, pairings
from upswing.validate.player_service import Pace, Player, Sleep
from upswing.validate.report import Circumstances, Planned, Run, report
from upswing.validate.suite import Suite
from upswing.validate.verdict import Policy

log = logging.getLogger(__name__)


class KeepsCells(Protocol):
    """Where cells survive a restart. Keeping one twice changes nothing."""

    async def of_run(self, run_id: str) -> Sequence[Cell]: ...

    async def keep(self, run_id: str, cells: Sequence[Cell]) -> None:
        """Durable when it returns."""
        ...


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one suite is, in answers of both models."""

    suite: str
    done: int
    total: int


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
    ) -> None:
        self._ask, self._cells, self._clock = ask, cells, clock
        self._sandbox, self._judge = sandbox, judge
        self._sleep, self._pace = sleep, pace

    async def run(
        self,
        run: Run,
        suites: Sequence[Suite],
        policy: Policy = Policy(),  # noqa: B008  it is frozen
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> ValidationReport:
        """The report. With a run id that was begun before, only what is missing is done."""
        started = self._clock()
        player = Player(self._ask, self._sandbox, self._judge, self._sleep, self._pace)
        session = _Session(player, self._cells, run, suites, progress)
        await session.take_up()
        late = await session.finish(self._pace)
        notes = tuple(_notes(player, late, self._pace))
        judge = self._judge.name if self._judge else None
        how = Circumstances(started, self._clock(), judge, notes)
        planned = [Planned(suite.name, suite.kind, len(suite.task_ids)) for suite in suites]
        made = await asyncio.to_thread(report, run, planned, session.cells, policy, how)
        about = {"action": "validated", "run": run.run_id, "word": made.word}
        log.info("%s: %s", run.candidate, " ".join(made.reasons), extra=about)
        return made


class _Session:
    """One run being done: what is known, and what is left."""

    def __init__(
        self,
        player: Player,
        store: KeepsCells,
        run: Run,
        suites: Sequence[Suite],
        progress: Callable[[Progress], None],
    ) -> None:
        self._player, self._store, self._run, self._progress = player, store, run, progress
        self._suites = {suite.name: suite for suite in suites}
        self._tasks = {(suite.name, task.task_id): task for suite in suites for task in suite.tasks}
        ids = {suite.name: suite.task_ids for suite in suites}
        self._plan = pairings(ids, run.seeds, {suite.name: suite.chunk for suite in suites})
        self.cells: list[Cell] = []
        self._known: set[tuple[str, str, int, Side]] = set()
        self._done = dict.fromkeys(ids, 0)

    async def take_up(self) -> None:
        """What was done before the last restart is not done again."""
        planned = {(each.suite, task, each.seed) for each in self._plan for task in each.task_ids}
        kept = await self._store.of_run(self._run.run_id)
        self._note([cell for cell in kept if key(cell)[:3] in planned and cell.score is not None])

    async def finish(self, pace: Pace) -> bool:
        """Do what is left; whether the deadline came first."""
        for name in self._suites:
            self._tell(name)
        waiting = iter(self._plan)
        try:
            async with asyncio.timeout(pace.deadline.total_seconds()), asyncio.TaskGroup() as group:
                for _ in range(pace.at_once):
                    group.create_task(self._work(waiting))
        except TimeoutError:
            return True
        return False

    async def _work(self, waiting: Iterator[Pairing]) -> None:
        for pairing in waiting:
            for side in pairing.order:
                if task_ids := left(pairing, side, self._known):
                    await self._do(pairing, side, task_ids)

    async def _do(self, pairing: Pairing, side: Side, task_ids: Sequence[str]) -> None:
        suite = self._suites[pairing.suite]
        model = self._run.candidate if side == "candidate" else self._run.current
        if suite.perform is not None:
            came = await self._player.perform(suite.perform, task_ids, model, pairing.seed)
        else:
            came = {
                name: await self._player.play(self._tasks[suite.name, name], model, pairing.seed)
                for name in task_ids
            }
        unheard = InfraError("The task's own runner gave no result.")
        cells = [_cell(pairing, side, name, came.get(name, unheard)) for name in task_ids]
        sound = [cell for cell in cells if cell.score is not None and math.isfinite(cell.score)]
        if sound:
            await self._store.keep(self._run.run_id, sound)
        self._note(cells)
        self._tell(suite.name)

    def _note(self, cells: Sequence[Cell]) -> None:
        for cell in cells:
            if key(cell) not in self._known:
                self._known.add(key(cell))
                self.cells.append(cell)
                self._done[cell.suite] += 1

    def _tell(self, suite: str) -> None:
        total = 2 * len(self._run.seeds) * len(self._suites[suite].task_ids)
        self._progress(Progress(suite, self._done[suite], total))


def _cell(pairing: Pairing, side: Side, task_id: str, came: Done | InfraError) -> Cell:
    if isinstance(came, InfraError):
        return Cell(pairing.suite, task_id, pairing.seed, side, None, shown(str(came)))
    score = came.score if math.isnan(came.score) else min(1.0, max(0.0, came.score))
    return Cell(pairing.suite, task_id, pairing.seed, side, score, shown(came.sentence))


def shown(text: str) -> str:
    """A sentence that can be kept: not too long, and nothing that no file can hold."""
    return text[:500].encode(errors="replace").decode()


def _notes(player: Player, late: bool, pace: Pace) -> Iterator[str]:
    if late:
        yield f"The deadline of {pace.deadline.total_seconds() / 60:g} minutes came before the end."
    for fences in sorted(player.fences):
        weak = " Code was not held in by the kernel alone." if "hooks" in fences else ""
        yield f"Code ran behind these fences: {', '.join(fences)}.{weak}"
    if player.silent:
        yield f"The judge gave no usable answer {player.silent} times; rules alone decided there."
