"""How does the demo run? A loop with everything embedded, agents, a story, and somebody who looks on."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

import msgspec
import psutil

from upswing.app.loop import ListenAddress, Loop, now
from upswing.config import Surroundings, read_settings
from upswing.dashboard.main import is_installed as dashboard_installed
from upswing.demo.ending import summarise_demo
from upswing.demo.plan import DemoPlan, accelerated_clock, save_plan
from upswing.demo.private_data import PrivateDataWorld
from upswing.demo.story import Story, load_state, save_state
from upswing.demo.summary import Summary
from upswing.demo.view import View
from upswing.demo.watch import Watch, first_view
from upswing.errors import Transient
from upswing.infra.instance import InstanceInfo
from upswing.infra.nats.server import make_private_folder
from upswing.infra.tasks import cancel_all, run_in_background, start_task
from upswing.logs import LogOptions, set_up_logging
from upswing.serve.readiness import gateway_status
from upswing.validate.repository import Validations
from upswing.worlds.agent_pool import AgentEndpoint, AgentPool, AgentSettings
from upswing.worlds.known import make_world

_VIEW_SECONDS = 0.5
_KEEP_SECONDS = 5.0
"""Between two views that are kept; a new chapter and a change of traffic are kept at once."""
_START_SECONDS = 240.0
"""Until the base is served; it is made first, in some twenty seconds of an idle processor."""

Ended = Callable[[InstanceInfo, Summary], None]
Show = Callable[[View], None]
"""Draws a terminal, or prints plain lines."""


@dataclass(slots=True)
class Demo:
    """One run in one data directory."""

    folder: Path
    plan: DemoPlan
    cycles: int = 2
    log_options: LogOptions = field(default_factory=LogOptions)
    """Without a file, the log goes to the demo's own."""
    _began: float = field(default_factory=time.monotonic)

    async def run(self, show: Show, ended: Ended, *, stay: bool = False) -> Summary | None:
        """The whole story; None when somebody stopped it.

        `ended` is told the result while everything still runs; with `stay` it does until a signal.
        """
        make_private_folder(self.folder)
        save_plan(self.folder, self.plan)
        with (self.folder / "demo" / "log.txt").open("a", buffering=1) as log_file:
            loop = self._make_loop(log_file)
            show(first_view(self.plan))
            async with _stop_on_signal() as stopped:
                running = await loop.start()
                try:
                    summary = await self._run_story(loop, running, show, stopped)
                    if summary:
                        ended(running, summary)
                    if summary and stay:
                        await _first_done(None, stopped, loop.failed)
                    return summary
                finally:
                    await loop.stop()

    async def _run_story(
        self, loop: Loop, running: InstanceInfo, show: Show, stopped: asyncio.Event
    ) -> Summary | None:
        story = await self._make_story(loop, running)
        async with (
            story.agents,
            _show_while_running(story.watch, show, self.folder / "demo") as memory,
        ):
            done = await _first_done(self._play_story(story, running), stopped, loop.failed)
            save_state(self.folder / "demo", story)
            return await self._build_summary(story, memory()) if done else None

    async def _play_story(self, story: Story, running: InstanceInfo) -> None:
        await _until_served(str(running.gateway_url))
        story.state.stages.setdefault("start", round(story.watch.second, 1))
        await story.run(self.cycles)

    def _make_loop(self, log_file: TextIO) -> Loop:
        """Everything embedded, whatever the environment says."""
        loop = Loop(
            self.folder,
            read_settings(self.folder, {}),
            Surroundings(),
            ListenAddress(
                port=0, gateway_port=0, dashboard_port=0 if dashboard_installed() else None
            ),
            clock=accelerated_clock(now(), time.monotonic),
            worlds={self.plan.world: make_world(self.plan.world, self.plan.seed)},
        )
        set_up_logging(loop.redactor, replace(self.log_options, out=log_file))
        return loop

    async def _make_story(self, loop: Loop, running: InstanceInfo) -> Story:
        sizes = self.plan.sizes
        watch = Watch(loop, self.plan, time.monotonic, self._began)
        await watch.prepare()
        world = make_world(self.plan.world, self.plan.seed)
        agents = AgentPool(
            AgentEndpoint(f"{running.gateway_url}/v1", str(running.gateway_key)),
            PrivateDataWorld(world),
            AgentSettings(agents=sizes.agents, at_once=sizes.at_once, seed=self.plan.seed),
            on_result=watch.add_result,
        )
        state = load_state(self.folder / "demo")
        return Story(loop, self.plan, world, agents, watch, self.folder / "demo", state)

    async def _build_summary(self, story: Story, memory_gb: float | None) -> Summary:
        loop, state, watch = story.loop, story.state, story.watch
        rollouts = await loop.delivery.controller.rollouts() if loop.delivery else []
        place = self.folder / "demo"
        files = {
            "data": self.folder,
            "report": place / "report.html",
            "charts": place / "charts",
            "log": place / "log.txt",
            "settings": self.folder / "upswing.toml",
        }
        summary = summarise_demo(
            self.plan,
            state.measured,
            models=await loop.models.list(),
            rollouts=rollouts,
            validations=await Validations(loop.store.database).newest(),
            stages=state.stages,
            seconds=state.seconds + watch.second,
            episodes=state.episodes + watch.episodes,
            rollback_seconds=state.taken_back_seconds,
            memory_gb=memory_gb,
            files={name: str(path) for name, path in files.items()},
            log=watch.log,
        )
        (place / "summary.json").write_bytes(msgspec.json.format(msgspec.json.encode(summary)))
        return summary


# ── what surrounds the story ─────────────────────────────────────────────────────────────────


@asynccontextmanager
async def _stop_on_signal() -> AsyncIterator[asyncio.Event]:
    """Set by the first Ctrl-C or TERM."""
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stopped.set)
    try:
        yield stopped
    finally:
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(name)


async def _first_done(work: Any, stopped: asyncio.Event, failed: asyncio.Event) -> bool:
    """Whether the work came to its end before anything stopped it; its error is raised."""
    ends = [start_task(stopped.wait()), start_task(failed.wait())]
    task = start_task(work) if work is not None else None
    try:
        await asyncio.wait([*ends, *([task] if task else [])], return_when="FIRST_COMPLETED")
        if task and task.done():
            task.result()
            return True
        if failed.is_set():
            raise Transient("A part of the loop broke; the log says which.")
        return False
    finally:
        await cancel_all([*ends, *([task] if task else [])])


async def _until_served(url: str) -> None:
    """Wait until the gateway has a model that answers."""
    async with asyncio.timeout(_START_SECONDS):
        while await asyncio.to_thread(_check_health, url) != "ok":  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.2)


def _check_health(url: str) -> str:
    try:
        return gateway_status(url, seconds=10)
    except Transient as error:
        return str(error)


@asynccontextmanager
async def _show_while_running(
    watch: Watch, show: Show, folder: Path
) -> AsyncIterator[Callable[[], float | None]]:
    """Show the loop while it works, keep some of the views, and measure the memory of all processes."""
    peak = [0.0]

    async def show_views() -> None:
        kept_at, last_shown = -_KEEP_SECONDS, None
        with (folder / "views.jsonl").open("ab") as kept:
            while True:
                view = await watch.view()
                show(view)
                peak[0] = max(peak[0], await asyncio.to_thread(_memory_gb))
                shown = (view.chapter, view.traffic)
                if shown != last_shown or view.second - kept_at >= _KEEP_SECONDS:
                    kept.write(msgspec.json.encode(view) + b"\n")
                    kept_at, last_shown = view.second, shown
                await asyncio.sleep(_VIEW_SECONDS)

    showing = run_in_background(show_views(), name="look")
    try:
        yield lambda: round(peak[0], 2) or None
    finally:
        await cancel_all([showing])
        if not showing.cancelled():  # it only ends by itself when it breaks
            showing.result()


def _memory_gb() -> float:
    """Resident memory of this process and everything below it."""
    total = 0
    with contextlib.suppress(psutil.NoSuchProcess):
        me = psutil.Process(os.getpid())
        for process in (me, *me.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                total += process.memory_info().rss
    return total / 1e9
