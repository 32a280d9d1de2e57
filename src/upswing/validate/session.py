"""What of a validation is done, and what is left? Sample scores of three models, kept as they come.

| sample scores                           | when                                                          |
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from upswing.contracts.validation import SampleScore, Side
from upswing.validate.core.moves import InfraError, TaskResult
from upswing.validate.core.plan import Pairing, SampleKey, missing_tasks, plan_pairings, sample_key
from upswing.validate.core.report import PlannedSuite, ValidationRun
from upswing.validate.core.suite import TaskSuite
from upswing.validate.player import RunPace, TaskPlayer
from upswing.validate.sample_score_store import BaselineScores

FIRST_TASKS = 64
"""Own tasks, over all suites, that are done in any case."""
_MIN_TASKS_PER_SUITE = 20
"""Of them in each suite."""
_TIME_SHARE = 0.5
"""Of the time that is left which a later look may take for further tasks."""

BASELINE_SEEDS = 1_000_000
"""Where the seeds of baselines begin, in tasks of the user's own; see `validate.player.answer_seed`."""

SAFETY_SEEDS = 1_000
"""Where the seeds of sampled answers to safety tasks begin; below are those of greedy ones."""
_SAFETY_PATIENCE = 2.0
"""Times the deadline, until which safety is sampled where nothing else is missing: a model that is given up because
nobody looked again costs a whole training."""


class SampleScoreStore(Protocol):
    """Where sample scores survive a restart. Keeping one twice changes nothing."""

    async def load(self, run_id: str) -> Sequence[SampleScore]: ...

    async def append(self, run_id: str, sample_scores: Sequence[SampleScore]) -> None:
        """Durable when it returns."""
        ...


@dataclass(frozen=True, slots=True)
class SuiteRunProgress:
    """How far one suite is, in answers of all models."""

    suite: str
    done: int
    total: int


class RunPlayers(NamedTuple):
    """Who asks the models for what."""

    own: TaskPlayer
    once: TaskPlayer
    resampled: TaskPlayer | None

    def player_for(self, suite: TaskSuite, seed: int) -> TaskPlayer:
        if suite.own:
            return self.own
        return self.resampled if self.resampled and seed >= SAFETY_SEEDS else self.once


class ValidationSession:
    """One run being done."""

    def __init__(
        self,
        players: RunPlayers,
        sample_scores: SampleScoreStore,
        scores: BaselineScores | None,
        run: ValidationRun,
        suites: Sequence[TaskSuite],
        on_progress: Callable[[SuiteRunProgress], None],
        pace: RunPace,
    ) -> None:
        self._players, self._store, self._scores = players, sample_scores, scores
        self._run, self._on_progress, self._pace = run, on_progress, pace
        self._suites = {suite.name: suite for suite in suites}
        self._tasks = {(suite.name, task.task_id): task for suite in suites for task in suite.tasks}
        self._started_at = _now()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._answers = Counter[str]()
        self.sample_scores: list[SampleScore] = []
        self.last_answers: dict[str, Counter[str]] = {name: Counter() for name in self._suites}
        self._known: set[SampleKey] = set()
        self._done, self._total = Counter[str](), Counter[str]()
        self._cached: dict[str, Mapping[str, float]] = {}
        self.has_own = any(suite.own for suite in suites)
        self.samples = run.samples[0]
        """Answers to each own task that are complete."""
        self.safety_samples = 0
        """Sampled answers to each safety task that are complete."""
        first = _first_tasks([suite for suite in suites if suite.own])
        self.selected = {
            name: suite.task_ids[: first.get(name, len(suite.task_ids))]
            for name, suite in self._suites.items()
        }
        """The tasks of each suite that are done."""
        self._base_tasks = {(name, task) for name in first for task in self.selected[name]}
        """Own tasks that the base does, too."""

    async def restore(self) -> None:
        """What was done before the last restart is not done again, nor what a baseline has reached."""
        kept = await self._store.load(self._run.run_id)
        there = {(name, task) for name, suite in self._suites.items() for task in suite.task_ids}
        self._add_sample_scores(
            [
                sample_score
                for sample_score in kept
                if (sample_score.suite, sample_score.task_id) in there
                and sample_score.score is not None
            ]
        )
        if self._scores:
            for model in {self._run.candidate, self._run.current, self._run.base} - {None}:
                self._cached[str(model)] = await self._scores.load_scores(str(model))

    async def run_first(self) -> None:
        """What is done in any case: everything that is done once, and the first own tasks."""
        seeds = {
            name: range(self.samples) if suite.own else self._run.seeds
            for name, suite in self._suites.items()
        }
        plan = plan_pairings(self.selected, seeds, self._chunks)
        self._expect_answers(plan)
        for name in self._suites:
            self._report_progress(name)
        await self._play(plan)

    async def run_samples(self, samples: int) -> None:
        """Every own task that was taken has as many answers, and so have the further ones."""
        if samples <= self.samples:
            return
        own = {name: self.selected[name] for name, suite in self._suites.items() if suite.own}
        seeds = dict.fromkeys(own, range(self.samples, samples))
        plan = plan_pairings(own, seeds, self._chunks)
        self._expect_answers(plan)
        await self._play(plan)
        rest = {name: self._unselected(name) for name in own}
        passed = _now() - self._started_at
        further = plan_pairings(
            rest, dict.fromkeys(own, range(samples)), self._chunks, by_task=True
        )
        await self._play(
            further, until=passed + _TIME_SHARE * max(0.0, self._soft_seconds - passed)
        )
        for name, task_ids in rest.items():
            done = [task for task in task_ids if self._is_complete(name, task, samples)]
            self.selected[name] = (*self.selected[name], *done)
        self.samples = samples

    async def run_safety_samples(self, samples: int) -> None:
        """As many sampled answers to every safety task as there is time for, beside the greedy one."""
        for done in range(self.safety_samples, samples):
            seed = SAFETY_SEEDS + done
            seeds = dict.fromkeys(self._safety, range(seed, seed + 1))
            plan = plan_pairings(self._safety, seeds, self._chunks)
            self._expect_answers(plan)
            await self._play(plan, until=self._safety_seconds)
            if any(missing_tasks(each, side, self._known) for each in plan for side in each.order):
                return
            self.safety_samples = done + 1

    def has_time_for(self, samples: int) -> bool:
        """Whether as many answers would be there in time, at the pace of those so far."""
        own = [name for name, suite in self._suites.items() if suite.own]
        answers = sum(self._answers[name] for name in own)
        each = sum(self._seconds[name] for name in own) / answers if answers else 0.0
        tasks = sum(len(self.selected[name]) for name in own)
        coming = 2 * tasks * (samples - self.samples) * each / max(1, self._pace.concurrent_pairs)
        return _now() - self._started_at + coming <= self._soft_seconds

    def has_time_for_safety(self) -> bool:
        """Whether safety tasks may still be answered again; never where nobody can draw an answer."""
        can_sample = self._players.resampled is not None and bool(self._safety)
        return can_sample and _now() - self._started_at <= self._safety_seconds

    @property
    def _safety(self) -> dict[str, tuple[str, ...]]:
        """Suite → its tasks, of the safety suites that are ours to sample."""
        return {
            name: self.selected[name]
            for name, suite in self._suites.items()
            if suite.kind == "safety" and suite.run_external is None
        }

    def planned_suites(self) -> list[PlannedSuite]:
        """The suites as far as they are done."""
        return [
            PlannedSuite(
                name, suite.kind, len(self.selected[name]), suite.own, self._complete_answers(name)
            )
            for name, suite in self._suites.items()
        ]

    def _complete_answers(self, name: str) -> int:
        """Answers to each task of a suite that are complete."""
        if self._suites[name].own:
            return self.samples
        sampled = self.safety_samples if name in self._safety else 0
        return len(self._run.seeds) + sampled

    def counted_scores(self) -> list[SampleScore]:
        """The sample scores of tasks that were taken, with the answers that every task has."""
        taken = {name: set(task_ids) for name, task_ids in self.selected.items()}
        return [
            sample_score
            for sample_score in self.sample_scores
            if sample_score.task_id in taken[sample_score.suite]
            and sample_score.seed < self._seed_limit(sample_score)
        ]

    def _seed_limit(self, sample_score: SampleScore) -> int:
        """The first seed with which not every task of this suite is answered."""
        if self._suites[sample_score.suite].own:
            return self.samples
        return SAFETY_SEEDS + self.safety_samples

    def notes(self) -> Iterator[str]:
        for name, suite in self._suites.items():
            count = len(suite.task_ids) - len(self.selected[name])
            if count:
                yield (
                    f"{count} of {len(suite.task_ids)} tasks of {name} were not done: "
                    "it was decided without them, or there was no time."
                )

    def _unselected(self, name: str) -> tuple[str, ...]:
        """The tasks of a suite that were not taken."""
        taken = set(self.selected[name])
        return tuple(task for task in self._suites[name].task_ids if task not in taken)

    def _expect_answers(self, plan: Sequence[Pairing]) -> None:
        for pairing in plan:
            self._total[pairing.suite] += len(pairing.task_ids) * len(self._sides(pairing))

    # ── playing ──────────────────────────────────────────────────────────────────────────────

    @property
    def _soft_seconds(self) -> float:
        return (self._pace.soft_deadline or self._pace.deadline).total_seconds()

    @property
    def safety_deadline(self) -> float:
        """When sampling safety has to be over, by the event loop's clock."""
        return self._started_at + self._safety_seconds

    @property
    def _safety_seconds(self) -> float:
        return _SAFETY_PATIENCE * self._pace.deadline.total_seconds()

    @property
    def _chunks(self) -> dict[str, int]:
        return {name: suite.chunk for name, suite in self._suites.items()}

    async def _play(self, plan: Sequence[Pairing], until: float = math.inf) -> None:
        waiting = iter(plan)
        async with asyncio.TaskGroup() as group:
            for _ in range(self._pace.concurrent_pairs):
                group.create_task(self._play_waiting(waiting, until))

    async def _play_waiting(self, waiting: Iterator[Pairing], until: float) -> None:
        for pairing in waiting:
            if _now() - self._started_at > until:
                return
            for side in self._sides(pairing):
                if task_ids := missing_tasks(pairing, side, self._known):
                    await self._play_side(pairing, side, task_ids)

    def _sides(self, pairing: Pairing) -> tuple[Side, ...]:
        asks_base = self._run.base and pairing.seed < self._run.samples[0]
        if asks_base and all(
            (pairing.suite, task) in self._base_tasks for task in pairing.task_ids
        ):
            return (*pairing.order, "base")
        return pairing.order

    async def _play_side(self, pairing: Pairing, side: Side, task_ids: Sequence[str]) -> None:
        suite, model = self._suites[pairing.suite], self._model(side)
        seed = pairing.seed
        sampled = suite.own or seed >= SAFETY_SEEDS
        if sampled and side != "candidate":
            seed += BASELINE_SEEDS
        keys = self._score_keys(suite, side, task_ids, seed, sampled=sampled)
        known = self._cached.get(model, {})
        cached = [
            SampleScore(suite.name, name, pairing.seed, side, known[keys[name]])
            for name in task_ids
            if keys.get(name) in known
        ]
        results = await self._run_tasks(
            suite, [t for t in task_ids if keys.get(t) not in known], model, seed
        )
        sample_scores = [
            *cached,
            *(_sample_score_of(pairing, side, name, result) for name, result in results.items()),
        ]
        valid = [
            sample_score
            for sample_score in sample_scores
            if sample_score.score is not None and math.isfinite(sample_score.score)
        ]
        if valid:
            await self._store.append(self._run.run_id, valid)
        fresh = {
            keys[sample_score.task_id]: sample_score.score
            for sample_score in valid
            if sample_score.task_id in keys
            and sample_score.task_id in results
            and sample_score.score is not None
        }
        if fresh and self._scores:
            await self._scores.save_scores(model, fresh)
        self._add_sample_scores(sample_scores)
        self._report_progress(suite.name)

    async def _run_tasks(
        self, suite: TaskSuite, task_ids: Sequence[str], model: str, seed: int
    ) -> dict[str, TaskResult | InfraError]:
        if not task_ids:
            return {}
        began, player = _now(), self._players.player_for(suite, seed)
        if suite.run_external is not None:
            results = await player.run_external(suite.run_external, task_ids, model, seed)
        else:
            results = {
                name: await player.play(
                    self._tasks[suite.name, name], model, seed, self.last_answers[suite.name]
                )
                for name in task_ids
            }
        self._seconds[suite.name] += _now() - began
        self._answers[suite.name] += len(task_ids)
        no_result = InfraError("The task's own runner gave no result.")
        return {name: results.get(name, no_result) for name in task_ids}

    def _model(self, side: Side) -> str:
        run = self._run
        return {"candidate": run.candidate, "current": run.current, "base": run.base or ""}[side]

    def _score_keys(
        self, suite: TaskSuite, side: Side, task_ids: Iterable[str], seed: int, *, sampled: bool
    ) -> dict[str, str]:
        """Task → what a score is kept under, where that can be told and may be."""
        if self._scores is None or suite.run_external is not None:
            return {}
        if side == "candidate" and (sampled or not self._scores.deterministic):
            return {}
        return {
            name: self._scores.score_key(print_, seed, own=sampled)
            for name in task_ids
            if (print_ := self._tasks[suite.name, name].fingerprint)
        }

    def _is_complete(self, name: str, task: str, samples: int) -> bool:
        sides: tuple[Side, Side] = ("candidate", "current")
        return all(
            (name, task, seed, side) in self._known for seed in range(samples) for side in sides
        )

    def _add_sample_scores(self, sample_scores: Sequence[SampleScore]) -> None:
        for sample_score in sample_scores:
            if sample_key(sample_score) not in self._known:
                self._known.add(sample_key(sample_score))
                self.sample_scores.append(sample_score)
                self._done[sample_score.suite] += 1

    def _report_progress(self, suite: str) -> None:
        done = self._done[suite]
        self._on_progress(SuiteRunProgress(suite, done, max(done, self._total[suite])))


def _first_tasks(own: Sequence[TaskSuite]) -> dict[str, int]:
    """How many tasks of each own suite are done in any case."""
    return {suite.name: max(_MIN_TASKS_PER_SUITE, FIRST_TASKS // len(own)) for suite in own}


def _now() -> float:
    return asyncio.get_running_loop().time()


def _sample_score_of(
    pairing: Pairing, side: Side, task_id: str, result: TaskResult | InfraError
) -> SampleScore:
    if isinstance(result, InfraError):
        return SampleScore(
            pairing.suite, task_id, pairing.seed, side, None, storable_text(str(result))
        )
    score = result.score if math.isnan(result.score) else min(1.0, max(0.0, result.score))
    return SampleScore(
        pairing.suite, task_id, pairing.seed, side, score, storable_text(result.sentence)
    )


def storable_text(text: str) -> str:
    """A sentence that can be kept: not too long, and nothing that no file can hold."""
    return text[:500].encode(errors="replace").decode()
