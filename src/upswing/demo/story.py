"""What happens in the demo, one thing after the other? Nothing is scripted but the sabotage.

    measure ─▶ agents work ─▶ trigger ─▶ train ─▶ validate ─▶ canary ─▶ measure      (a cycle, twice)
            ─▶ a worthless model is rolled out by an override ─▶ agents work ─▶ it is rolled back

The story lets agents work and waits for what the loop does about it. A stage that does not end in
its time is logged, and the story goes on.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from upswing.app.loop import Loop
from upswing.contracts.typed import from_json
from upswing.demo.heldout import Measured, mean_scores
from upswing.demo.plan import DemoPlan
from upswing.demo.watch import Watch
from upswing.errors import Misuse, Transient
from upswing.infra.child_env import child_environment
from upswing.records import Job, ModelRow
from upswing.worlds.agent_pool import AgentPool
from upswing.worlds.world import Task, World

_JOB_ENDED = frozenset({"completed", "failed", "cancelled"})
_UNFINISHED = frozenset({"trained", "validating", "passed", "canary"})
_REFUSED = frozenset({"failed", "undecided", "aborted", "rolled_back", "retired"})
_WORTHLESS = "sabotage-"
_MAKING_SECONDS = 600.0
_PACES = {"full": 0.0, "ramp": 1.0, "idle": 2.5}
"""Seconds that agents rest between rounds: training and validating need the processors too."""
_SLOW = 4
"""So much longer they rest where answering takes the processors for long. Otherwise what they do during
a rollout would trigger the next training before it has ended."""

T = TypeVar("T")


class StoryState(Struct):
    """What the demo remembers between two starts."""

    measured: list[Measured] = []
    stages: dict[str, float] = {}
    taken_back_seconds: float | None = None
    seconds: float = 0.0
    """Of the starts before this one."""
    episodes: int = 0


@dataclass(slots=True)
class Story:
    """One run."""

    loop: Loop
    plan: DemoPlan
    world: World[Any, Any]
    agents: AgentPool
    watch: Watch
    folder: Path
    state: StoryState = field(default_factory=StoryState)
    _next_index: int = 0

    async def run(self, cycles: int) -> None:
        """All of it."""
        if not self.state.measured:
            async with self._begin_stage(
                "measure", "The base does tasks that nobody will learn from."
            ):
                await self.measure()
        for number in range(1, cycles + 1):
            await self._run_cycle(number)
        await self._deploy_worthless_model()

    async def measure(self) -> Measured:
        """The model that answers now, on the held-out tasks."""
        sizes = self.plan.sizes
        tasks = self.world.held_out[: sizes.held_out]
        self.watch.measuring = True
        played = [
            each
            for _ in range(sizes.samples)
            for each in await self.agents.play(
                tasks, window=self._current_window(), temperature=sizes.temperature, evaluation=True
            )
        ]
        self.watch.measuring = False
        model = await self._baseline_model()
        scores = mean_scores(played)
        if not scores:
            raise Transient("No held-out task was answered, so nothing can be measured.")
        found = Measured(model, scores)
        self.state.measured.append(found)
        self.watch.log_event(
            f"{model} scores {found.mean:.2f} on {len(scores)} held-out tasks.", "measure"
        )
        return found

    # ── a cycle ──────────────────────────────────────────────────────────────────────────────

    async def _run_cycle(self, number: int) -> None:
        suffix = "" if number == 1 else f"_{number}"
        model = await self._unfinished_model()
        if model is None:
            job = await self._train_model(suffix)
            if job is None or job.state != "completed":
                self.watch.log_event(f"This cycle made no model: {_failure_reason(job)}")
                return
            model = await self.loop.models.by_job(job.job_id)
        if model is None or not await self._roll_out(model.model_id, suffix):
            return
        self.state.stages.setdefault(
            "first_improved", round(self.state.seconds + self.watch.second, 1)
        )
        async with self._begin_stage(
            f"measure_after{suffix}", f"{model.model_id} does the held-out tasks."
        ):
            await self.measure()

    async def _train_model(self, suffix: str) -> Job | None:
        known = {
            each.job_id
            for each in await self.loop.jobs.list(limit=10_000)
            if each.state in _JOB_ENDED
        }

        async def new_job() -> Job | None:
            jobs = await self.loop.jobs.list(limit=10)
            return next((each for each in jobs if each.job_id not in known), None)

        async with self._begin_stage(
            f"agents{suffix}", "Agents work, and every episode is recorded and scored."
        ):
            job = await self._work_until(new_job, "full")
        if job is None:
            return None
        job_id = job.job_id

        async def finished_job() -> Job | None:
            found = await self.loop.jobs.get(job_id)
            return found if found and found.state in _JOB_ENDED else None

        async with self._begin_stage(
            f"train{suffix}", "There is enough to learn from: a model is trained."
        ):
            return await self._work_until(finished_job, "idle")

    async def _roll_out(self, model_id: str, suffix: str) -> bool:
        """Whether it has all traffic in the end."""
        async with self._begin_stage(
            f"validate{suffix}", f"May {model_id} ship? It is compared with the current model."
        ):
            state = await self._work_until(lambda: self._validated_state(model_id), "idle")
        if state in _REFUSED or state is None:
            self.watch.log_event(
                f"{model_id} does not ship: it is {state or 'not decided in time'}."
            )
            return False
        async with self._begin_stage(
            f"canary{suffix}",
            f"{model_id} gets a share of the traffic, and more while it does well.",
        ):
            state = await self._work_until(lambda: self._final_state(model_id), "ramp")
        self.watch.log_event(f"{model_id} is {state or 'still being rolled out'}.")
        return state == "deployed"

    async def _validated_state(self, model_id: str) -> str | None:
        state = await self._state_of_model(model_id)
        return state if state in {*_REFUSED, "canary", "deployed"} else None

    async def _final_state(self, model_id: str) -> str | None:
        state = await self._state_of_model(model_id)
        return state if state in {*_REFUSED, "deployed"} else None

    # ── the sabotage ─────────────────────────────────────────────────────────────────────────

    async def _deploy_worthless_model(self) -> None:
        """A model that is worse on purpose, past its validation, and what the canary does about it."""
        name = await self._free_name()
        controller = self._deploy_controller()
        async with self._begin_stage(
            "sabotage", "Somebody makes a worthless model and registers it."
        ):
            path = await _make_worthless_model(
                self.plan.model, self.loop.folder / "bases", self.folder / name, self.loop.now()
            )
            await controller.register(name, self.plan.model, str(path), "demo")
            state = await self._work_until(lambda: self._validated_state(name), "idle")
        if state in {"canary", "deployed"} or state is None:
            self.watch.log_event(
                f"{name} is {state or 'not validated in time'}, so it is not rolled out."
            )
            return
        async with self._begin_stage(
            "take_back", f"{name} is rolled out by an emergency override."
        ):
            await controller.operator.act("override", name, "demo", "the demo's sabotage")
            await self._wait_for_rollback(name)

    async def _wait_for_rollback(self, name: str) -> None:
        state = await self._work_until(lambda: self._final_state(name), "ramp")
        if state != "rolled_back" or name not in self.watch.first:
            self.watch.log_event(f"{name} is {state or 'still being rolled out'}.")
            return
        self.state.taken_back_seconds = round(self.watch.second - self.watch.first[name], 1)
        self.watch.log_event(
            f"{name} is rolled back {self.state.taken_back_seconds} s after its first answer."
        )

    async def _free_name(self) -> str:
        known = {each["model_id"] for each in await self._deploy_controller().models()}
        return next(name for n in count(1) if (name := f"{_WORTHLESS}{n}") not in known)

    # ── what all of it uses ──────────────────────────────────────────────────────────────────

    async def _work_until(self, find: Callable[[], Awaitable[T | None]], pace: str) -> T | None:
        """Agents work until it is found, or until it takes too long."""
        sizes = self.plan.sizes
        deadline = self.watch.second + sizes.stage_seconds
        pace = "full" if sizes.slow and pace == "ramp" else pace
        tasks = sizes.round if pace == "full" else max(1, sizes.round // 3)
        while (answer := await find()) is None:
            if self.watch.second > deadline:
                self.watch.log_event("That takes too long; the story goes on without it.")
                return None
            await self.agents.play(self._next_tasks(tasks), window=self._current_window())
            await asyncio.sleep(_PACES[pace] * (_SLOW if sizes.slow else 1))
        return answer

    def _next_tasks(self, size: int) -> list[Task]:
        tasks = self.world.training
        chosen = [tasks[(self._next_index + offset) % len(tasks)] for offset in range(size)]
        self._next_index += size
        return chosen

    def _current_window(self) -> str:
        return f"{self.loop.now():%Y-%m-%dT%H:00}"

    def _deploy_controller(self) -> Any:
        if self.loop.delivery is None:
            raise Transient("This loop serves no models.")
        return self.loop.delivery.controller

    async def _baseline_model(self) -> str:
        return str((await self._deploy_controller().traffic())["baseline"])

    async def _state_of_model(self, model_id: str) -> str | None:
        row = await self.loop.models.get(model_id)
        return row.state if row else None

    async def _unfinished_model(self) -> ModelRow | None:
        """A model that an earlier start has trained, and that is not decided yet."""
        found = (
            each
            for each in await self.loop.models.list()
            if each.state in _UNFINISHED and not each.model_id.startswith(_WORTHLESS)
        )
        return next(found, None)

    def _begin_stage(self, name: str, chapter: str) -> _Stage:
        return _Stage(self, name, chapter)


@dataclass(slots=True)
class _Stage:
    """A stretch of the story whose seconds are kept, however it ends."""

    story: Story
    name: str
    chapter: str
    _began: float = 0.0

    async def __aenter__(self) -> None:
        self.story.watch.begin(self.chapter)
        self._began = self.story.watch.second

    async def __aexit__(self, *_: object) -> None:
        took = self.story.watch.second - self._began
        before = self.story.state.stages.get(self.name, 0.0)  # of a start that was stopped
        self.story.state.stages[self.name] = round(before + took, 1)
        save_state(self.story.folder, self.story)


def save_state(folder: Path, story: Story) -> None:
    """Keep what the next start has to know."""
    watch, state = story.watch, story.state
    now = msgspec.structs.replace(
        state, seconds=state.seconds + watch.second, episodes=state.episodes + watch.episodes
    )
    path = folder / "progress.json"
    path.with_suffix(".new").write_bytes(msgspec.json.encode(now))
    path.with_suffix(".new").replace(path)


def load_state(folder: Path) -> StoryState:
    path = folder / "progress.json"
    if not path.exists():
        return StoryState()
    try:
        return from_json(path.read_bytes(), StoryState)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise Misuse(f"{path} is damaged: delete it to begin the counts anew.") from None


async def _make_worthless_model(base: str, bases: Path, out: Path, made: datetime) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "upswing.demo.sabotage",
        base,
        str(bases),
        str(out),
        made.isoformat(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=child_environment(),
    )
    try:
        async with asyncio.timeout(_MAKING_SECONDS):
            output, error_output = await process.communicate()
    except TimeoutError:
        raise Transient(f"The worthless model was not made in {_MAKING_SECONDS:.0f} s.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise Transient(f"The worthless model could not be made: {error_output.decode()[-400:]}")
    return output.decode().strip()


def _failure_reason(job: Job | None) -> str:
    if job is None:
        return "no training was asked for in time."
    error = msgspec.to_builtins(job.status).get("error", {})
    return f"job {job.job_id} {job.state}. {error.get('message', '')}"
