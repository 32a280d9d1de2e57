"""How do the parts of deployment come together? Rows, the board, servers and what is asked of a candidate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from prometheus_client import CollectorRegistry

from upswing.deploy.candidates import CandidateChecks
from upswing.deploy.controller import Controller
from upswing.deploy.core.policy import DeployPolicy
from upswing.deploy.core.rows import ModelServing
from upswing.deploy.environment import DeployEnvironment
from upswing.deploy.metrics import DeployMetrics
from upswing.deploy.plan_board import PlanBoard
from upswing.deploy.repository import RolloutRepository
from upswing.infra.dead_letters import DeadLetterWriter
from upswing.infra.nats.bus import Bus
from upswing.infra.sql.database import Database


@dataclass(frozen=True, slots=True)
class DeployRuntime:
    """What the composition root gives to deployment: time, ids, and who is notified."""

    clock: Callable[[], datetime]
    """Of ramps; a demo may hand in a fast one."""
    wall_clock: Callable[[], datetime]
    """Real time, for leases."""
    new_id: Callable[[], UUID]
    on_commit: Callable[[], None] = lambda: None
    """Called after a commit, so that what follows from it is published at once."""
    dead_letters: DeadLetterWriter = field(default_factory=DeadLetterWriter)
    """Where rows go that cannot be read."""


def wire_controller(
    database: Database,
    bus: Bus,
    serving: ModelServing,
    checks: CandidateChecks,
    policy: DeployPolicy,
    runtime: DeployRuntime,
    registry: CollectorRegistry,
    *,
    base: str,
) -> Controller:
    """The controller of this process; it leads once it runs."""
    env = DeployEnvironment(
        RolloutRepository(database),
        PlanBoard(bus),
        serving,
        runtime.clock,
        runtime.wall_clock,
        runtime.new_id,
        runtime.on_commit,
        runtime.dead_letters,
    )
    return Controller(
        env,
        checks,
        policy,
        base=base,
        holder=str(runtime.new_id()),
        metrics=DeployMetrics(registry),
    )
