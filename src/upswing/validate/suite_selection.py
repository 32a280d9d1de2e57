"""Which tasks are there to validate with, how are they answered, and which of them count?

    config, worlds, files ─┐
    newest trajectories ───┴─▶ names of suites ─▶ suites, sampling, policy

What the config names and is not there is `Misuse` when the loop starts. A server that is away is
known only when it is asked: its suite is then `inconclusive`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from upswing import __version__
from upswing.config import ValidateConfig
from upswing.contracts.validation import RecordedTask
from upswing.dataset.split import is_held_out
from upswing.errors import Misuse, Transient
from upswing.validate.core.default_suites import (
    MIN_PRODUCTION_TASKS,
    PRODUCTION,
    default_suites,
    frequent_worlds,
)
from upswing.validate.core.harvest import fair_order, harvest_tasks
from upswing.validate.core.policy import check_validate_config, validation_policy
from upswing.validate.core.sampling import MAX_TRAJECTORIES, Sampling, observed_sampling
from upswing.validate.core.suite import TaskSuite, expand_suite_names
from upswing.validate.core.task import ValidationTask
from upswing.validate.core.verdict import ValidationPolicy
from upswing.validate.production import ProductionReader, decode_trajectory
from upswing.validate.sample_score_store import PinStore
from upswing.validate.suite_loader import (
    DEFAULT_REPLY_TOKENS,
    available_suites,
    check_files,
)
from upswing.validate.suite_loader import load_suites as suites_of
from upswing.worlds.agentgym_client import AgentGymClient
from upswing.worlds.known import known_worlds, world_of_task
from upswing.worlds.own import check_names, installed_worlds, is_address, load_world
from upswing.worlds.world import World

_HELD_OUT_SHARE = 0.10
"""The share of tasks that training leaves out, unless a request says otherwise."""


def is_held_out_task(task_id: str) -> bool:
    """Whether a task is held out: a fixed hash of it, the same in every cycle."""
    return is_held_out(task_id, _HELD_OUT_SHARE)


class SuiteCatalog:
    """The suites that can be had."""

    def __init__(
        self,
        config: ValidateConfig,
        pins: PinStore,
        *,
        worlds: Mapping[str, World[Any, Any]] | None = None,
        production: ProductionReader | None = None,
        is_held_out: Callable[[str], bool] = is_held_out_task,
        base: str = "",
    ) -> None:
        """`Misuse` when the config names what is not there."""
        self._config, self._pins, self.base = config, pins, base
        self._production, self._is_held_out = production, is_held_out
        self._builtin_worlds = dict(known_worlds() if worlds is None else worlds)
        self._remote_worlds: dict[str, AgentGymClient] = {}
        self._worlds: dict[str, World[Any, Any]] = dict(self._builtin_worlds)
        self._load_worlds()
        self._files = {name: Path(path) for name, path in config.files.items()}
        check_files(self._files)
        self._available = available_suites((*self._worlds, *self._remote_worlds), self._files)
        if config.suites is not None:
            expand_suite_names(config.suites, self._available)
        check_validate_config(config, self._available)

    def _load_worlds(self) -> None:
        own = self._config.worlds
        check_names(own, tuple(self._builtin_worlds))
        for name, where in own.items():
            try:
                if is_address(where):
                    self._remote_worlds[name] = AgentGymClient(where)
                else:
                    self._worlds[name] = load_world(where)
            except Misuse as error:
                raise Misuse(f"`{name}` in [validate.worlds]: {error}") from None
        named = {each.removeprefix("world:") for each in self._config.suites or ()}
        for name, where in installed_worlds().items():
            if name in named and name not in self._worlds and name not in self._remote_worlds:
                self._worlds[name] = load_world(where)

    def expand(self, names: Sequence[str]) -> tuple[str, ...]:
        """What these names mean; `Misuse` when one is unknown."""
        return expand_suite_names(names, self._available)

    async def default(self, *, remote: bool = False) -> tuple[str, ...]:
        """The config's suites, or those that follow from what there is of the user's own.

        A `remote` model, at somebody else's server, is never measured by worlds of ours unasked.
        """
        if self._config.suites is not None:
            return self.expand(self._config.suites)
        newest = await self._newest_trajectories()
        seen = frequent_worlds(
            world_of_task(each.task_id) if each.from_world else None
            for each in newest[:MAX_TRAJECTORIES]
        )
        worlds_available = {*self._worlds, *self._remote_worlds} - (
            set(self._builtin_worlds) if remote else set()
        )
        worlds = [name for name in (*self._config.worlds, *seen) if name in worlds_available]
        own = [f"world:{name}" for name in worlds] + list(self._files)
        if len(self._harvest(newest)) >= MIN_PRODUCTION_TASKS:
            own.append(PRODUCTION)
        return self.expand(default_suites(own))

    async def load(self, names: Sequence[str], sampling: Sampling) -> tuple[TaskSuite, ...]:
        """The suites of these names; `Misuse` when one cannot be had."""
        config = self._config
        production = self._harvest(await self._newest_trajectories()) if PRODUCTION in names else ()
        return await suites_of(
            names,
            pins=self._pins,
            worlds=self._worlds,
            files=self._files,
            remote_worlds=self._remote_worlds,
            production=production,
            versions={name: world_version(each) for name, each in self._worlds.items()},
            max_own_tasks=config.tasks,
            max_tokens=config.max_tokens,
            reply_tokens=sampling.max_tokens or DEFAULT_REPLY_TOKENS,
        )

    async def sampling(self, current: str) -> Sampling:
        """How the user's own tasks are answered."""
        if self._config.temperature is not None:
            known = observed_sampling(await self._newest_trajectories(), current)
            return Sampling(self._config.temperature, 1.0, known.max_tokens)
        return observed_sampling(await self._newest_trajectories(), current)

    def policy(self, suites: Sequence[TaskSuite]) -> ValidationPolicy:
        """What a model must reach in these suites."""
        return validation_policy(self._config, [suite.name for suite in suites], self.base)

    def _harvest(self, newest: Sequence[RecordedTask]) -> tuple[ValidationTask, ...]:
        candidates = [
            each
            for each in newest
            if each.body and not each.learned and self._is_held_out(each.task_id)
        ]
        found = ((each.task_id, decode_trajectory(each)) for each in fair_order(candidates))
        return harvest_tasks(
            ((task, one) for task, one in found if one is not None), self._is_held_out
        )

    async def _newest_trajectories(self) -> Sequence[RecordedTask]:
        """What was done for users, else what was practised; nothing while the store is away."""
        if self._production is None:
            return ()
        try:
            newest = await self._production.newest()
        except Transient:
            return ()
        return [each for each in newest if not each.practice] or newest


def world_version(world: World[Any, Any]) -> str:
    """The same while the file that defines the world is the same; empty where there is none."""
    module = sys.modules.get(type(world).__module__)
    try:
        source = Path(getattr(module, "__file__", None) or "").read_bytes()
    except OSError:
        return ""
    return f"{__version__}/{sha256(source).hexdigest()}"
