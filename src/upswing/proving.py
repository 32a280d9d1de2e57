"""May this model ship? Here the validator gets its models, suites, sandbox, judge and memory.

    prove ─▶ a row, `running` ─▶ cells, in files ─▶ the report: an artifact, the row, the journal

| what happens                                       | what follows                                    |
|----------------------------------------------------|-------------------------------------------------|
| the same models and suites are being validated     | everybody who asks gets that one's report       |
| another validation is under way                    | this one waits: they would only slow each other |
| another process that lives does the same one       | it is left alone, and its report is waited for  |
| parts were away, and nothing could be decided      | what they spoiled is tried once more, in time   |
| the process is killed                              | asked again, or after `resume`, it goes on with |
|                                                    | the cells that were kept                        |
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
from typing import Any, Protocol
from uuid import UUID

import msgspec

from upswing.adapters.asking import Asking, Find, KeyOf, Unusable
from upswing.adapters.openai import Completion
from upswing.adapters.sandbox import Sandbox
from upswing.adapters.sql.validations import ValidationRow, Validations
from upswing.adapters.validation import FilePins, FileScores
from upswing.config import ValidateConfig
from upswing.contracts.trajectory import Trajectory
from upswing.contracts.validation import ValidationReport
from upswing.errors import Conflict, Misuse, Reason, Rejected, Transient
from upswing.proving_claims import Claims, Lost
from upswing.proving_keeper import Keeper, KeepsFiles
from upswing.proving_suites import ReadsProduction, Repertoire, held_out_task
from upswing.redact import Redactor
from upswing.together import begin
from upswing.validate.metrics import ValidateMetrics
from upswing.validate.moves import Message, RunsCode
from upswing.validate.pin import pin
from upswing.validate.player_service import Pace, Sleep
from upswing.validate.report import Run
from upswing.validate.sampling import Sampling
from upswing.validate.service import Progress, Validator
from upswing.validate.suite import Suite
from upswing.validate.task import Pinned, Task
from upswing.validate.verdict import Policy
from upswing.validate.world import World

_RUN_ID = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,128}")
IsRemote = Callable[[str], Awaitable[bool]]
"""Whether a model answers at somebody else's server."""
HowTrained = Callable[[str], Awaitable[Sequence[str]]]
"""What a model's training says of it, in sentences."""
Pair = tuple[str, str, tuple[str, ...]]
"""Candidate, current model, suites."""


class AsksJudge(Protocol):
    """The model that the reward stage asks too."""

    model: str

    async def __call__(self, messages: Sequence[Mapping[str, str]]) -> Completion: ...


async def _nobody(_: str) -> bool:
    return False


async def _untold(_: str) -> tuple[str, ...]:
    return ()


@dataclass(slots=True)
class _Under:
    """A validation that is under way."""

    row: ValidationRow
    task: asyncio.Task[ValidationReport]
    progress: dict[str, Progress] = field(default_factory=dict)


class Proving:
    """Validations of this machine, one at a time."""

    def __init__(
        self,
        folder: Path,
        config: ValidateConfig,
        rows: Validations,
        objects: KeepsFiles,
        find: Find,
        redactor: Redactor,
        *,
        clock: Callable[[], datetime],
        wall: Callable[[], datetime],
        new_id: Callable[[], UUID],
        key_of: KeyOf = lambda _: "",
        unusable: Unusable = lambda _url, _name: (),
        remote: IsRemote = _nobody,
        trained: HowTrained = _untold,
        judge: AsksJudge | None = None,
        sandbox: RunsCode | None = None,
        worlds: Mapping[str, World[Any, Any]] | None = None,
        production: ReadsProduction | None = None,
        held_out: Callable[[str], bool] = held_out_task,
        base: str = "",
        metrics: ValidateMetrics | None = None,
        pace: Pace | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """`folder` is for validation alone, `key_of` and `unusable` for the servers where `find` leads.

        `remote` says whose model answers at somebody else's server, `trained` what a model's training
        says of itself: it stands in the report.

        `wall` is real time, for claims: several processes may share the rows. `production` tells
        how the agents use the model, and `held_out` which of their tasks are never trained on;
        `base` is the model that candidates are compared with as well.
        `Misuse` when the config names what is not there.
        """
        self._config, self._rows, self._find, self._key_of = config, rows, find, key_of
        self._unusable, self._remote, self._trained = unusable, remote, trained
        self._clock, self._new_id, self._sleep = clock, new_id, sleep
        self._judge = _Opinions(judge) if judge else None
        self._sandbox = sandbox or Sandbox()
        self._pace, self._folder = pace or pace_of(config), folder
        self.pins: FilePins[Task] = FilePins(folder, Task)
        self._repertoire = Repertoire(
            config, self.pins, worlds=worlds, production=production, held_out=held_out, base=base
        )
        self._claims = Claims(rows, str(new_id()), wall)
        self._keeper = Keeper(
            folder, rows, objects, redactor, metrics,
            claims=self._claims, clock=clock, new_id=new_id, sleep=sleep,
        )  # fmt: skip
        self._under: dict[str, _Under] = {}
        self._door, self._turn = asyncio.Lock(), asyncio.Lock()

    async def prove(
        self,
        candidate: str,
        current: str,
        suites: Sequence[str] | None = None,
        run_id: str | None = None,
    ) -> ValidationReport:
        """The report. The validation goes on when whoever waits for it is cancelled."""
        wanted = (candidate, current, await self.suites(suites, candidate))
        async with self._door:
            under = self._same(wanted, run_id)
            if under is None:
                row = await self._row(wanted, run_id)
                if row.report is not None:
                    return row.report
                under = self._begin(row)
        return await asyncio.shield(under.task)

    async def start(
        self, candidate: str, current: str, suites: Sequence[str] | None = None
    ) -> ValidationRow:
        """Begin one in the background; `Conflict` while the same two models are being compared."""
        wanted = (candidate, current, await self.suites(suites, candidate))
        async with self._door:
            for under in self._under.values():
                if _pair(under.row)[:2] == wanted[:2]:
                    raise Conflict(
                        f"{candidate} is being validated against {current} already: {under.row.run_id}."
                    )
            return self._begin(await self._row(wanted, None)).row

    async def resume(self) -> list[str]:
        """Go on with what the last process left; which runs these are."""
        await self._keeper.show()
        await self._claims.orphans()
        return await self.take_up()

    async def take_up(self) -> list[str]:
        """Go on with what no living process does; which runs these are."""
        async with self._door:
            rows = [row for row in await self._rows.unfinished() if row.run_id not in self._under]
            mine = [row for row in rows if await self._claims.take(row.run_id)]
            return [self._begin(row).row.run_id for row in mine]

    async def close(self) -> None:
        """Stop; what is under way goes on after the next start."""
        tasks = [under.task for under in self._under.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def look(self, run_id: str) -> tuple[ValidationRow, tuple[Progress, ...]] | None:
        """A validation, and how far it is while it runs."""
        under = self._under.get(run_id)
        row = await self._rows.get(run_id)
        if row is None:
            return None
        return row, tuple(under.progress.values()) if under and row.ended is None else ()

    async def suites(self, names: Sequence[str] | None, candidate: str = "") -> tuple[str, ...]:
        """What these names mean, or without any the usual; `Rejected` when one is unknown."""
        if names is None:
            return await self._repertoire.usual(remote=await self._remote(candidate))
        if not names:
            raise Rejected(Reason.SCHEMA, "Name at least one suite, or leave `suites` out.")
        try:
            wanted = self._repertoire.named(names)
        except Misuse as error:
            raise Rejected(Reason.SCHEMA, str(error)) from None
        for name in wanted:
            if name.startswith("inspect:") and name not in (self._config.suites or ()):
                raise Rejected(
                    Reason.SCHEMA,
                    f"{name} runs code: name it in `suites` of [validate] to have it run.",
                )
        return wanted

    async def pin(
        self, trajectory: Trajectory, expectation: Pinned | None = None, turn_id: int | None = None
    ) -> tuple[Task, bool]:
        """Make a failure a task of the suite `regression`; whether it is new."""
        try:
            task = pin(trajectory, expectation, turn_id=turn_id)
        except Misuse as error:
            raise Rejected(Reason.SCHEMA, str(error)) from None
        return task, await self.pins.add(task)

    async def forget(self, trajectory_ids: Collection[str]) -> int:
        """These trajectories are erased: so are the tasks made of them. How many went."""
        return await self.pins.forget(trajectory_ids)

    # ── one validation ───────────────────────────────────────────────────────────────────────

    def _same(self, wanted: Pair, run_id: str | None) -> _Under | None:
        """One under way that is what is asked for."""
        for known, under in self._under.items():
            if _pair(under.row) == wanted and run_id in {None, known}:
                return under
        return None

    async def _row(self, wanted: Pair, run_id: str | None) -> ValidationRow:
        """The row to go on with: of this id, or one that was left unfinished, or a new one."""
        candidate, current, names = wanted
        for model in (candidate, current):
            with contextlib.suppress(Transient):  # it may be back before it is asked
                await self._find(model)
        if run_id is None:
            for row in await self._rows.unfinished():
                if _pair(row) == wanted and row.run_id not in self._under:
                    return row
            run_id = str(self._new_id())
        elif not _RUN_ID.fullmatch(run_id):
            raise Rejected(Reason.SCHEMA, f"{run_id[:80]!r} cannot be the id of a validation.")
        row = await self._rows.begin(run_id, candidate, current, names, self._clock())
        if _pair(row) != wanted:
            raise Conflict(f"{run_id} is the validation of {row.candidate} against {row.against}.")
        return row

    def _begin(self, row: ValidationRow) -> _Under:
        progress: dict[str, Progress] = {}
        task = begin(self._go(row, progress), name=f"validation {row.run_id}")
        task.add_done_callback(_heard)
        self._under[row.run_id] = _Under(row, task, progress)
        return self._under[row.run_id]

    async def _go(self, row: ValidationRow, progress: dict[str, Progress]) -> ValidationReport:
        try:
            while (theirs := await self._claims.awaited(row.run_id)) is None:
                with contextlib.suppress(Lost):  # then whoever has it now is waited for
                    async with self._claims.held(row.run_id):
                        return await self._kept(row, progress)
            return theirs
        finally:
            self._under.pop(row.run_id, None)

    async def _kept(self, row: ValidationRow, progress: dict[str, Progress]) -> ValidationReport:
        try:
            async with self._turn:
                sampling = await self._repertoire.sampling(row.against)
                made = await self._made(row, sampling)
                policy = self._repertoire.policy(made)
                report = await self._validated(row, made, policy, sampling, progress)
                told = await self._trained(row.candidate)
                report = msgspec.structs.replace(report, notes=(*told, *report.notes))
                return await self._keeper.keep(report, policy)
        except Lost:
            raise
        except Exception as error:  # nobody may be waiting for the task: the row has to say it
            await self._keeper.fail(row.run_id, error)
            raise

    async def _made(self, row: ValidationRow, sampling: Sampling) -> Sequence[Suite]:
        try:
            return await self._repertoire.made(row.suites, sampling)
        except Misuse as error:  # that says nothing of the model, and an operator can mend it
            raise Transient(str(error)) from None

    async def _validated(
        self, row: ValidationRow, made: Sequence[Suite], policy: Policy, sampling: Sampling,
        progress: dict[str, Progress],
    ) -> ValidationReport:  # fmt: skip
        now = asyncio.get_running_loop().time
        until = now() + self._pace.deadline.total_seconds()
        run = self._run(row, sampling)

        def note(told: Progress) -> None:
            progress[told.suite] = told

        async def tried() -> ValidationReport:
            left = timedelta(seconds=max(0.0, until - now()))
            return await self._validator(left, sampling).run(run, made, policy, note)

        report = await tried()
        spoiled = any(any(suite.spoiled.values()) for suite in report.suites)
        if report.word == "inconclusive" and spoiled and now() < until:
            return await tried()
        return report

    def _run(self, row: ValidationRow, sampling: Sampling) -> Run:
        """How often everything is answered: a second greedy answer would be the first again."""
        fixed, base = self._config.seeds, self._repertoire.base
        samples = self._config.samples if fixed is None else (fixed,)
        return Run(
            row.run_id, row.candidate, row.against, seeds=tuple(range(fixed or 1)),
            samples=(1,) if sampling.greedy and fixed is None else samples,
            base=base if base and base not in {row.candidate, row.against} else None,
        )  # fmt: skip

    def _validator(self, left: timedelta, sampling: Sampling) -> Validator:
        config = self._config
        once = Sampling(config.temperature or 0.0)
        once_ask = Asking(
            self._find, most=config.max_tokens, key_of=self._key_of, unusable=self._unusable,
            temperature=once.temperature,
        )  # fmt: skip
        most = min(config.max_tokens, sampling.max_tokens or config.max_tokens)
        judge = self._judge.name if self._judge else ""
        about = f"{config.max_tokens}/{judge}"
        return Validator(
            once_ask.sampled(sampling.temperature, sampling.top_p, most=most),
            self._keeper.cells,
            once=once_ask,
            resampled=None
            if sampling.greedy or config.seeds is not None
            else once_ask.sampled(sampling.temperature, sampling.top_p, most=config.max_tokens),
            sampling=sampling,
            scores=FileScores(
                self._folder, f"{about}/{sampling}", f"{about}/{once}", deterministic=once.greedy
            ),
            clock=self._clock,
            sandbox=self._sandbox,
            judge=self._judge,
            sleep=self._sleep,
            pace=replace(self._pace, deadline=left),
        )


def pace_of(config: ValidateConfig) -> Pace:
    """How hard the models are worked, and how long at most."""
    deadline = timedelta(minutes=config.deadline_minutes)
    soft = min(deadline, timedelta(minutes=config.minutes))
    return Pace(at_once=config.at_once, tries=4, deadline=deadline, soft=soft)


class _Opinions:
    """The judge, as a checker asks it."""

    def __init__(self, ask: AsksJudge) -> None:
        self._ask = ask
        self._few = asyncio.Semaphore(2)
        """Each holds a line to the judge that rewards need too."""
        self.name = ask.model

    async def __call__(self, messages: Sequence[Message]) -> str:
        async with self._few:
            return (await self._ask(messages)).text


def _pair(row: ValidationRow) -> Pair:
    return row.candidate, row.against, row.suites


def _heard(task: asyncio.Task[ValidationReport]) -> None:
    """Its row tells what went wrong, so nobody has to ask the task."""
    if not task.cancelled():
        task.exception()
