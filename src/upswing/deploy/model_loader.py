"""Is a model served yet? It is loaded once, however many ask, and nothing waits for it under the lock.

A load can take minutes, and a rollback has seconds. So who needs a model says so under the lock, has it
loaded outside, and takes the lock again to see whether everything still stands as it did:

| who asks             | does                                                                          |
|----------------------|-------------------------------------------------------------------------------|
| an operator's action | `with_loaded`: checked, loaded, checked anew, carried out                      |
| a validation, a start| `wait_loaded`: waits outside the lock                                          |
| a rollout's turn     | `ready`: does not wait; when the model is there, its turn comes again          |
| a tick               | `wait_briefly`: waits for three seconds at most                                |
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Generic, TypeVar

from upswing.contracts.traffic import Model as Served
from upswing.deploy.executor import RolloutExecutor
from upswing.errors import Transient
from upswing.infra.tasks import start_task

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PlannedAction(Generic[T]):
    """What is about to happen, as things stand."""

    needs: Collection[str]
    """Models that have to be served first."""
    act: Callable[[], Awaitable[T]]


class ModelLoader:
    """Models being loaded by a server; `on_done` is called when one has arrived, or never will."""

    def __init__(
        self, executor: RolloutExecutor, on_done: Callable[[], None] = lambda: None
    ) -> None:
        self._executor, self._on_done = executor, on_done
        self._tasks: dict[str, asyncio.Task[Served]] = {}
        self._held: list[str] = []

    @property
    def wanted(self) -> set[str]:
        """Those that servers must not forget just now."""
        loading = {name for name, task in self._tasks.items() if not task.done()}
        return loading | set(self._held)

    def is_loading(self, model_id: str) -> bool:
        """Is it being loaded, or does nobody know yet how that ended?"""
        return model_id in self._tasks

    # ── outside the lock ─────────────────────────────────────────────────────────────────────

    async def wait_loaded(self, model_id: str) -> None:
        """Wait until it is served; whoever stops waiting does not stop the load."""
        if (known := self._tasks.get(model_id)) is not None and known.done():
            del self._tasks[model_id]  # what was wrong then may be right now
        task = self._load_task(model_id)
        await asyncio.wait({task})
        self._finish(model_id, task)

    async def with_loaded(self, plan: Callable[[], Awaitable[PlannedAction[T]]]) -> T:
        """Carry a plan out under the lock. What it needs is loaded before, and then all is checked anew."""
        executor, mine = self._executor, list[str]()
        try:
            while True:
                async with executor.lock:
                    intent = await plan()
                    there = set(mine) & executor.planner.served.keys()
                    missing = sorted(set(intent.needs) - there)
                    if not missing:
                        return await intent.act()
                    self._held += missing
                    mine += missing
                for name in missing:
                    await self.wait_loaded(name)
        finally:
            for name in mine:
                self._held.remove(name)

    async def start_load(self, model_id: str) -> None:
        """Begin to load it; a server that has it says so at once. `ready` tells what came of it."""
        if model_id not in self._executor.planner.served:
            await asyncio.wait(
                {self._load_task(model_id)}, timeout=self._executor.env.timeouts.loaded
            )

    # ── under the lock ───────────────────────────────────────────────────────────────────────

    def ready(self, model_id: str) -> bool:
        """Is it served? If not, it is loaded from now on. What went wrong is raised once."""
        if model_id in self._executor.planner.served:
            return True
        task = self._load_task(model_id)
        if task.done():
            self._finish(model_id, task)
        return model_id in self._executor.planner.served

    async def wait_briefly(self, model_id: str) -> None:
        """Have it served; what takes longer than a tick can wait goes on by itself."""
        task = self._load_task(model_id)
        await asyncio.wait({task}, timeout=self._executor.env.timeouts.load)
        if not task.done():
            raise Transient(f"The server of {model_id} is still loading it.")
        self._finish(model_id, task)

    def close(self) -> None:
        """Nobody waits for servers any more."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    # ── inside ───────────────────────────────────────────────────────────────────────────────

    def _load_task(self, model_id: str) -> asyncio.Task[Served]:
        """The load that is under way, or has failed and nobody knows; else a new one."""
        task = self._tasks.get(model_id)
        if task is None or (task.done() and not _failure(task)):
            task = start_task(self._ensure(model_id), name=f"load {model_id}")
            task.add_done_callback(self._notify)
            self._tasks[model_id] = task
        return task

    async def _ensure(self, model_id: str) -> Served:
        """Have a model served; the base by its name."""
        env = self._executor.env
        row = self._executor.deployment.models.get(model_id) or await env.store.model(model_id)
        served = await env.serving.ensure(row if row is not None else model_id)
        self._executor.planner.served[model_id] = served
        return served

    def _notify(self, task: asyncio.Task[Served]) -> None:
        _failure(task)  # it is told to who asks next, if anybody does
        self._on_done()

    def _finish(self, model_id: str, task: asyncio.Task[Served]) -> None:
        if self._tasks.get(model_id) is task:
            del self._tasks[model_id]
        task.result()


def _failure(task: asyncio.Task[Served]) -> BaseException | None:
    return None if task.cancelled() else task.exception()
