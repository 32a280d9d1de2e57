"""Which plan holds, and who answers this episode under it?

A plan is applied between two requests: streams under way end where they began. Its lease is a timer
of its own, which counts from when the plan was heard; when it runs out, the baseline answers alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

from upswing.errors import Misuse, Transient
from upswing.gateway.allowance import Allowance
from upswing.gateway.book import Episode
from upswing.gateway.episodes import Source
from upswing.gateway.plan import Model, Plan, supersedes
from upswing.gateway.ports import PinBoard
from upswing.gateway.route import (
    Choice,
    Table,
    bucket,
    choose,
    retire,
    shares,
    stay,
    step_of,
    table_of,
)

log = logging.getLogger(__name__)
_RETIRED = 8
"""Former baselines whose episodes may still end where they began."""


class Traffic:
    """The plan, and the seat of every episode under it."""

    def __init__(
        self, allowance: Allowance, clock: Callable[[], datetime], pins: PinBoard | None, *,
        draw: Callable[[], float], by_user: bool = False,
    ) -> None:  # fmt: skip
        """`draw` gives a number from 0 to 1 by chance; `by_user`: users keep their model."""
        self._allowance, self._clock, self._pins = allowance, clock, pins
        self._draw, self._by_user = draw, by_user
        self.plan: Plan | None = None
        self.table: Table | None = None
        self.trouble = "There is no traffic plan yet."
        """Why there is no table."""
        self._retired: dict[str, Model] = {}
        self._lapse: asyncio.TimerHandle | None = None
        self._lasts: float | None = None
        """When the lease ends, by the time of the event loop, which nobody sets."""

    # --- the plan --------------------------------------------------------------------------------

    def apply(self, plan: Plan, age: float | None = None) -> bool:
        """Follow this plan from the next request on; False when it is older than what holds.

        `age`: the seconds since it was written, where somebody knows. One that is heard again is no newer.
        """
        if not supersedes(plan, self.plan):
            return False
        if plan == self.plan:
            return True
        if self.plan is not None:
            retired = retire(self.plan, plan, self._retired)
            self._retired = dict(list(retired.items())[-_RETIRED:])
        self.plan = plan
        self.stop()
        left, loop = plan.lease_left(age, self._clock()), asyncio.get_running_loop()
        self._lasts = None if left is None else loop.time() + left
        if left is not None and left > 0:
            self._lapse = loop.call_later(left, self._lapsed)
        self._set(plan, leased=left is None or left > 0)
        return True

    def _set(self, plan: Plan, *, leased: bool) -> None:
        """A renewed lease changes nothing, so seats stay as they are."""
        before = self.table
        try:
            table = table_of(plan, self._allowance, leased=leased)
        except Transient as error:
            if before is not None or str(error) != self.trouble:
                log.error("%s", error, extra={"action": "alert", "reason": "no_base"})  # noqa: TRY400 - a sentence
            self.table, self.trouble = None, str(error)
            return
        if before is None or _essence(before) != _essence(table):
            self.table = table
            log.info("traffic: %s", shares(table), extra={"action": "traffic"})
        if table.missing and (before is None or before.missing != table.missing):
            log.error("%s", table.missing, extra={"action": "alert", "reason": "pin_missing"})

    def _lapsed(self) -> None:
        """The controller has not been heard of for a lease."""
        if self.plan is not None:
            log.warning("the lease on the traffic plan is over", extra={"action": "lease_over"})
            self._set(self.plan, leased=False)

    def lease_left(self) -> float | None:
        """Seconds; None for a plan that does not run out."""
        return None if self._lasts is None else self._lasts - asyncio.get_running_loop().time()

    def shares(self) -> dict[str, float]:
        return shares(self.table) if self.table else {}

    @property
    def alert(self) -> str:
        """What a person should hear of; empty: nothing."""
        if self.table is not None:
            return self.table.missing
        return self.trouble if self.plan else ""

    def stop(self) -> None:
        if self._lapse is not None:
            self._lapse.cancel()
            self._lapse = None

    # --- seats -----------------------------------------------------------------------------------

    def seat(self, table: Table, episode: Episode, wished: str) -> Choice:
        """Who answers the next request of this episode.

        `wished` is a model that the client asks for; a candidate, and no other, can be had so. One
        that is withdrawn answers nobody: the baseline does, and the episode says so. When chance has
        chosen, a wish comes too late: who sees how it goes could else choose what is evidence.
        """
        if wished and _is_drawn(episode):
            if self._called(table, episode, wished) is None and wished not in table.withdrawn:
                raise _unknown(wished)
        elif wished:
            return self._named(table, episode, wished)
        if episode.seat is not None and episode.seat[0] is table:
            return episode.seat[1]
        if episode.model_id:
            choice = stay(table, episode.model_id, self._retired) or table.baseline
            _mark(table, episode, episode.model_id)
            return self._seated(table, episode, choice)
        if (pinned := self._pinned(episode)) is not None:
            choice = stay(table, pinned, self._retired) or table.baseline
            if _mark(table, episode, pinned):
                choice = table.baseline
            if choice.model.model_id == pinned:  # what is told already ends in its time
                episode.model_id = pinned
            return self._seated(table, episode, choice)
        return self._drawn(table, episode)

    def _pinned(self, episode: Episode) -> str | None:
        """The model that this conversation got before, here or elsewhere."""
        if self._pins is None:
            return None
        return next(filter(None, map(self._pins.get, episode.earlier)), None)

    def _drawn(self, table: Table, episode: Episode) -> Choice:
        """Let chance choose: only so is an episode evidence of a rollout."""
        episode.by_user = self._by_user and bool(episode.user_id)
        place = (
            bucket(table.plan.salt, f"{episode.principal}\0{episode.user_id}")
            if episode.by_user
            else self._draw()
        )
        choice = choose(table, place)
        episode.switch = choice.switch
        if not choice.switch:
            episode.rollout, episode.step = table.plan.rollout, step_of(table)
        return self._seated(table, episode, choice)

    def _named(self, table: Table, episode: Episode, wished: str) -> Choice:
        choice = self._called(table, episode, wished)
        if _mark(table, episode, wished):
            choice = table.baseline
        if choice is None:
            raise _unknown(wished)
        if (
            table.base is not None
            and table.is_trained(choice.model)
            and not self._may(table, episode, choice)
        ):
            episode.switch, choice = table.base.switch, table.base
        episode.named = True
        episode.rollout = episode.rollout or table.plan.rollout
        return self._seated(table, episode, choice)

    def _called(self, table: Table, episode: Episode, wished: str) -> Choice | None:
        choice = table.named(wished)
        if choice is None and wished in {episode.model_id, episode.chosen, self._pinned(episode)}:
            choice = stay(table, wished, self._retired)  # chance gave it this one before
        return choice

    def _may(self, table: Table, episode: Episode, choice: Choice) -> bool:
        """A cap holds for models that are asked for by name, too: once drawn, an episode stays as it is."""
        if episode.switch:
            return False
        return choice.model.model_id == episode.model_id or self._draw() < table.most

    def _seated(self, table: Table, episode: Episode, choice: Choice) -> Choice:
        name = choice.model.model_id
        episode.seat = (table, choice)
        if episode.model_id != name:
            episode.model_id = name
            if self._pins is not None:
                episode.alike = episode.alike or self._is_taken(self._pins, episode, name)
                if not episode.alike:
                    self._pins.put(episode.pin, name)
        if not episode.chosen:
            episode.chosen, episode.candidate = name, choice.candidate
        if name not in episode.models:
            episode.models.append(name)
        return choice

    @staticmethod
    def _is_taken(pins: PinBoard, episode: Episode, name: str) -> bool:
        """Has another conversation that opened alike got another model? It keeps the name of its opening."""
        fresh = not episode.chosen and episode.source is not Source.GIVEN
        return fresh and pins.get(episode.pin) not in {None, name}

    def tell_apart(self, episode: Episode, pins: tuple[str, ...]) -> None:
        """From its first answer on it is known by that."""
        if self._pins is not None and pins:
            episode.alike, episode.pin = False, pins[0]
            for pin in pins:
                self._pins.put(pin, episode.model_id)


def _essence(table: Table) -> tuple[object, ...]:
    plan = table.plan
    shares = table.candidates, table.holdback, table.beyond, table.base
    return plan.rollout, plan.salt, table.baseline, table.withdrawn, shares, table.missing


def _is_drawn(episode: Episode) -> bool:
    """Has chance chosen for it, so that it is evidence of a rollout?"""
    return bool(episode.rollout and episode.chosen) and not episode.named


def _unknown(wished: str) -> Misuse:
    return Misuse(f"No model here is called {wished!r}; GET /v1/models lists them.")


def _mark(table: Table, episode: Episode, model_id: str) -> bool:
    """Is this model withdrawn? Then the episode says that it was asked for."""
    if model_id not in table.withdrawn:
        return False
    episode.withdrawn = episode.withdrawn or model_id
    return True
