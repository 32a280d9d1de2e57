"""What of a validation is done, and what is left? Cells of three models, kept as they come.

| cells                           | when                                                          |
|---------------------------------|---------------------------------------------------------------|
| of what is done once            | first                                                         |
| of the first own tasks          | first, with as many answers as the first look wants           |
| of the base                     | beside the first own tasks, as many answers as a first look   |
| of a later look                 | more answers to these, and further own tasks, as many as      |
|                                 | there is time for; sampled answers to the safety tasks, where |
|                                 | their greedy ones leave it open                               |

A baseline answers with other seeds than a candidate: a model that was promoted because it was lucky
would otherwise be held to that luck when the next one is compared with it. What a baseline reached
is kept by model, task, seed and sampling, and is not asked again. Where answers are greedy there is
no luck: those are kept of candidates as well.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from upswing.contracts.validation import Cell, Side
from upswing.validate.moves import Done, InfraError
from upswing.validate.plan import Key, Pairing, key, left, pairings
from upswing.validate.player_service import Pace, Player
from upswing.validate.report import Planned, Run
from upswing.validate.suite import Suite

FIRST = 64
"""Own tasks, over all suites, that are done in any case."""
_FEWEST = 20
"""Of them in each suite."""
_PART = 0.5
"""Of the time that is left which a later look may take for further tasks."""

BASELINE_SEEDS = 1_000_000
"""Where the seeds of baselines begin, in tasks of the user's own; see `player_service.seed_of`."""

SAFETY_SEEDS = 1_000
"""Where the seeds of sampled answers to safety tasks begin; below are those of greedy ones."""
_SAFETY_PATIENCE = 0.8
"""Of the deadline, that sampling safety may take a run to, past its soft end: a model that is given up because
nobody looked again costs a whole training."""


class KeepsCells(Protocol):
    """Where cells survive a restart. Keeping one twice changes nothing."""

    async def of_run(self, run_id: str) -> Sequence[Cell]: ...

    async def keep(self, run_id: str, cells: Sequence[Cell]) -> None:
        """Durable when it returns."""
        ...


class KeepsScores(Protocol):
    """What baselines reached, across validations."""

    deterministic: bool
    """Whether what is done once is answered greedily, so that it may be kept of candidates, too."""

    def label(self, fingerprint: str, seed: int, *, own: bool) -> str:
        """What a score is kept under: the task, the seed and the sampling."""
        ...

    async def of_model(self, model: str) -> Mapping[str, float]: ...

    async def keep(self, model: str, scores: Mapping[str, float]) -> None: ...


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one suite is, in answers of all models."""

    suite: str
    done: int
    total: int


class Players(NamedTuple):
    """Who asks the models for what."""

    own: Player
    once: Player
    resampled: Player | None

    def of(self, suite: Suite, seed: int) -> Player:
        if suite.own:
            return self.own
        return self.resampled if self.resampled and seed >= SAFETY_SEEDS else self.once


class Session:
    """One run being done."""

    def __init__(
        self,
        players: Players,
        store: KeepsCells,
        scores: KeepsScores | None,
        run: Run,
        suites: Sequence[Suite],
        progress: Callable[[Progress], None],
        pace: Pace,
    ) -> None:
        self._players, self._store, self._scores = players, store, scores
        self._run, self._progress, self._pace = run, progress, pace
        self._suites = {suite.name: suite for suite in suites}
        self._tasks = {(suite.name, task.task_id): task for suite in suites for task in suite.tasks}
        self._began = _now()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._answers = Counter[str]()
        self.cells: list[Cell] = []
        self.said: dict[str, Counter[str]] = {name: Counter() for name in self._suites}
        self._known: set[Key] = set()
        self._done, self._total = Counter[str](), Counter[str]()
        self._cached: dict[str, Mapping[str, float]] = {}
        self.has_own = any(suite.own for suite in suites)
        self.samples = run.samples[0]
        """Answers to each own task that are complete."""
        self.safety_samples = 0
        """Sampled answers to each safety task that are complete."""
        first = _first([suite for suite in suites if suite.own])
        self.taken = {
            name: suite.task_ids[: first.get(name, len(suite.task_ids))]
            for name, suite in self._suites.items()
        }
        """The tasks of each suite that are done."""
        self._beside = {(name, task) for name in first for task in self.taken[name]}
        """Own tasks that the base does, too."""

    async def take_up(self) -> None:
        """What was done before the last restart is not done again, nor what a baseline has reached."""
        kept = await self._store.of_run(self._run.run_id)
        there = {(name, task) for name, suite in self._suites.items() for task in suite.task_ids}
        self._note(
            [
                cell
                for cell in kept
                if (cell.suite, cell.task_id) in there and cell.score is not None
            ]
        )
        if self._scores:
            for model in {self._run.candidate, self._run.current, self._run.base} - {None}:
                self._cached[str(model)] = await self._scores.of_model(str(model))

    async def open(self) -> None:
        """What is done in any case: everything that is done once, and the first own tasks."""
        seeds = {
            name: range(self.samples) if suite.own else self._run.seeds
            for name, suite in self._suites.items()
        }
        plan = pairings(self.taken, seeds, self._chunks)
        self._expect(plan)
        for name in self._suites:
            self._tell(name)
        await self._play(plan)

    async def answer(self, samples: int) -> None:
        """Every own task that was taken has as many answers, and so have the further ones."""
        if samples <= self.samples:
            return
        own = {name: self.taken[name] for name, suite in self._suites.items() if suite.own}
        seeds = dict.fromkeys(own, range(self.samples, samples))
        plan = pairings(own, seeds, self._chunks)
        self._expect(plan)
        await self._play(plan)
        rest = {name: self._left(name) for name in own}
        passed = _now() - self._began
        further = pairings(rest, dict.fromkeys(own, range(samples)), self._chunks, by_task=True)
        await self._play(further, until=passed + _PART * max(0.0, self._soft - passed))
        for name, task_ids in rest.items():
            done = [task for task in task_ids if self._complete(name, task, samples)]
            self.taken[name] = (*self.taken[name], *done)
        self.samples = samples

    async def answer_safety(self, samples: int) -> None:
        """Every safety task has as many sampled answers beside the greedy one."""
        seeds = range(SAFETY_SEEDS + self.safety_samples, SAFETY_SEEDS + samples)
        plan = pairings(self._safety, dict.fromkeys(self._safety, seeds), self._chunks)
        self._expect(plan)
        await self._play(plan)
        self.safety_samples = samples

    def time_for(self, samples: int) -> bool:
        """Whether as many answers would be there in time, at the pace of those so far."""
        own = [name for name, suite in self._suites.items() if suite.own]
        return self._in_time(own, samples - self.samples, self._soft)

    def time_for_safety(self, samples: int) -> bool:
        """The same of sampled answers to the safety tasks; never where nobody can draw them."""
        if self._players.resampled is None or not self._safety:
            return False
        until = _SAFETY_PATIENCE * self._pace.deadline.total_seconds()
        return self._in_time(self._safety, samples - self.safety_samples, until)

    def _in_time(self, names: Collection[str], further: int, until: float) -> bool:
        answers = sum(self._answers[name] for name in names)
        each = sum(self._seconds[name] for name in names) / answers if answers else 0.0
        tasks = sum(len(self.taken[name]) for name in names)
        coming = 2 * tasks * further * each / max(1, self._pace.at_once)
        return _now() - self._began + coming <= until

    @property
    def _safety(self) -> dict[str, tuple[str, ...]]:
        """Suite → its tasks, of the safety suites that are ours to sample."""
        return {
            name: self.taken[name]
            for name, suite in self._suites.items()
            if suite.kind == "safety" and suite.perform is None
        }

    def planned(self) -> list[Planned]:
        """The suites as far as they are done."""
        return [
            Planned(name, suite.kind, len(self.taken[name]), suite.own, self._answered(name))
            for name, suite in self._suites.items()
        ]

    def _answered(self, name: str) -> int:
        """Answers to each task of a suite that are complete."""
        if self._suites[name].own:
            return self.samples
        sampled = self.safety_samples if name in self._safety else 0
        return len(self._run.seeds) + sampled

    def counted(self) -> list[Cell]:
        """The cells of tasks that were taken, with the answers that every task has."""
        taken = {name: set(task_ids) for name, task_ids in self.taken.items()}
        return [
            cell
            for cell in self.cells
            if cell.task_id in taken[cell.suite] and cell.seed < self._end(cell)
        ]

    def _end(self, cell: Cell) -> int:
        """The first seed with which not every task of this suite is answered."""
        if self._suites[cell.suite].own:
            return self.samples
        return SAFETY_SEEDS + self.safety_samples

    def notes(self) -> Iterator[str]:
        for name, suite in self._suites.items():
            count = len(suite.task_ids) - len(self.taken[name])
            if count:
                yield (
                    f"{count} of {len(suite.task_ids)} tasks of {name} were not done: "
                    "it was decided without them, or there was no time."
                )

    def _left(self, name: str) -> tuple[str, ...]:
        """The tasks of a suite that were not taken."""
        taken = set(self.taken[name])
        return tuple(task for task in self._suites[name].task_ids if task not in taken)

    def _expect(self, plan: Sequence[Pairing]) -> None:
        for pairing in plan:
            self._total[pairing.suite] += len(pairing.task_ids) * len(self._sides(pairing))

    # ── playing ──────────────────────────────────────────────────────────────────────────────

    @property
    def _soft(self) -> float:
        return (self._pace.soft or self._pace.deadline).total_seconds()

    @property
    def _chunks(self) -> dict[str, int]:
        return {name: suite.chunk for name, suite in self._suites.items()}

    async def _play(self, plan: Sequence[Pairing], until: float = math.inf) -> None:
        waiting = iter(plan)
        async with asyncio.TaskGroup() as group:
            for _ in range(self._pace.at_once):
                group.create_task(self._work(waiting, until))

    async def _work(self, waiting: Iterator[Pairing], until: float) -> None:
        for pairing in waiting:
            if _now() - self._began > until:
                return
            for side in self._sides(pairing):
                if task_ids := left(pairing, side, self._known):
                    await self._do(pairing, side, task_ids)

    def _sides(self, pairing: Pairing) -> tuple[Side, ...]:
        asked = self._run.base and pairing.seed < self._run.samples[0]
        if asked and all((pairing.suite, task) in self._beside for task in pairing.task_ids):
            return (*pairing.order, "base")
        return pairing.order

    async def _do(self, pairing: Pairing, side: Side, task_ids: Sequence[str]) -> None:
        suite, model = self._suites[pairing.suite], self._model(side)
        seed = pairing.seed
        sampled = suite.own or seed >= SAFETY_SEEDS
        if sampled and side != "candidate":
            seed += BASELINE_SEEDS
        labels = self._labels(suite, side, task_ids, seed, sampled=sampled)
        known = self._cached.get(model, {})
        there = [
            Cell(suite.name, name, pairing.seed, side, known[labels[name]])
            for name in task_ids
            if labels.get(name) in known
        ]
        new = await self._asked(suite, [t for t in task_ids if labels.get(t) not in known], model, seed)  # fmt: skip
        cells = [*there, *(_cell(pairing, side, name, came) for name, came in new.items())]
        sound = [cell for cell in cells if cell.score is not None and math.isfinite(cell.score)]
        if sound:
            await self._store.keep(self._run.run_id, sound)
        fresh = {
            labels[cell.task_id]: cell.score
            for cell in sound
            if cell.task_id in labels and cell.task_id in new and cell.score is not None
        }
        if fresh and self._scores:
            await self._scores.keep(model, fresh)
        self._note(cells)
        self._tell(suite.name)

    async def _asked(
        self, suite: Suite, task_ids: Sequence[str], model: str, seed: int
    ) -> dict[str, Done | InfraError]:
        if not task_ids:
            return {}
        began, player = _now(), self._players.of(suite, seed)
        if suite.perform is not None:
            came = await player.perform(suite.perform, task_ids, model, seed)
        else:
            came = {
                name: await player.play(
                    self._tasks[suite.name, name], model, seed, self.said[suite.name]
                )
                for name in task_ids
            }
        self._seconds[suite.name] += _now() - began
        self._answers[suite.name] += len(task_ids)
        unheard = InfraError("The task's own runner gave no result.")
        return {name: came.get(name, unheard) for name in task_ids}

    def _model(self, side: Side) -> str:
        run = self._run
        return {"candidate": run.candidate, "current": run.current, "base": run.base or ""}[side]

    def _labels(
        self, suite: Suite, side: Side, task_ids: Iterable[str], seed: int, *, sampled: bool
    ) -> dict[str, str]:
        """Task → what a score is kept under, where that can be told and may be."""
        if self._scores is None or suite.perform is not None:
            return {}
        if side == "candidate" and (sampled or not self._scores.deterministic):
            return {}
        return {
            name: self._scores.label(print_, seed, own=sampled)
            for name in task_ids
            if (print_ := self._tasks[suite.name, name].fingerprint)
        }

    def _complete(self, name: str, task: str, samples: int) -> bool:
        sides: tuple[Side, Side] = ("candidate", "current")
        return all((name, task, seed, side) in self._known for seed in range(samples) for side in sides)  # fmt: skip

    def _note(self, cells: Sequence[Cell]) -> None:
        for cell in cells:
            if key(cell) not in self._known:
                self._known.add(key(cell))
                self.cells.append(cell)
                self._done[cell.suite] += 1

    def _tell(self, suite: str) -> None:
        done = self._done[suite]
        self._progress(Progress(suite, done, max(done, self._total[suite])))


def _first(own: Sequence[Suite]) -> dict[str, int]:
    """How many tasks of each own suite are done in any case."""
    return {suite.name: max(_FEWEST, FIRST // len(own)) for suite in own}


def _now() -> float:
    return asyncio.get_running_loop().time()


def _cell(pairing: Pairing, side: Side, task_id: str, came: Done | InfraError) -> Cell:
    if isinstance(came, InfraError):
        return Cell(pairing.suite, task_id, pairing.seed, side, None, shown(str(came)))
    score = came.score if math.isnan(came.score) else min(1.0, max(0.0, came.score))
    return Cell(pairing.suite, task_id, pairing.seed, side, score, shown(came.sentence))


def shown(text: str) -> str:
    """A sentence that can be kept: not too long, and nothing that no file can hold."""
    return text[:500].encode(errors="replace").decode()
