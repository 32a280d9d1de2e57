"""Which plan holds, and who answers this episode under it?

A plan is applied between two requests: streams under way end where they began. Its lease is a timer
of its own, which counts from when the plan arrived; when it runs out, the baseline answers alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

from upswing.contracts.traffic import Model, Plan, is_plan_newer
from upswing.errors import Misuse, Transient
from upswing.gateway.core.episode_table import OpenEpisode
from upswing.gateway.core.episodes import IdentitySource
from upswing.gateway.core.routing import (
    RouteTarget,
    RoutingTable,
    build_routing_table,
    continuing_target,
    draw_target,
    retired_baselines,
    shares_label,
    traffic_shares,
    user_bucket,
)
from upswing.gateway.core.serving_policy import ServingPolicy
from upswing.infra.nats.traffic import Pins

log = logging.getLogger(__name__)
_MAX_RETIRED = 8
"""Former baselines whose episodes may still end where they began."""


class TrafficRouter:
    """The plan, and the model of every episode under it."""

    def __init__(
        self,
        policy: ServingPolicy,
        clock: Callable[[], datetime],
        pins: Pins | None,
        *,
        draw: Callable[[], float],
        by_user: bool = False,
    ) -> None:
        """`draw` gives a number from 0 to 1 by chance; `by_user`: users keep their model."""
        self._policy, self._clock, self._pins = policy, clock, pins
        self._draw, self._by_user = draw, by_user
        self.plan: Plan | None = None
        self.table: RoutingTable | None = None
        self.unavailable_reason = "There is no traffic plan yet."
        """Why there is no table."""
        self._retired: dict[str, Model] = {}
        self._lease_timer: asyncio.TimerHandle | None = None
        self._lease_deadline: float | None = None
        """When the lease ends, by the time of the event loop, which nobody sets."""

    # --- the plan --------------------------------------------------------------------------------

    def apply(self, plan: Plan, age: float | None = None) -> bool:
        """Follow this plan from the next request on; False when it is older than what holds.

        `age`: the seconds since it was written, where somebody knows. One that arrives again is no newer.
        """
        if not is_plan_newer(plan, self.plan):
            return False
        if plan == self.plan:
            return True
        if self.plan is not None:
            retired = retired_baselines(self.plan, plan, self._retired)
            self._retired = dict(list(retired.items())[-_MAX_RETIRED:])
        self.plan = plan
        self.stop()
        left, loop = plan.lease_left(age, self._clock()), asyncio.get_running_loop()
        self._lease_deadline = None if left is None else loop.time() + left
        if left is not None and left > 0:
            self._lease_timer = loop.call_later(left, self._on_lease_expired)
        self._install(plan, leased=left is None or left > 0)
        return True

    def _install(self, plan: Plan, *, leased: bool) -> None:
        """A renewed lease changes nothing, so assignments stay as they are."""
        before = self.table
        try:
            table = build_routing_table(plan, self._policy, leased=leased)
        except Transient as error:
            if before is not None or str(error) != self.unavailable_reason:
                log.error("%s", error, extra={"action": "alert", "reason": "no_base"})  # noqa: TRY400 - a sentence
            self.table, self.unavailable_reason = None, str(error)
            return
        if before is None or _routing_state(before) != _routing_state(table):
            self.table = table
            log.info("traffic: %s", traffic_shares(table), extra={"action": "traffic"})
        if table.alert and (before is None or before.alert != table.alert):
            log.error("%s", table.alert, extra={"action": "alert", "reason": "pin_missing"})

    def _on_lease_expired(self) -> None:
        """No plan came from the controller for the length of a lease."""
        if self.plan is not None:
            log.warning("the lease on the traffic plan is over", extra={"action": "lease_over"})
            self._install(self.plan, leased=False)

    def lease_left(self) -> float | None:
        """Seconds; None for a plan that does not run out."""
        if self._lease_deadline is None:
            return None
        return self._lease_deadline - asyncio.get_running_loop().time()

    def shares(self) -> dict[str, float]:
        return traffic_shares(self.table) if self.table else {}

    @property
    def alert(self) -> str:
        """What a person should hear of; empty: nothing."""
        if self.table is not None:
            return self.table.alert
        return self.unavailable_reason if self.plan else ""

    def stop(self) -> None:
        if self._lease_timer is not None:
            self._lease_timer.cancel()
            self._lease_timer = None

    # --- assignments -----------------------------------------------------------------------------

    def assign(
        self, table: RoutingTable, episode: OpenEpisode, requested_model: str
    ) -> RouteTarget:
        """Who answers the next request of this episode.

        `requested_model` is a model that the client asks for; a candidate, and no other, can be had so. One
        that is withdrawn answers nobody: the baseline does, and the episode says so. When chance has
        chosen, a requested model comes too late: who sees how it goes could else choose what is evidence.
        """
        if requested_model and _was_drawn(episode):
            if (
                self._resolve_requested(table, episode, requested_model) is None
                and requested_model not in table.withdrawn
            ):
                raise _unknown_model(requested_model)
        elif requested_model:
            return self._assign_requested(table, episode, requested_model)
        if episode.assignment is not None and episode.assignment[0] is table:
            return episode.assignment[1]
        if episode.model_id:
            target = continuing_target(table, episode.model_id, self._retired) or table.baseline
            _mark_withdrawn(table, episode, episode.model_id)
            return self._set_assignment(table, episode, target)
        if (pinned_model := self._pinned_model(episode)) is not None:
            target = continuing_target(table, pinned_model, self._retired) or table.baseline
            if _mark_withdrawn(table, episode, pinned_model):
                target = table.baseline
            if target.model.model_id == pinned_model:  # the pin exists already
                episode.model_id = pinned_model
            return self._set_assignment(table, episode, target)
        return self._draw_target(table, episode)

    def _pinned_model(self, episode: OpenEpisode) -> str | None:
        """The model that this conversation got before, here or elsewhere."""
        if self._pins is None:
            return None
        return next(filter(None, map(self._pins.get, episode.earlier_pins)), None)

    def _draw_target(self, table: RoutingTable, episode: OpenEpisode) -> RouteTarget:
        """Let chance choose: only so is an episode evidence of a rollout."""
        episode.by_user = self._by_user and bool(episode.user_id)
        position = (
            user_bucket(table.plan.salt, f"{episode.principal}\0{episode.user_id}")
            if episode.by_user
            else self._draw()
        )
        target = draw_target(table, position)
        episode.switch = target.switch
        if not target.switch:
            episode.rollout, episode.step = table.plan.rollout, shares_label(table)
        return self._set_assignment(table, episode, target)

    def _assign_requested(
        self, table: RoutingTable, episode: OpenEpisode, requested_model: str
    ) -> RouteTarget:
        target = self._resolve_requested(table, episode, requested_model)
        if _mark_withdrawn(table, episode, requested_model):
            target = table.baseline
        if target is None:
            raise _unknown_model(requested_model)
        if (
            table.base is not None
            and table.is_trained(target.model)
            and not self._cap_allows(table, episode, target)
        ):
            episode.switch, target = table.base.switch, table.base
        episode.requested_by_name = True
        episode.rollout = episode.rollout or table.plan.rollout
        return self._set_assignment(table, episode, target)

    def _resolve_requested(
        self, table: RoutingTable, episode: OpenEpisode, requested_model: str
    ) -> RouteTarget | None:
        target = table.requestable_target(requested_model)
        if target is None and requested_model in {
            episode.model_id,
            episode.first_model_id,
            self._pinned_model(episode),
        }:
            # Chance gave it this one before.
            target = continuing_target(table, requested_model, self._retired)
        return target

    def _cap_allows(self, table: RoutingTable, episode: OpenEpisode, target: RouteTarget) -> bool:
        """A cap holds for models that are asked for by name, too: once drawn, an episode stays as it is."""
        if episode.switch:
            return False
        return target.model.model_id == episode.model_id or self._draw() < table.max_share

    def _set_assignment(
        self, table: RoutingTable, episode: OpenEpisode, target: RouteTarget
    ) -> RouteTarget:
        name = target.model.model_id
        episode.assignment = (table, target)
        if episode.model_id != name:
            episode.model_id = name
            if self._pins is not None:
                if not episode.ambiguous:
                    episode.ambiguous = self._pin_conflicts(self._pins, episode, name)
                if not episode.ambiguous:
                    self._pins.put(episode.pin, name)
        if not episode.first_model_id:
            episode.first_model_id, episode.candidate = name, target.candidate
        if name not in episode.models:
            episode.models.append(name)
        return target

    @staticmethod
    def _pin_conflicts(pins: Pins, episode: OpenEpisode, name: str) -> bool:
        """Has another conversation that opened alike got another model? It keeps the name of its opening."""
        fresh = not episode.first_model_id and episode.source is not IdentitySource.GIVEN
        return fresh and pins.get(episode.pin) not in {None, name}

    def pin_by_answer(self, episode: OpenEpisode, pins: tuple[str, ...]) -> None:
        """From its first answer on it is known by that."""
        if self._pins is not None and pins:
            episode.ambiguous, episode.pin = False, pins[0]
            for pin in pins:
                self._pins.put(pin, episode.model_id)


def _routing_state(table: RoutingTable) -> tuple[object, ...]:
    plan = table.plan
    shares = table.candidates, table.holdback, table.base_share, table.base
    return plan.rollout, plan.salt, table.baseline, table.withdrawn, shares, table.alert


def _was_drawn(episode: OpenEpisode) -> bool:
    """Has chance chosen for it, so that it is evidence of a rollout?"""
    return bool(episode.rollout and episode.first_model_id) and not episode.requested_by_name


def _unknown_model(requested_model: str) -> Misuse:
    return Misuse(f"No model here is called {requested_model!r}; GET /v1/models lists them.")


def _mark_withdrawn(table: RoutingTable, episode: OpenEpisode, model_id: str) -> bool:
    """Is this model withdrawn? Then the episode says that it was asked for."""
    if model_id not in table.withdrawn:
        return False
    episode.withdrawn = episode.withdrawn or model_id
    return True
