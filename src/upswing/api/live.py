"""What is going on right now? Everything that a live view shows, read in one go, and what has changed since.

It is the same for all who look: one reading a second at most, however many pages are open, and none when nobody looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec

from upswing.api.audit import AuditItem, audit_item
from upswing.api.decisions import DecisionItem, decision_item
from upswing.api.models import ModelItem, ValidationItem, model_item, validation_item
from upswing.api.series import series_point
from upswing.api.training_types import JobInfo, job_info
from upswing.deploy.core.health import canary_figures
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.views import rollout_view
from upswing.deploy.history import RolloutHistory
from upswing.infra.sql.audit import AuditTrail
from upswing.infra.sql.database import Database, Tx
from upswing.infra.sql.decisions import Decisions
from upswing.infra.sql.models import Models
from upswing.infra.sql.paging import PageWanted
from upswing.infra.sql.reward_series import RewardSeriesReader
from upswing.infra.sql.store import table_counts, to_microseconds
from upswing.train.core.job_states import ACTIVE
from upswing.train.jobs.repository import JobRepository
from upswing.validate.repository import Validations

_NEWEST = 20
"""Jobs, models and validations that are followed."""
MOST_NEW = 200
"""Decisions and entries of the audit that one reading tells; who missed more reads the lists."""


@dataclass(frozen=True, slots=True)
class LiveState:
    """How everything stands."""

    counts: dict[str, int] = field(default_factory=dict)
    collected: dict[str, int] = field(default_factory=dict)
    """`last_hour` and `last_24h`: trajectories that came in."""
    rollouts: dict[str, dict[str, Any]] = field(default_factory=dict)
    jobs: dict[str, JobInfo] = field(default_factory=dict)
    models: dict[str, ModelItem] = field(default_factory=dict)
    validations: dict[str, ValidationItem] = field(default_factory=dict)
    rewards: dict[str, dict[str, object]] = field(default_factory=dict)
    decisions: list[DecisionItem] = field(default_factory=list)
    """Those that are new, the oldest first."""
    audit: list[AuditItem] = field(default_factory=list)
    decision_seq: int = 0
    audit_seq: int = 0


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """One thing that has changed."""

    kind: str
    data: Any
    decision_seq: int = 0
    """Where a reader goes on who has seen it; 0: it says nothing of that."""
    audit_seq: int = 0


class LiveReader:
    """Reads; never writes."""

    def __init__(
        self, database: Database, limits: RolloutLimits, *, clock: Callable[[], datetime]
    ) -> None:
        self._database, self._limits, self._clock = database, limits, clock
        self._decisions, self._trail = Decisions(database), AuditTrail(database)
        self._jobs, self._models = JobRepository(database), Models(database)
        self._validations, self._history = Validations(database), RolloutHistory(database)
        self._rewards = RewardSeriesReader(database)

    async def read(self, before: LiveState | None = None) -> LiveState:
        """How it stands; new are decisions and entries since `before`, or none without it."""
        newest = await self.newest_sequences()
        decisions = (
            await self.decisions_after(before.decision_seq)
            if before and newest[0] > before.decision_seq
            else []
        )
        audit = (
            await self.audit_after(before.audit_seq)
            if before and newest[1] > before.audit_seq
            else []
        )
        jobs, _ = await self._jobs.page(PageWanted(_NEWEST))
        models, _ = await self._models.page(PageWanted(_NEWEST))
        validations, _ = await self._validations.page(PageWanted(_NEWEST))
        return LiveState(
            counts=await self._database.view(table_counts),
            collected=await self._collected(),
            rollouts=await self.rollouts(),
            jobs={each.job_id: job_info(each) for each in reversed(jobs)},
            models={each.model_id: model_item(each, None) for each in reversed(models)},
            validations={each.run_id: validation_item(each) for each in reversed(validations)},
            rewards={
                name: series_point(name, point) for name, point in await self._rewards.newest()
            },
            decisions=decisions,
            audit=audit,
            decision_seq=decisions[-1].seq if decisions else newest[0],
            audit_seq=audit[-1].seq if audit else newest[1],
        )

    async def newest_sequences(self) -> tuple[int, int]:
        """Of the newest decision and the newest entry of the audit."""
        decisions, _ = await self._decisions.page(PageWanted(1))
        audit, _ = await self._trail.list(PageWanted(1))
        return (decisions[0].seq if decisions else 0), (audit[0].seq if audit else 0)

    async def decisions_after(self, seq: int) -> list[DecisionItem]:
        """The newest of those that came later, the oldest first."""
        found, _ = await self._decisions.page(PageWanted(MOST_NEW))
        return [decision_item(each) for each in reversed(found) if each.seq > seq]

    async def audit_after(self, seq: int) -> list[AuditItem]:
        found, _ = await self._trail.list(PageWanted(MOST_NEW))
        return [audit_item(each) for each in reversed(found) if each.seq > seq]

    async def rollouts(self) -> dict[str, dict[str, Any]]:
        """Those that are not over, with the figures of their evidence."""
        found = {}
        for rollout in await self._history.live():
            view = rollout_view(rollout)
            evidence = (await self._history.record(rollout.rollout_id)).evidence
            figures = canary_figures(evidence, self._limits) if evidence is not None else None
            found[rollout.rollout_id] = {
                "rollout_id": rollout.rollout_id,
                "model_id": rollout.model_id,
                "baseline_id": rollout.baseline_id,
                "state": str(rollout.state),
                "traffic_percentage": view["traffic_percentage"],
                "step": view["step"],
                "steps": view["steps"],
                "sentence": view["sentence"],
                "figures": msgspec.to_builtins(figures),
            }
        return found

    async def _collected(self) -> dict[str, int]:
        now = self._clock()
        spans = {"last_hour": timedelta(hours=1), "last_24h": timedelta(hours=24)}

        def collected_in_transaction(tx: Tx) -> dict[str, int]:
            sql = "SELECT COUNT(*) FROM trajectories WHERE stored_us >= ?"
            found = {
                name: tx.row(sql, (to_microseconds(now - span),)) for name, span in spans.items()
            }
            return {name: int(row[0]) if row else 0 for name, row in found.items()}

        return await self._database.view(collected_in_transaction)


def first_events(state: LiveState) -> Iterator[LiveEvent]:
    """What a reader is told first: how it stands."""
    yield _counts_event(state)
    for name, items in _followed(state).items():
        for item in items.values():
            if name != "job" or item.status in ACTIVE:
                yield LiveEvent(name, item)


def changed_events(before: LiveState, after: LiveState) -> Iterator[LiveEvent]:
    """What has changed."""
    if (before.counts, before.collected) != (after.counts, after.collected):
        yield _counts_event(after)
    for name, items in _followed(after).items():
        known = _followed(before)[name]
        yield from (LiveEvent(name, item) for key, item in items.items() if known.get(key) != item)
    for each in after.decisions:
        yield LiveEvent("decision", each, decision_seq=each.seq)
    for entry in after.audit:
        yield LiveEvent("audit", entry, audit_seq=entry.seq)


def _counts_event(state: LiveState) -> LiveEvent:
    return LiveEvent("counts", {"counts": state.counts, "collected": state.collected})


def _followed(state: LiveState) -> dict[str, Mapping[str, Any]]:
    return {
        "rollout": state.rollouts,
        "job": state.jobs,
        "model": state.models,
        "validation": state.validations,
        "reward": state.rewards,
    }
