"""How does a decision become rows, and then traffic?

**Rows first, then the plan.** A change is one transaction: rollouts, models, evidence, journal, outbox.
The plan is made from the rows and from nothing else, so a crash at any point leaves one of two things:

| the crash comes        | what is true                 | the next controller                            |
|------------------------|------------------------------|------------------------------------------------|
| before the commit      | nothing has happened         | decides the same from the same evidence         |
| between commit and plan| it has happened              | writes the plan before anything else            |

In between, a gateway follows the old plan, for as long as its lease at most. Were the plan written first,
a crash would leave traffic that no row explains, and the next controller would undo it.

**A rollback does not wait for the store.** When its transaction has not ended after two seconds, the plan
that follows from it is written all the same (`planner.py`).

**A decision is computed once.** Whoever decides hands in what came of it, and that is what is journalled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from upswing.deploy.core.announce import TrafficEvent, announcement, traffic_event_of
from upswing.deploy.core.deployment_state import (
    DeploymentState,
    apply_changes,
    rollout_row,
    share_against_baseline,
)
from upswing.deploy.core.events import ControllerOutage
from upswing.deploy.core.evidence_history import next_point
from upswing.deploy.core.journal import (
    STAGE,
    DecisionInputs,
    DecisionOutcome,
    TransitionInputs,
    apply_events,
    decision_kind,
    outcome_sentence,
    subject_of,
)
from upswing.deploy.core.policy import DeployPolicy
from upswing.deploy.core.record import RolloutRecord, note_share, record_row
from upswing.deploy.core.rollout import Rollout
from upswing.deploy.core.rows import (
    DeploymentChange,
    Incident,
    LeadershipLost,
    ModelStateChange,
    RegisteredModel,
    TrafficStep,
)
from upswing.deploy.core.transitions import model_state_changes
from upswing.deploy.core.views import audited_state, traffic_percentages
from upswing.deploy.deployment_repository import DeploymentRepository
from upswing.deploy.environment import DeployEnvironment
from upswing.deploy.gateway_reports import GatewayReports
from upswing.deploy.leadership import Leadership
from upswing.deploy.metrics import DeployMetrics
from upswing.deploy.planner import TrafficPlanner
from upswing.errors import Transient
from upswing.records import AuditEntry, Decision

log = logging.getLogger(__name__)
NEWS = frozenset({"not_better", "no_change", "validation_inconclusive"})
"""Reasons for which nothing is wrong: a candidate does not ship, and the one before it goes on."""


class RolloutExecutor:
    """Carries decisions out. One change at a time: hold `lock`."""

    def __init__(
        self,
        env: DeployEnvironment,
        policy: DeployPolicy,
        base: str,
        holder: str,
        metrics: DeployMetrics | None = None,
    ) -> None:
        self.env, self.policy, self.base, self.metrics = env, policy, base, metrics
        self.lock = asyncio.Lock()
        self.gateways = GatewayReports(env)
        self.leadership = Leadership(env, holder)
        self.repository = DeploymentRepository(
            env, self.leadership, self.gateways, policy.limits, base
        )
        self.planner = TrafficPlanner(env, self.leadership, self.gateways, self.repository, metrics)

    @property
    def deployment(self) -> DeploymentState:
        """The state as the rows last said it."""
        return self.repository.state

    async def take_over(self) -> None:
        """From now on this controller writes, and no older one does."""
        await self.leadership.take_over()
        self.planner.reset()

    async def read(self) -> DeploymentState:
        """The state, from the rows."""
        await self.repository.read()
        self.planner.forget_settled()
        return self.deployment

    # ── what is written down ─────────────────────────────────────────────────────────────────

    def journal_row(
        self, inputs: DecisionInputs, outcome: DecisionOutcome, decision_id: str = ""
    ) -> Decision:
        """The inputs of a decision, and what was made of them."""
        return Decision(
            decision_id or str(self.env.new_id()),
            STAGE,
            decision_kind(inputs, outcome),
            outcome_sentence(outcome),
            msgspec.json.encode(inputs),
            msgspec.json.encode(outcome),
            self.env.clock(),
            about=subject_of(inputs),
        )

    def incident(
        self, rollout: Rollout | None, model_id: str, reason: str, sentence: str, metrics: object
    ) -> Incident:
        return Incident(
            str(self.env.new_id()),
            rollout.rollout_id if rollout else None,
            model_id,
            reason,
            sentence,
            msgspec.json.encode(metrics),
            self.env.clock(),
        )

    def alert(self, reason: str, model_id: str, sentence: str) -> None:
        """Call a person."""
        log.log(
            logging.WARNING if reason in NEWS else logging.ERROR,
            "%s: %s",
            model_id,
            sentence,
            extra={"action": "alert", "model": model_id, "reason": reason},
        )
        if self.metrics:
            self.metrics.alert(reason)

    # ── changing ─────────────────────────────────────────────────────────────────────────────

    async def carry_out(
        self,
        changed: Iterable[Rollout] = (),
        *,
        records: Mapping[str, RolloutRecord] | None = None,
        moves: Iterable[ModelStateChange] = (),
        decisions: Iterable[Decision] = (),
        incidents: Iterable[Incident] = (),
        audit: Iterable[AuditEntry] = (),
        newcomer: RegisteredModel | None = None,
        by: str = "",
        reward: float | None = None,
        urgent: bool = False,
    ) -> None:
        """Commit, then write the plan that follows; `urgent`: the plan waits two seconds at most."""
        changed, decisions = tuple(changed), tuple(decisions)
        now, before = self.env.clock(), self.deployment
        after = apply_changes(before, changed)
        updated = await self._with_shares(after, dict(records or {}))
        decision_id = decisions[0].decision_id if decisions else ""
        events = [
            (each, event)
            for each in changed
            if (event := traffic_event_of(before.find_rollout(each.rollout_id), each)) is not None
        ]
        announced = [
            (event, self._announcement(each, event, by, now, decision_id)) for each, event in events
        ]
        happened = {each.model_id: str(event) for each, event in events}
        points = [
            next_point(name, record, self.policy.limits, now) for name, record in updated.items()
        ]
        models = (*moves, *model_state_changes(before, changed, now, reward=reward))
        settled = apply_changes(before, changed, models)
        change = DeploymentChange(
            now=now,
            rollouts=tuple(rollout_row(each) for each in changed),
            records=tuple(record_row(name, record) for name, record in updated.items()),
            models=models,
            newcomer=newcomer,
            decisions=decisions,
            messages=tuple(body for _, body in announced),
            incidents=tuple(incidents),
            audit=tuple(_with_states(each, before, settled) for each in audit),
            points=tuple(each for each in points if each is not None),
            traffic=_traffic_step(before, settled, happened, now, decision_id),
        )
        await (self._commit_urgent(change, changed) if urgent else self.repository.commit(change))
        if announced:
            self.planner.mark_outdated()
        if self.metrics:
            for event, _ in announced:
                self.metrics.count_deployment(event)
        await self.read()
        await self.publish()

    async def _commit_urgent(self, change: DeploymentChange, changed: tuple[Rollout, ...]) -> None:
        """A rollback, of the first that changes: two seconds from now the plan is without it."""
        try:
            async with asyncio.timeout(self.env.timeouts.store):
                await self.repository.commit(change)
        except LeadershipLost:
            raise
        except (TimeoutError, Transient) as error:
            self.planner.withdraw(changed, change.models)
            await self.planner.write()
            raise Transient(
                f"The traffic is back, and the store does not know it: {error!r}."
            ) from error

    async def _with_shares(
        self, after: DeploymentState, records: dict[str, RolloutRecord]
    ) -> dict[str, RolloutRecord]:
        """The records that change: those given, and those whose share or plan does."""
        at = self.env.wall_clock()
        for each in after.active:
            name = each.rollout_id
            record = records.get(name) or await self.repository.record(name)
            new = note_share(record, at, share_against_baseline(after, each))
            if after.plan_rollout_id not in record.sources:
                record.sources, new = [*record.sources, after.plan_rollout_id], True
            if new:
                records[name] = record
        return records

    def _announcement(
        self, rollout: Rollout, event: TrafficEvent, by: str, now: datetime, decision_id: str
    ) -> bytes:
        name = rollout.model_id
        return announcement(
            rollout,
            event,
            self.deployment.models.get(name),
            self.planner.served.get(name),
            platform=self.env.serving.platform,
            by=by,
            now=now,
            number=decision_id or str(self.env.new_id()),
        )

    # ── the plan ─────────────────────────────────────────────────────────────────────────────

    async def publish(self, *, renew: bool = False) -> None:
        """Write the plan that follows from the rows, when it is new or its lease is to be renewed."""
        self.leadership.require()
        await self.resume()
        complete = self.planner.is_fully_served
        await self.planner.write(renew=renew)
        await self.leadership.heartbeat(complete=complete)

    async def resume(self) -> None:
        """What nobody led through, or no gateway might serve, counts for nothing; before anything is judged."""
        if self.planner.is_fully_served and self.leadership.lapsed:
            await self._skip_outage()

    async def _skip_outage(self) -> None:
        """A step goes on where it stood: what nobody led through counts for nothing."""
        rollout = self.deployment.ramping
        if rollout is None or rollout.canary is None:
            return
        now = self.env.clock()
        lasted = self.leadership.outage_since(rollout.canary.since, now)
        if lasted <= timedelta():
            return
        inputs = TransitionInputs(rollout, (ControllerOutage(lasted),), now)
        after = apply_events(inputs)
        change = DeploymentChange(
            now=now,
            rollouts=(rollout_row(after),),
            decisions=(self.journal_row(inputs, after),),
        )
        await self.repository.commit(change)
        self.leadership.end_outage(now)
        await self.read()


def _traffic_step(
    before: DeploymentState,
    after: DeploymentState,
    events: dict[str, str],
    now: datetime,
    decision_id: str,
) -> TrafficStep | None:
    """For who looks back; None where nothing changed."""
    shares = traffic_percentages(after)
    if shares == traffic_percentages(before) and not events:
        return None
    return TrafficStep(now, shares, events, decision_id)


def _with_states(entry: AuditEntry, before: DeploymentState, after: DeploymentState) -> AuditEntry:
    """The entry with how its model and the traffic stood, and stand now."""
    states = (msgspec.json.encode(audited_state(each, entry.about)) for each in (before, after))
    return replace(entry, before=next(states), after=next(states))
