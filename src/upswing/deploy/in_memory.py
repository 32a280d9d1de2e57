"""Twins of the controller's ports, in memory: the same promises, without a database, a bus or a server.

`pause` is awaited before and after every effect, so that a test can stop a controller between any two of
them, or let it die there.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from upswing.contracts.traffic import Model, Plan, Switches, Tally, read_plan, write_plan
from upswing.deploy.core.rows import (
    MOST_PENDING,
    MOST_WITHDRAWN,
    ComplaintBatch,
    DeploymentChange,
    DeploymentRows,
    EvidencePoint,
    Incident,
    LeaderRow,
    LeadershipLost,
    ModelStateChange,
    ObservedComplaint,
    ObservedReward,
    RecordRow,
    RegisteredModel,
    RewardBatch,
    RewardMean,
    RolloutRow,
    TrafficStep,
    check_plan_write,
)
from upswing.errors import Conflict, Reason, Rejected, Transient
from upswing.records import AuditEntry, Decision, ModelRow

Pause = Callable[[str], Awaitable[None]]
_OVER = {"rolled_back", "replaced", "cancelled"}
_ON_THEIR_WAY = {"trained", "validating", "passed", "canary", "deployed"}
_WITHDRAWN = {"rolled_back", "aborted", "retired"}


async def at_once(_: str) -> None:
    """No pause at all."""


@dataclass
class MemoryRollouts:
    """The store's twin. What it holds outlives any controller."""

    pause: Pause = at_once
    fence: LeaderRow | None = None
    name: str = ""
    rollouts: dict[str, RolloutRow] = field(default_factory=dict)
    registry: dict[str, ModelRow] = field(default_factory=dict)
    records: dict[str, RecordRow] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    messages: list[bytes] = field(default_factory=list)
    incident_rows: list[Incident] = field(default_factory=list)
    audit_rows: list[AuditEntry] = field(default_factory=list)
    traffic_steps: list[TrafficStep] = field(default_factory=list)
    evidence_points: list[EvidencePoint] = field(default_factory=list)
    rewards: list[ObservedReward] = field(default_factory=list)
    """What the reward stage has stored, in order."""
    complaints: list[ObservedComplaint] = field(default_factory=list)
    unknown: set[int] = field(default_factory=set)
    """Sequence numbers of complaints whose trajectory has not come yet."""
    most_withdrawn: int = MOST_WITHDRAWN

    async def take_over(
        self, holder: str, now: datetime, above: int = 0
    ) -> tuple[int, LeaderRow | None]:
        await self.pause("take_over")
        before = self.fence
        number = max(before.fence if before else 0, above) + 1
        self.fence = LeaderRow(number, holder, now, before.held if before else None)
        await self.pause("took_over")
        return number, before

    async def leader(self) -> LeaderRow | None:
        return self.fence

    async def origin(self, new: str) -> str:
        await self.pause("origin")
        self.name = self.name or new
        return self.name

    async def heartbeat(self, fence: int, now: datetime, held: datetime | None) -> None:
        await self.pause("beat")
        leader = self._leading(fence)
        self.fence = replace(leader, heartbeat=now, held=held or leader.held)

    async def deployment_rows(self) -> DeploymentRows:
        await self.pause("deployment_rows")
        live = tuple(row for row in self.rollouts.values() if row.state not in _OVER)
        named = {row.model_id for row in live} | {row.baseline_id for row in live}
        models = [
            row
            for row in self.registry.values()
            if row.state in _ON_THEIR_WAY or row.model_id in named
        ]
        gone = [row for row in self.registry.values() if row.state in _WITHDRAWN]
        gone.sort(key=lambda row: row.version, reverse=True)
        return DeploymentRows(
            live,
            tuple(sorted(models, key=lambda row: row.version)),
            tuple(row.model_id for row in gone[: self.most_withdrawn]),
        )

    async def list_rollouts(self, limit: int = 100) -> Sequence[RolloutRow]:
        return list(self.rollouts.values())[::-1][:limit]

    async def latest_rollout(self, model_id: str) -> RolloutRow | None:
        found = [row for row in self.rollouts.values() if row.model_id == model_id]
        return found[-1] if found else None

    async def model(self, model_id: str) -> ModelRow | None:
        await self.pause("model")
        return self.registry.get(model_id)

    async def models(self) -> Sequence[ModelRow]:
        return sorted(self.registry.values(), key=lambda row: -row.version)

    async def record(self, rollout_id: str) -> bytes | None:
        await self.pause("record")
        row = self.records.get(rollout_id)
        return row.body if row else None

    async def incidents(self, limit: int = 100) -> Sequence[Incident]:
        return self.incident_rows[::-1][:limit]

    async def audit(self, limit: int = 100) -> Sequence[AuditEntry]:
        return self.audit_rows[::-1][:limit]

    async def newest_sequences(self) -> tuple[int, int]:
        rewards = self.rewards[-1].seq if self.rewards else 0
        return rewards, self.complaints[-1].seq if self.complaints else 0

    async def rewards_after(self, seq: int, models: Sequence[str], limit: int = 500) -> RewardBatch:
        await self.pause("rewards")
        rows = [row for row in self.rewards if row.seq > seq][:limit]
        seen = tuple(row for row in rows if row.model in models)
        return RewardBatch(seen, rows[-1].seq if rows else seq, more=len(rows) == limit)

    async def complaints_after(
        self, seq: int, models: Sequence[str], limit: int = 500, pending: Sequence[int] = ()
    ) -> ComplaintBatch:
        new_rows = [row for row in self.complaints if row.seq > seq][:limit]
        rows = [*(row for row in self.complaints if row.seq in pending), *new_rows]
        seen = tuple(row for row in rows if row.model in models and row.seq not in self.unknown)
        waiting = tuple(row.seq for row in rows if row.seq in self.unknown)[-MOST_PENDING:]
        return ComplaintBatch(
            seen, new_rows[-1].seq if new_rows else seq, len(new_rows) == limit, waiting
        )

    async def mean_reward(self, model_id: str, most: int = 200) -> RewardMean:
        totals = [row.raw_total for row in self.rewards if row.model == model_id][-most:]
        values = [value for value in totals if value is not None and math.isfinite(value)]
        return RewardMean(math.fsum(values) / len(values) if values else None, len(values))

    async def commit(self, fence: int, change: DeploymentChange) -> None:
        await self.pause("commit")
        self._leading(fence)
        registry = dict(self.registry)
        if change.newcomer is not None:
            _register(registry, change.newcomer, change.now)
        for move in change.models:
            _move(registry, move)
        self.registry = registry
        self.rollouts |= {row.rollout_id: row for row in change.rollouts}
        self.records |= {row.rollout_id: row for row in change.records}
        known = {decision.decision_id for decision in self.decisions}
        self.decisions += [d for d in change.decisions if d.decision_id not in known]
        self.messages += change.messages
        self.incident_rows += change.incidents
        self.audit_rows += change.audit
        self.evidence_points += change.points
        self.traffic_steps += [change.traffic] if change.traffic else []
        await self.pause("committed")

    def _leading(self, fence: int) -> LeaderRow:
        if self.fence is None or self.fence.fence != fence:
            raise LeadershipLost(
                f"Another controller has taken over from this one (fence {fence})."
            )
        return self.fence


@dataclass
class MemoryBoard:
    """The board's twin."""

    pause: Pause = at_once
    plan: bytes | None = None
    plans: list[Plan] = field(default_factory=list)
    """Every plan that was taken, in order."""
    counts: dict[str, Tally] = field(default_factory=dict)
    switches: dict[str, Switches] = field(default_factory=dict)
    away: bool = False

    async def check(self, plan: Plan) -> None:
        check_plan_write(read_plan(self.plan) if self.plan else None, plan)

    async def write(self, plan: Plan) -> None:
        await self.pause("write")
        self._require_connection()
        await self.check(plan)
        self.plan = write_plan(plan)
        self.plans.append(plan)
        await self.pause("written")

    async def read(self) -> Plan | None:
        self._require_connection()
        return read_plan(self.plan) if self.plan else None

    async def tallies(self) -> Mapping[str, Tally]:
        await self.pause("tallies")
        self._require_connection()
        return {name: dict(tally) for name, tally in self.counts.items()}

    async def gateways(self) -> Mapping[str, Switches]:
        self._require_connection()
        return dict(self.switches)

    async def follow(self, wake: Callable[[], None]) -> None:
        """Whoever changes `counts` wakes the controller itself."""

    def _require_connection(self) -> None:
        if self.away:
            raise Transient("The board is away.")


@dataclass
class MemoryServing:
    """The servers' twin."""

    pause: Pause = at_once
    url: str = "http://127.0.0.1:1/v1"
    platform: str = "upswing"
    loaded: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    """Models whose checkpoint can never be served."""
    away: set[str] = field(default_factory=set)
    """Models whose server does not answer just now."""

    async def ensure(self, model: ModelRow | str) -> Model:
        await self.pause("ensure")
        name = model if isinstance(model, str) else model.model_id
        if name in self.broken:
            raise Rejected(Reason.SCHEMA, f"The checkpoint of {name} does not verify.")
        if name in self.away:
            raise Transient(f"The server of {name} does not answer.")
        self.loaded.add(name)
        return Model(name, self.url, name)

    async def check(self, model_id: str, _path: str) -> Mapping[str, Any]:
        if model_id in self.broken:
            raise Rejected(Reason.SCHEMA, f"The server does not serve {model_id}.")
        return {}

    async def alive(self, model: Model) -> bool:
        await self.pause("alive")
        return model.model_id in self.loaded - self.away

    async def release(self, model_id: str) -> None:
        await self.pause("release")
        self.loaded.discard(model_id)


def _register(registry: dict[str, ModelRow], new: RegisteredModel, now: datetime) -> None:
    known = registry.get(new.model_id)
    if known is not None:
        if (known.base_model, known.path) != (new.base_model, new.path):
            raise Conflict(f"{new.model_id} is known with another base or checkpoint.")
        return
    version = max((row.version for row in registry.values()), default=0) + 1
    registry[new.model_id] = ModelRow(
        version,
        new.model_id,
        f"registered-{version}",
        new.base_model,
        None,
        "",
        new.path,
        "",
        "trained",
        0,
        None,
        None,
        now,
        None,
    )


def _move(registry: dict[str, ModelRow], move: ModelStateChange) -> None:
    row = registry.get(move.model_id)
    if row is None or row.state not in move.before:
        stands = f"is {row.state}" if row else "is not known"
        raise Conflict(f"{move.model_id} {stands}: it cannot be {move.state}.")
    registry[move.model_id] = replace(
        row,
        state=move.state,
        deployed=move.deployed or row.deployed,
        baseline_reward=row.baseline_reward if move.reward is None else move.reward,
    )
