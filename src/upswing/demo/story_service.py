"""What happens in the demo, one thing after the other? Nothing is scripted but the sabotage.

    measure ─▶ agents work ─▶ trigger ─▶ train ─▶ validate ─▶ canary ─▶ measure      (a cycle, twice)
            ─▶ a worthless model is pushed out by an override ─▶ agents work ─▶ it is taken back

The story lets agents work and waits for what the loop does about it. A stage that does not come to an
end in its time is said so, and the story goes on.
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

from upswing.adapters.environment import child_environment
from upswing.contracts.typed import from_json
from upswing.demo.heldout import Measured, mean_scores
from upswing.demo.plan import Plan
from upswing.demo.watch_service import Watch
from upswing.errors import Misuse, Transient
from upswing.ports import Job, ModelRow
from upswing.runtime import Loop
from upswing.worlds.crowd_service import Crowd
from upswing.worlds.world import Task, World

_JOB_ENDED = frozenset({"completed", "failed", "cancelled"})
_ON_ITS_WAY = frozenset({"trained", "validating", "passed", "canary"})
_REFUSED = frozenset({"failed", "undecided", "aborted", "rolled_back", "retired"})
_WORTHLESS = "sabotage-"
_MAKING_SECONDS = 600.0
_PACES = {"full": 0.0, "ramp": 1.0, "idle": 2.5}
"""Seconds that agents rest between rounds: training and validating need the processors too."""
_SLOW = 4
"""So much longer they rest where answering takes the processors for long. Otherwise what they do during
a rollout would trigger the next training before it has ended."""

T = TypeVar("T")


class Told(Struct):
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
    plan: Plan
    world: World[Any, Any]
    crowd: Crowd
    watch: Watch
    folder: Path
    told: Told = field(default_factory=Told)
    _at: int = 0

    async def run(self, cycles: int) -> None:
        """All of it."""
        if not self.told.measured:
            async with self._stage("measure", "The base does tasks that nobody will learn from."):
                await self.measure()
        for number in range(1, cycles + 1):
            await self._cycle(number)
        await self._sabotage()

    async def measure(self) -> Measured:
        """The model that answers now, on the held-out tasks."""
        sizes = self.plan.sizes
        tasks = self.world.held_out[: sizes.held_out]
        self.watch.measuring = True
        played = [
            each
            for _ in range(sizes.samples)
            for each in await self.crowd.play(
                tasks, window=self._window(), temperature=sizes.temperature, evaluation=True
            )
        ]
        self.watch.measuring = False
        model = await self._baseline()
        scores = mean_scores(played)
        if not scores:
            raise Transient("No held-out task was answered, so nothing can be measured.")
        found = Measured(model, scores)
        self.told.measured.append(found)
        self.watch.say(f"{model} scores {found.mean:.2f} on {len(scores)} held-out tasks.", "measure")  # fmt: skip
        return found

    # ── a cycle ──────────────────────────────────────────────────────────────────────────────

    async def _cycle(self, number: int) -> None:
        tail = "" if number == 1 else f"_{number}"
        model = await self._on_its_way()
        if model is None:
            job = await self._trained(tail)
            if job is None or job.state != "completed":
                self.watch.say(f"This cycle made no model: {_why(job)}")
                return
            model = await self.loop.models.by_job(job.job_id)
        if model is None or not await self._shipped(model.model_id, tail):
            return
        self.told.stages.setdefault("first_improved", round(self.told.seconds + self.watch.second, 1))  # fmt: skip
        async with self._stage(f"measure_after{tail}", f"{model.model_id} does the held-out tasks."):  # fmt: skip
            await self.measure()

    async def _trained(self, tail: str) -> Job | None:
        known = {each.job_id for each in await self.loop.jobs.list(limit=10_000) if each.state in _JOB_ENDED}  # fmt: skip

        async def asked() -> Job | None:
            jobs = await self.loop.jobs.list(limit=10)
            return next((each for each in jobs if each.job_id not in known), None)

        async with self._stage(f"agents{tail}", "Agents work, and every episode is recorded and scored."):  # fmt: skip
            job = await self._until(asked, "full")
        if job is None:
            return None
        job_id = job.job_id

        async def ended() -> Job | None:
            found = await self.loop.jobs.get(job_id)
            return found if found and found.state in _JOB_ENDED else None

        async with self._stage(f"train{tail}", "There is enough to learn from: a model is trained."):  # fmt: skip
            return await self._until(ended, "idle")

    async def _shipped(self, model_id: str, tail: str) -> bool:
        """Whether it has all traffic in the end."""
        async with self._stage(f"validate{tail}", f"May {model_id} ship? It is compared with the current model."):  # fmt: skip
            state = await self._until(lambda: self._judged(model_id), "idle")
        if state in _REFUSED or state is None:
            self.watch.say(f"{model_id} does not ship: it is {state or 'not decided in time'}.")
            return False
        async with self._stage(f"canary{tail}", f"{model_id} gets a share of the traffic, and more while it does well."):  # fmt: skip
            state = await self._until(lambda: self._ended(model_id), "ramp")
        self.watch.say(f"{model_id} is {state or 'still on its way'}.")
        return state == "deployed"

    async def _judged(self, model_id: str) -> str | None:
        state = await self._state(model_id)
        return state if state in {*_REFUSED, "canary", "deployed"} else None

    async def _ended(self, model_id: str) -> str | None:
        state = await self._state(model_id)
        return state if state in {*_REFUSED, "deployed"} else None

    # ── the sabotage ─────────────────────────────────────────────────────────────────────────

    async def _sabotage(self) -> None:
        """A model that is worse on purpose, past its validation, and what the canary does about it."""
        name = await self._free_name()
        controller = self._controller()
        async with self._stage("sabotage", "Somebody makes a worthless model and registers it."):
            path = await _worthless(
                self.plan.model, self.loop.folder / "bases", self.folder / name, self.loop.now()
            )
            await controller.register(name, self.plan.model, str(path), "demo")
            state = await self._until(lambda: self._judged(name), "idle")
        if state in {"canary", "deployed"} or state is None:
            self.watch.say(f"{name} is {state or 'not validated in time'}, so nothing is pushed out.")  # fmt: skip
            return
        async with self._stage("take_back", f"{name} is pushed out by an emergency override."):
            await controller.told("override", name, "demo", "the demo's sabotage")
            await self._taken_back(name)

    async def _taken_back(self, name: str) -> None:
        state = await self._until(lambda: self._ended(name), "ramp")
        if state != "rolled_back" or name not in self.watch.first:
            self.watch.say(f"{name} is {state or 'still on its way'}.")
            return
        self.told.taken_back_seconds = round(self.watch.second - self.watch.first[name], 1)
        self.watch.say(f"{name} is taken back {self.told.taken_back_seconds} s after its first answer.")  # fmt: skip

    async def _free_name(self) -> str:
        known = {each["model_id"] for each in await self._controller().models()}
        return next(name for n in count(1) if (name := f"{_WORTHLESS}{n}") not in known)

    # ── what all of it uses ──────────────────────────────────────────────────────────────────

    async def _until(self, found: Callable[[], Awaitable[T | None]], pace: str) -> T | None:
        """Agents work until it is found, or until it takes too long."""
        sizes = self.plan.sizes
        deadline = self.watch.second + sizes.patience
        pace = "full" if sizes.slow and pace == "ramp" else pace
        tasks = sizes.round if pace == "full" else max(1, sizes.round // 3)
        while (answer := await found()) is None:
            if self.watch.second > deadline:
                self.watch.say("That takes too long; the story goes on without it.")
                return None
            await self.crowd.play(self._next(tasks), window=self._window())
            await asyncio.sleep(_PACES[pace] * (_SLOW if sizes.slow else 1))
        return answer

    def _next(self, size: int) -> list[Task]:
        tasks = self.world.training
        chosen = [tasks[(self._at + place) % len(tasks)] for place in range(size)]
        self._at += size
        return chosen

    def _window(self) -> str:
        return f"{self.loop.now():%Y-%m-%dT%H:00}"

    def _controller(self) -> Any:
        if self.loop.shipping is None:
            raise Transient("This loop serves no models.")
        return self.loop.shipping.controller

    async def _baseline(self) -> str:
        return str((await self._controller().traffic())["baseline"])

    async def _state(self, model_id: str) -> str | None:
        row = await self.loop.models.get(model_id)
        return row.state if row else None

    async def _on_its_way(self) -> ModelRow | None:
        """A model that an earlier start has trained, and that is not decided yet."""
        found = (
            each
            for each in await self.loop.models.list()
            if each.state in _ON_ITS_WAY and not each.model_id.startswith(_WORTHLESS)
        )
        return next(found, None)

    def _stage(self, name: str, chapter: str) -> _Stage:
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
        before = self.story.told.stages.get(self.name, 0.0)  # of a start that was stopped
        self.story.told.stages[self.name] = round(before + took, 1)
        remember(self.story.folder, self.story)


def remember(folder: Path, story: Story) -> None:
    """Keep what the next start has to know."""
    watch, told = story.watch, story.told
    now = msgspec.structs.replace(
        told, seconds=told.seconds + watch.second, episodes=told.episodes + watch.episodes
    )
    path = folder / "progress.json"
    path.with_suffix(".new").write_bytes(msgspec.json.encode(now))
    path.with_suffix(".new").replace(path)


def recall(folder: Path) -> Told:
    path = folder / "progress.json"
    if not path.exists():
        return Told()
    try:
        return from_json(path.read_bytes(), Told)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise Misuse(f"{path} is damaged: delete it to begin the counts anew.") from None


async def _worthless(base: str, bases: Path, out: Path, made: datetime) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "upswing.demo.sabotage", base, str(bases), str(out), made.isoformat(),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=child_environment(),
    )  # fmt: skip
    try:
        async with asyncio.timeout(_MAKING_SECONDS):
            said, complaint = await process.communicate()
    except TimeoutError:
        raise Transient(f"The worthless model was not made in {_MAKING_SECONDS:.0f} s.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise Transient(f"The worthless model could not be made: {complaint.decode()[-400:]}")
    return said.decode().strip()


def _why(job: Job | None) -> str:
    if job is None:
        return "no training was asked for in time."
    error = msgspec.to_builtins(job.status).get("error", {})
    return f"job {job.job_id} {job.state}. {error.get('message', '')}"
