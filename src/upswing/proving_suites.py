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
from typing import Any, Protocol

from upswing import __version__
from upswing.adapters.sql.production import trajectory_of
from upswing.config import ValidateConfig
from upswing.contracts.validation import Recorded
from upswing.dataset.split import is_held_out
from upswing.errors import Misuse, Transient
from upswing.validate.harvest import harvest
from upswing.validate.place_service import Place
from upswing.validate.policy import check_config, policy_of
from upswing.validate.sampling import NEWEST, Sampling, usual_sampling
from upswing.validate.suite import Suite, chosen
from upswing.validate.suites_service import REPLY, KeepsPins, check_files, there
from upswing.validate.suites_service import suites as suites_of
from upswing.validate.task import Task
from upswing.validate.usual import FEWEST, PRODUCTION, usual_suites, worlds_seen
from upswing.validate.verdict import Policy
from upswing.validate.world import World
from upswing.worlds.agentgym_service import Remote
from upswing.worlds.known import known_worlds, world_in
from upswing.worlds.own import check_names, installed_worlds, is_address, load_world

_HELD_OUT = 0.10
"""The share of tasks that training leaves out, unless a request says otherwise."""


class ReadsProduction(Protocol):
    """The newest trajectories; `adapters.sql.production`."""

    async def newest(self) -> Sequence[Recorded]: ...


def held_out_task(task_id: str) -> bool:
    """Whether a task is held out: a fixed hash of it, the same in every cycle."""
    return is_held_out(task_id, _HELD_OUT)


class Repertoire:
    """The suites that can be had."""

    def __init__(
        self,
        config: ValidateConfig,
        pins: KeepsPins,
        *,
        worlds: Mapping[str, World[Any, Any]] | None = None,
        production: ReadsProduction | None = None,
        held_out: Callable[[str], bool] = held_out_task,
        base: str = "",
    ) -> None:
        """`Misuse` when the config names what is not there."""
        self._config, self._pins, self.base = config, pins, base
        self._production, self._held_out = production, held_out
        self._ours = dict(known_worlds() if worlds is None else worlds)
        self._places: dict[str, Place] = {}
        self._worlds: dict[str, World[Any, Any]] = dict(self._ours)
        self._take_worlds()
        self._files = {name: Path(path) for name, path in config.files.items()}
        check_files(self._files)
        self._known = there((*self._worlds, *self._places), self._files)
        if config.suites is not None:
            chosen(config.suites, self._known)
        check_config(config, self._known)

    def _take_worlds(self) -> None:
        own = self._config.worlds
        check_names(own, tuple(self._ours))
        for name, where in own.items():
            try:
                if is_address(where):
                    self._places[name] = Remote(where)
                else:
                    self._worlds[name] = load_world(where)
            except Misuse as error:
                raise Misuse(f"`{name}` in [validate.worlds]: {error}") from None
        named = {each.removeprefix("world:") for each in self._config.suites or ()}
        for name, where in installed_worlds().items():
            if name in named and name not in self._worlds and name not in self._places:
                self._worlds[name] = load_world(where)

    def named(self, names: Sequence[str]) -> tuple[str, ...]:
        """What these names mean; `Misuse` when one is unknown."""
        return chosen(names, self._known)

    async def usual(self, *, remote: bool = False) -> tuple[str, ...]:
        """The config's suites, or those that follow from what there is of the user's own.

        A `remote` model, at somebody else's server, is never measured by worlds of ours unasked.
        """
        if self._config.suites is not None:
            return self.named(self._config.suites)
        newest = await self._newest()
        seen = worlds_seen(world_in(each.task_id) for each in newest[:NEWEST])
        there = {*self._worlds, *self._places} - (set(self._ours) if remote else set())
        worlds = [name for name in (*self._config.worlds, *seen) if name in there]
        own = [f"world:{name}" for name in worlds] + list(self._files)
        if len(self._harvested(newest)) >= FEWEST:
            own.append(PRODUCTION)
        return self.named(usual_suites(own))

    async def made(self, names: Sequence[str], sampling: Sampling) -> tuple[Suite, ...]:
        """The suites of these names; `Misuse` when one cannot be had."""
        config = self._config
        production = self._harvested(await self._newest()) if PRODUCTION in names else ()
        return await suites_of(
            names, pins=self._pins, worlds=self._worlds, files=self._files, places=self._places,
            production=production, versions={name: version_of(each) for name, each in self._worlds.items()},
            most=config.tasks, max_tokens=config.max_tokens, reply=sampling.max_tokens or REPLY,
        )  # fmt: skip

    async def sampling(self, current: str) -> Sampling:
        """How the user's own tasks are answered."""
        if self._config.temperature is not None:
            known = usual_sampling(await self._newest(), current)
            return Sampling(self._config.temperature, 1.0, known.max_tokens)
        return usual_sampling(await self._newest(), current)

    def policy(self, made: Sequence[Suite]) -> Policy:
        """What a model must reach in these suites."""
        return policy_of(self._config, [suite.name for suite in made], self.base)

    def _harvested(self, newest: Sequence[Recorded]) -> tuple[Task, ...]:
        told = [each for each in newest if each.body and not each.learned]
        found = ((each.task_id, trajectory_of(each)) for each in told)
        return harvest(((task, one) for task, one in found if one is not None), self._held_out)

    async def _newest(self) -> Sequence[Recorded]:
        """What was done for users, else what was practised; nothing while the store is away."""
        if self._production is None:
            return ()
        try:
            newest = await self._production.newest()
        except Transient:
            return ()
        return [each for each in newest if not each.practice] or newest


def version_of(world: World[Any, Any]) -> str:
    """The same while the file that defines the world is the same; empty where there is none."""
    module = sys.modules.get(type(world).__module__)
    try:
        source = Path(getattr(module, "__file__", None) or "").read_bytes()
    except OSError:
        return ""
    return f"{__version__}/{sha256(source).hexdigest()}"
