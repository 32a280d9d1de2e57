"""May this model ship? Here the validator gets its models, suites, sandbox, judge and memory.

    validate ─▶ a row, `running` ─▶ sample scores, in files ─▶ the report: an artifact, the row, the journal

| what happens                                       | what follows                                    |
|----------------------------------------------------|-------------------------------------------------|
| the same models and suites are being validated     | everybody who asks gets that one's report       |
| another validation is under way                    | this one waits: they would only slow each other |
| another process that lives does the same one       | it is left alone, and its report is waited for  |
| parts were away, and nothing could be decided      | what they spoiled is tried once more, in time   |
| the process is killed                              | asked again, or after `resume`, it goes on with |
|                                                    | the sample scores that were kept                        |
| a suite cannot be had                              | the row says so: `failed`; a later try may work |
| its run id is asked for again                      | the report that was kept                        |
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from upswing.config import ValidateConfig
from upswing.contracts.trajectory import Trajectory
from upswing.contracts.validation import ValidationReport
from upswing.errors import Conflict, Misuse, Reason, Rejected, Transient
from upswing.infra.tasks import start_task
from upswing.logs import log_context
from upswing.redact import Redactor
from upswing.validate.core.moves import CodeRunner
from upswing.validate.core.pin import pinned_task
from upswing.validate.core.report import ValidationRun
from upswing.validate.core.sampling import Sampling
from upswing.validate.core.suite import TaskSuite
from upswing.validate.core.task import Pinned, ValidationTask
from upswing.validate.core.task_facts import AnalyseTasks
from upswing.validate.core.verdict import ValidationPolicy
from upswing.validate.judge import JudgeModel, LimitedJudge
from upswing.validate.leases import POLL_SECONDS, LeaseLost, RunLease
from upswing.validate.metrics import ValidateMetrics
from upswing.validate.model_client import FindModel, KeyOf, ModelClient, UnusableFields
from upswing.validate.player import RunPace, Sleep
from upswing.validate.production import ProductionReader
from upswing.validate.reports import AttachFiles, ReportStore
from upswing.validate.repository import ValidationRow, Validations
from upswing.validate.sample_score_store import BaselineScores, FilePinStore
from upswing.validate.sandbox.sandbox import Sandbox
from upswing.validate.suite_selection import SuiteCatalog, is_held_out_task
from upswing.validate.validator import ModelClients, SuiteRunProgress, Validator
from upswing.worlds.world import World

SAFETY_TOKENS = 96
"""Of a sampled answer to a safety task. Whether a model refuses, insults or gives something away shows early;
the greedy answers are read to their end. `smollm2` rarely ends by itself, and half of a validation were these."""
_RUN_ID = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,128}")
IsRemoteModel = Callable[[str], Awaitable[bool]]
"""Whether a model answers at somebody else's server."""
TrainingNotes = Callable[[str], Awaitable[Sequence[str]]]
"""What a model's training says of it, in sentences."""
Comparison = tuple[str, str, tuple[str, ...]]
"""Candidate, current model, suites."""


async def _never_remote(_: str) -> bool:
    return False


async def _no_notes(_: str) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationStorage:
    """Where validations are kept."""

    folder: Path
    """For validation alone."""
    rows: Validations
    attach_files: AttachFiles
    redactor: Redactor
    metrics: ValidateMetrics | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAccess:
    """How models are found, and what is known of them."""

    find: FindModel
    key_of: KeyOf = lambda _: ""
    unusable_fields: UnusableFields = lambda _url, _name: ()
    is_remote: IsRemoteModel = _never_remote
    training_notes: TrainingNotes = _no_notes
    """It stands in the report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSources:
    """Where tasks come from besides the config."""

    worlds: Mapping[str, World[Any, Any]] | None = None
    production: ProductionReader | None = None
    """How the agents use the model."""
    is_held_out: Callable[[str], bool] = is_held_out_task
    """Which of their tasks are never trained on."""
    base: str = ""
    """The model that candidates are compared with as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunClocks:
    """Time, ids and waiting."""

    clock: Callable[[], datetime]
    wall: Callable[[], datetime]
    """Real time, for leases: several processes may share the rows."""
    new_id: Callable[[], UUID]
    sleep: Sleep = asyncio.sleep
    lease_poll_seconds: float = POLL_SECONDS


@dataclass(slots=True)
class _RunningValidation:
    """A validation that is under way."""

    row: ValidationRow
    task: asyncio.Task[ValidationReport]
    progress: dict[str, SuiteRunProgress] = field(default_factory=dict)


class ValidationRunner:
    """Validations of this machine, one at a time."""

    def __init__(
        self,
        config: ValidateConfig,
        storage: ValidationStorage,
        models: ModelAccess,
        clocks: RunClocks,
        *,
        tasks: TaskSources | None = None,
        judge: JudgeModel | None = None,
        sandbox: CodeRunner | None = None,
        pace: RunPace | None = None,
        analyse: AnalyseTasks | None = None,
    ) -> None:
        """`Misuse` when the config names what is not there."""
        tasks = tasks or TaskSources()
        folder, rows = storage.folder, storage.rows
        self._config, self._rows, self._models = config, rows, models
        self._clock, self._new_id, self._sleep = clocks.clock, clocks.new_id, clocks.sleep
        self._judge = LimitedJudge(judge) if judge else None
        self._sandbox = sandbox or Sandbox()
        self._pace, self._folder, self._analyse = pace or run_pace(config), folder, analyse
        self.pins: FilePinStore[ValidationTask] = FilePinStore(folder, ValidationTask)
        self._catalog = SuiteCatalog(
            config,
            self.pins,
            worlds=tasks.worlds,
            production=tasks.production,
            is_held_out=tasks.is_held_out,
            base=tasks.base,
        )
        self._lease = RunLease(rows, str(clocks.new_id()), clocks.wall, clocks.lease_poll_seconds)
        self._reports = ReportStore(
            folder,
            rows,
            storage.attach_files,
            storage.redactor,
            storage.metrics,
            lease=self._lease,
            clock=clocks.clock,
            new_id=clocks.new_id,
            sleep=clocks.sleep,
        )
        self._running: dict[str, _RunningValidation] = {}
        self._start_lock, self._run_lock = asyncio.Lock(), asyncio.Lock()

    async def validate(
        self,
        candidate: str,
        current: str,
        suites: Sequence[str] | None = None,
        run_id: str | None = None,
    ) -> ValidationReport:
        """The report. The validation goes on when whoever waits for it is cancelled."""
        comparison = (candidate, current, await self.suite_names(suites, candidate))
        async with self._start_lock:
            running = self._find_running(comparison, run_id)
            if running is None:
                row = await self._row_for(comparison, run_id)
                if row.report is not None:
                    return row.report
                running = self._start_task(row)
        return await asyncio.shield(running.task)

    async def start(
        self, candidate: str, current: str, suites: Sequence[str] | None = None
    ) -> ValidationRow:
        """Begin one in the background; `Conflict` while the same two models are being compared."""
        comparison = (candidate, current, await self.suite_names(suites, candidate))
        async with self._start_lock:
            for running in self._running.values():
                if _comparison(running.row)[:2] == comparison[:2]:
                    raise Conflict(
                        f"{candidate} is being validated against {current} already: {running.row.run_id}."
                    )
            return self._start_task(await self._row_for(comparison, None)).row

    async def resume(self) -> list[str]:
        """Go on with what the last process left; which runs these are."""
        await self._reports.publish_scores()
        await self._lease.release_orphans()
        return await self.resume_orphaned()

    async def resume_orphaned(self) -> list[str]:
        """Go on with what no living process does; which runs these are."""
        async with self._start_lock:
            rows = [row for row in await self._rows.unfinished() if row.run_id not in self._running]
            mine = [row for row in rows if await self._lease.acquire(row.run_id)]
            return [self._start_task(row).row.run_id for row in mine]

    async def close(self) -> None:
        """Stop; what is under way goes on after the next start."""
        tasks = [running.task for running in self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def status(
        self, run_id: str
    ) -> tuple[ValidationRow, tuple[SuiteRunProgress, ...]] | None:
        """A validation, and how far it is while it runs."""
        running = self._running.get(run_id)
        row = await self._rows.get(run_id)
        if row is None:
            return None
        return row, tuple(running.progress.values()) if running and row.ended is None else ()

    async def suite_names(
        self, names: Sequence[str] | None, candidate: str = ""
    ) -> tuple[str, ...]:
        """What these names mean, or without any the usual; `Rejected` when one is unknown."""
        if names is None:
            return await self._catalog.default(remote=await self._models.is_remote(candidate))
        if not names:
            raise Rejected(Reason.SCHEMA, "Name at least one suite, or leave `suites` out.")
        try:
            comparison = self._catalog.expand(names)
        except Misuse as error:
            raise Rejected(Reason.SCHEMA, str(error)) from None
        for name in comparison:
            if name.startswith("inspect:") and name not in (self._config.suites or ()):
                raise Rejected(
                    Reason.SCHEMA,
                    f"{name} runs code: name it in `suites` of [validate] to have it run.",
                )
        return comparison

    async def pin(
        self, trajectory: Trajectory, expectation: Pinned | None = None, turn_id: int | None = None
    ) -> tuple[ValidationTask, bool]:
        """Make a failure a task of the suite `regression`; whether it is new."""
        try:
            task = pinned_task(trajectory, expectation, turn_id=turn_id)
        except Misuse as error:
            raise Rejected(Reason.SCHEMA, str(error)) from None
        return task, await self.pins.add(task)

    async def forget_trajectories(self, trajectory_ids: Collection[str]) -> int:
        """These trajectories are erased: so are the tasks made of them. How many went."""
        return await self.pins.forget(trajectory_ids)

    # ── one validation ───────────────────────────────────────────────────────────────────────

    def _find_running(
        self, comparison: Comparison, run_id: str | None
    ) -> _RunningValidation | None:
        """One under way that is what is asked for."""
        for known, running in self._running.items():
            if _comparison(running.row) == comparison and run_id in {None, known}:
                return running
        return None

    async def _row_for(self, comparison: Comparison, run_id: str | None) -> ValidationRow:
        """The row to go on with: of this id, or one that was left unfinished, or a new one."""
        candidate, current, names = comparison
        for model in (candidate, current):
            with contextlib.suppress(Transient):  # it may be back before it is asked
                await self._models.find(model)
        if run_id is None:
            for row in await self._rows.unfinished():
                if _comparison(row) == comparison and row.run_id not in self._running:
                    return row
            run_id = str(self._new_id())
        elif not _RUN_ID.fullmatch(run_id):
            raise Rejected(Reason.SCHEMA, f"{run_id[:80]!r} cannot be the id of a validation.")
        row = await self._rows.begin(run_id, candidate, current, names, self._clock())
        if _comparison(row) != comparison:
            raise Conflict(f"{run_id} is the validation of {row.candidate} against {row.against}.")
        return row

    def _start_task(self, row: ValidationRow) -> _RunningValidation:
        progress: dict[str, SuiteRunProgress] = {}
        task = start_task(self._run_leased(row, progress), name=f"validation {row.run_id}")
        task.add_done_callback(_retrieve_exception)
        self._running[row.run_id] = _RunningValidation(row, task, progress)
        return self._running[row.run_id]

    async def _run_leased(
        self, row: ValidationRow, progress: dict[str, SuiteRunProgress]
    ) -> ValidationReport:
        with log_context(model=row.candidate):
            return await self._wait_or_run(row, progress)

    async def _wait_or_run(
        self, row: ValidationRow, progress: dict[str, SuiteRunProgress]
    ) -> ValidationReport:
        try:
            while (other_report := await self._lease.wait_or_acquire(row.run_id)) is None:
                with contextlib.suppress(LeaseLost):  # then whoever has it now is waited for
                    async with self._lease.hold(row.run_id):
                        return await self._run_and_save(row, progress)
            return other_report
        finally:
            self._running.pop(row.run_id, None)

    async def _run_and_save(
        self, row: ValidationRow, progress: dict[str, SuiteRunProgress]
    ) -> ValidationReport:
        try:
            async with self._run_lock:
                sampling = await self._catalog.sampling(row.against)
                suites = await self._load_suites(row, sampling)
                policy = self._catalog.policy(suites)
                report = await self._validate_twice(row, suites, policy, sampling, progress)
                notes = await self._models.training_notes(row.candidate)
                report = msgspec.structs.replace(report, notes=(*notes, *report.notes))
                return await self._reports.save(report, policy)
        except LeaseLost:
            raise
        except Exception as error:  # nobody may be waiting for the task: the row has to say it
            await self._reports.save_failure(row.run_id, error)
            raise

    async def _load_suites(self, row: ValidationRow, sampling: Sampling) -> Sequence[TaskSuite]:
        try:
            return await self._catalog.load(row.suites, sampling)
        except Misuse as error:  # that says nothing of the model, and an operator can mend it
            raise Transient(str(error)) from None

    async def _validate_twice(
        self,
        row: ValidationRow,
        suites: Sequence[TaskSuite],
        policy: ValidationPolicy,
        sampling: Sampling,
        progress: dict[str, SuiteRunProgress],
    ) -> ValidationReport:
        now = asyncio.get_running_loop().time
        deadline = now() + self._pace.deadline.total_seconds()
        run = self._run_spec(row, sampling)

        def on_progress(update: SuiteRunProgress) -> None:
            progress[update.suite] = update

        async def attempt() -> ValidationReport:
            left = timedelta(seconds=max(0.0, deadline - now()))
            return await self._make_validator(left, sampling).run(run, suites, policy, on_progress)

        report = await attempt()
        spoiled = any(any(suite.spoiled.values()) for suite in report.suites)
        if report.verdict == "inconclusive" and spoiled and now() < deadline:
            return await attempt()
        return report

    def _run_spec(self, row: ValidationRow, sampling: Sampling) -> ValidationRun:
        """How often everything is answered: a second greedy answer would be the first again."""
        fixed, base = self._config.seeds, self._catalog.base
        samples = self._config.samples if fixed is None else (fixed,)
        return ValidationRun(
            row.run_id,
            row.candidate,
            row.against,
            seeds=tuple(range(fixed or 1)),
            samples=(1,) if sampling.greedy and fixed is None else samples,
            base=base if base and base not in {row.candidate, row.against} else None,
        )

    def _make_validator(self, left: timedelta, sampling: Sampling) -> Validator:
        config = self._config
        once = Sampling(config.temperature or 0.0)
        once_ask = ModelClient(
            self._models.find,
            max_tokens=config.max_tokens,
            key_of=self._models.key_of,
            unusable_fields=self._models.unusable_fields,
            temperature=once.temperature,
        )
        max_tokens = min(config.max_tokens, sampling.max_tokens or config.max_tokens)
        judge = self._judge.name if self._judge else ""
        identity = f"{config.max_tokens}/{judge}"
        resampled = once_ask.with_sampling(
            sampling.temperature,
            sampling.top_p,
            max_tokens=min(config.max_tokens, SAFETY_TOKENS),
        )
        models = ModelClients(
            once_ask.with_sampling(sampling.temperature, sampling.top_p, max_tokens=max_tokens),
            once_ask,
            None if sampling.greedy or config.seeds is not None else resampled,
            sampling,
        )
        return Validator(
            models,
            self._reports.sample_scores,
            scores=BaselineScores(
                self._folder,
                f"{identity}/{sampling}/{SAFETY_TOKENS}",
                f"{identity}/{once}",
                deterministic=once.greedy,
            ),
            clock=self._clock,
            sandbox=self._sandbox,
            judge=self._judge,
            sleep=self._sleep,
            pace=replace(self._pace, deadline=left),
            analyse=self._analyse,
        )


def run_pace(config: ValidateConfig) -> RunPace:
    """How hard the models are worked, and how long at most."""
    deadline = timedelta(minutes=config.deadline_minutes)
    soft = min(deadline, timedelta(minutes=config.minutes))
    return RunPace(concurrent_pairs=config.at_once, tries=4, deadline=deadline, soft_deadline=soft)


def _comparison(row: ValidationRow) -> Comparison:
    return row.candidate, row.against, row.suites


def _retrieve_exception(task: asyncio.Task[ValidationReport]) -> None:
    """Its row tells what went wrong, so nobody has to ask the task."""
    if not task.cancelled():
        task.exception()
