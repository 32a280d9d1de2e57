"""Is a model served yet? It is loaded once, however many ask, and nothing waits for it under the lock.

A load can take minutes, and a way back has seconds. So who needs a model says so under the lock, has it
loaded outside, and takes the lock again to see whether everything still stands as it did:

| who asks             | does                                                                          |
|----------------------|-------------------------------------------------------------------------------|
| an operator's word   | `first`: checked, loaded, checked anew, carried out                            |
| a proof, the baseline| `there`: waits outside the lock                                                |
| a rollout's turn     | `ready`: does not wait; when the model is there, its turn comes again          |
| a look               | `soon`: waits for three seconds at most                                        |
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Generic, TypeVar

from upswing.contracts.traffic import Model as Served
from upswing.deploy.ledger_service import Ledger
from upswing.errors import Transient
from upswing.together import begin

T = TypeVar("T")
LOAD_PATIENCE = 3.0
"""Seconds that a look waits for a server to load a model, which may take minutes."""
_GLIMPSE = 0.2
"""Seconds, outside the lock, in which a server says that it has a model already."""


@dataclass(frozen=True, slots=True)
class Intent(Generic[T]):
    """What is about to happen, as things stand."""

    needs: Collection[str]
    """Models that have to be served first."""
    act: Callable[[], Awaitable[T]]


class Loads:
    """Models on their way to a server; `told` is called when one has arrived, or never will."""

    def __init__(self, ledger: Ledger, told: Callable[[], None] = lambda: None) -> None:
        self._ledger, self._told = ledger, told
        self._tasks: dict[str, asyncio.Task[Served]] = {}
        self._held: list[str] = []

    @property
    def wanted(self) -> set[str]:
        """Those that servers must not forget just now."""
        loading = {name for name, task in self._tasks.items() if not task.done()}
        return loading | set(self._held)

    def under_way(self, model_id: str) -> bool:
        """Is it being loaded, or does nobody know yet how that ended?"""
        return model_id in self._tasks

    # ── outside the lock ─────────────────────────────────────────────────────────────────────

    async def there(self, model_id: str) -> None:
        """Wait until it is served; whoever stops waiting does not stop the load."""
        if (known := self._tasks.get(model_id)) is not None and known.done():
            del self._tasks[model_id]  # what was wrong then may be right now
        task = self._begun(model_id)
        await asyncio.wait({task})
        self._ended(model_id, task)

    async def first(self, plan: Callable[[], Awaitable[Intent[T]]]) -> T:
        """Carry a plan out under the lock. What it needs is loaded before, and then all is checked anew."""
        ledger, mine = self._ledger, list[str]()
        try:
            while True:
                async with ledger.lock:
                    intent = await plan()
                    there = set(mine) & ledger.served.keys()
                    missing = sorted(set(intent.needs) - there)
                    if not missing:
                        return await intent.act()
                    self._held += missing
                    mine += missing
                for name in missing:
                    await self.there(name)
        finally:
            for name in mine:
                self._held.remove(name)

    async def glimpse(self, model_id: str) -> None:
        """Begin to load it; a server that has it says so at once. `ready` tells what came of it."""
        if model_id not in self._ledger.served:
            await asyncio.wait({self._begun(model_id)}, timeout=_GLIMPSE)

    # ── under the lock ───────────────────────────────────────────────────────────────────────

    def ready(self, model_id: str) -> bool:
        """Is it served? If not, it is loaded from now on. What went wrong is raised once."""
        if model_id in self._ledger.served:
            return True
        task = self._begun(model_id)
        if task.done():
            self._ended(model_id, task)
        return model_id in self._ledger.served

    async def soon(self, model_id: str) -> None:
        """Have it served; what takes longer than a look can wait goes on by itself."""
        task = self._begun(model_id)
        await asyncio.wait({task}, timeout=LOAD_PATIENCE)
        if not task.done():
            raise Transient(f"The server of {model_id} is still loading it.")
        self._ended(model_id, task)

    def close(self) -> None:
        """Nobody waits for servers any more."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    # ── inside ───────────────────────────────────────────────────────────────────────────────

    def _begun(self, model_id: str) -> asyncio.Task[Served]:
        """The load that is under way, or has failed and nobody knows; else a new one."""
        task = self._tasks.get(model_id)
        if task is None or (task.done() and not _failure(task)):
            task = begin(self._ledger.ensure(model_id), name=f"load {model_id}")
            task.add_done_callback(self._heard)
            self._tasks[model_id] = task
        return task

    def _heard(self, task: asyncio.Task[Served]) -> None:
        _failure(task)  # it is told to who asks next, if anybody does
        self._told()

    def _ended(self, model_id: str, task: asyncio.Task[Served]) -> None:
        if self._tasks.get(model_id) is task:
            del self._tasks[model_id]
        task.result()


def _failure(task: asyncio.Task[Served]) -> BaseException | None:
    return None if task.cancelled() else task.exception()
