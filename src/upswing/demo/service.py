"""How does the demo run? A loop with everything embedded, agents, a story, and somebody who looks on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TextIO

import msgspec
import psutil

from upswing.adapters.nats.server import make_folder
from upswing.adapters.sql.validations import Validations
from upswing.config import Surroundings, read_settings
from upswing.demo.ending import summarise
from upswing.demo.plan import Plan, fast, keep
from upswing.demo.slips import Slips
from upswing.demo.story_service import Story, recall, remember
from upswing.demo.summary import Summary
from upswing.demo.view import View
from upswing.demo.watch_service import Watch, beginning
from upswing.errors import Transient
from upswing.logs import set_up_logging
from upswing.running import Running
from upswing.runtime import Address, Loop, now
from upswing.together import aside, begin, end
from upswing.worlds.crowd_service import Crowd
from upswing.worlds.known import world_of

_LOOK_SECONDS = 0.5
_KEEP_SECONDS = 5.0
"""Between two views that are kept; a new chapter and a change of traffic are kept at once."""
_START_SECONDS = 240.0
"""Until the base is served; it is made first, in some twenty seconds of an idle processor."""

Ended = Callable[[Running, Summary], None]


class Shows(Protocol):
    """A terminal, or plain lines."""

    def show(self, view: View) -> None: ...


@dataclass(slots=True)
class Demo:
    """One run in one data directory."""

    folder: Path
    plan: Plan
    cycles: int = 2
    _began: float = field(default_factory=time.monotonic)

    async def run(self, shows: Shows, ended: Ended, *, stay: bool = False) -> Summary | None:
        """The whole story; None when somebody stopped it.

        `ended` is told the result while everything still runs; with `stay` it does until a signal.
        """
        make_folder(self.folder)
        keep(self.folder, self.plan)
        with (self.folder / "demo" / "log.txt").open("a", buffering=1) as words:
            loop = self._loop(words)
            shows.show(beginning(self.plan))
            async with _interruptible() as stopped:
                running = await loop.start()
                try:
                    summary = await self._told(loop, running, shows, stopped)
                    if summary:
                        ended(running, summary)
                    if summary and stay:
                        await _first_of(None, stopped, loop.failed)
                    return summary
                finally:
                    await loop.stop()

    async def _told(
        self, loop: Loop, running: Running, shows: Shows, stopped: asyncio.Event
    ) -> Summary | None:
        story = await self._story(loop, running)
        async with story.crowd, _looked_at(story.watch, shows, self.folder / "demo") as memory:
            done = await _first_of(self._played(story, running), stopped, loop.failed)
            remember(self.folder / "demo", story)
            return await self._summary(story, memory()) if done else None

    async def _played(self, story: Story, running: Running) -> None:
        await _served(str(running.gateway_url))
        story.told.stages.setdefault("start", round(story.watch.second, 1))
        await story.run(self.cycles)

    def _loop(self, words: TextIO) -> Loop:
        """Everything embedded, whatever the environment says."""
        loop = Loop(
            self.folder, read_settings(self.folder, {}), Surroundings(),
            Address(port=0, gateway_port=0), clock=fast(now(), time.monotonic),
            worlds={self.plan.world: world_of(self.plan.world, self.plan.seed)},
        )  # fmt: skip
        set_up_logging(loop.redactor, out=words)
        return loop

    async def _story(self, loop: Loop, running: Running) -> Story:
        sizes = self.plan.sizes
        watch = Watch(loop, self.plan, time.monotonic, self._began)
        await watch.prepare()
        world = world_of(self.plan.world, self.plan.seed)
        crowd = Crowd(
            f"{running.gateway_url}/v1", str(running.gateway_key), Slips(world), agents=sizes.agents,
            at_once=sizes.at_once, seed=self.plan.seed, told=watch.played,
        )  # fmt: skip
        told = recall(self.folder / "demo")
        return Story(loop, self.plan, world, crowd, watch, self.folder / "demo", told)

    async def _summary(self, story: Story, memory_gb: float | None) -> Summary:
        loop, told, watch = story.loop, story.told, story.watch
        rollouts = await loop.shipping.controller.rollouts() if loop.shipping else []
        place = self.folder / "demo"
        files = {
            "data": self.folder, "report": place / "report.html", "charts": place / "charts",
            "log": place / "log.txt", "settings": self.folder / "upswing.toml",
        }  # fmt: skip
        summary = summarise(
            self.plan, told.measured, models=await loop.models.list(), rollouts=rollouts,
            validations=await Validations(loop.store.database).newest(), stages=told.stages,
            seconds=told.seconds + watch.second, episodes=told.episodes + watch.episodes,
            taken_back=told.taken_back_seconds, memory_gb=memory_gb,
            files={name: str(path) for name, path in files.items()}, log=watch.log,
        )  # fmt: skip
        (place / "summary.json").write_bytes(msgspec.json.format(msgspec.json.encode(summary)))
        return summary


# ── what surrounds the story ─────────────────────────────────────────────────────────────────


@asynccontextmanager
async def _interruptible() -> AsyncIterator[asyncio.Event]:
    """Set by the first Ctrl-C or TERM."""
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stopped.set)
    try:
        yield stopped
    finally:
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(name)


async def _first_of(work: Any, stopped: asyncio.Event, failed: asyncio.Event) -> bool:
    """Whether the work came to its end before anything stopped it; its error is raised."""
    ends = [begin(stopped.wait()), begin(failed.wait())]
    task = begin(work) if work is not None else None
    try:
        await asyncio.wait([*ends, *([task] if task else [])], return_when="FIRST_COMPLETED")
        if task and task.done():
            task.result()
            return True
        if failed.is_set():
            raise Transient("A part of the loop broke; the log says which.")
        return False
    finally:
        await end([*ends, *([task] if task else [])])


async def _served(url: str) -> None:
    """Wait until the gateway has a model that answers."""
    async with asyncio.timeout(_START_SECONDS):
        while await asyncio.to_thread(_health, url) != "ok":  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.2)


def _health(url: str) -> str:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=10) as answer:  # noqa: S310 - our own address
            return str(json.load(answer)["status"])
    except urllib.error.URLError as error:
        return str(error)


@asynccontextmanager
async def _looked_at(
    watch: Watch, shows: Shows, folder: Path
) -> AsyncIterator[Callable[[], float | None]]:
    """Show the loop while it works, keep some of the views, and measure the memory of all processes."""
    peak = [0.0]

    async def look() -> None:
        kept_at, known = -_KEEP_SECONDS, None
        with (folder / "views.jsonl").open("ab") as kept:
            while True:
                view = await watch.look()
                shows.show(view)
                peak[0] = max(peak[0], await asyncio.to_thread(_memory_gb))
                news = (view.chapter, view.traffic)
                if news != known or view.second - kept_at >= _KEEP_SECONDS:
                    kept.write(msgspec.json.encode(view) + b"\n")
                    kept_at, known = view.second, news
                await asyncio.sleep(_LOOK_SECONDS)

    looking = aside(look(), name="look")
    try:
        yield lambda: round(peak[0], 2) or None
    finally:
        await end([looking])
        if not looking.cancelled():  # it only ends by itself when it breaks
            looking.result()


def _memory_gb() -> float:
    """Resident memory of this process and everything below it."""
    total = 0
    with contextlib.suppress(psutil.NoSuchProcess):
        me = psutil.Process(os.getpid())
        for process in (me, *me.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                total += process.memory_info().rss
    return total / 1e9
