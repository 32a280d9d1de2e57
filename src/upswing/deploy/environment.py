"""What does deployment need from outside: rows, the board, servers, clocks and ids?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from upswing.deploy.core.rows import ModelServing, PlanBoardPort, RolloutStore
from upswing.infra.dead_letters import DeadLetterWriter


@dataclass(frozen=True, slots=True)
class DeployTimeouts:
    """Seconds that deciding waits for other parts."""

    store: float = 2.0
    """That a rollback waits for the store, of the five seconds it may take."""
    load: float = 3.0
    """That a tick waits for a server to load a model, which may take minutes."""
    loaded: float = 0.2
    """Outside the lock, in which a server says that it has a model already."""


@dataclass(frozen=True, slots=True)
class DeployEnvironment:
    """Everything outside."""

    store: RolloutStore
    board: PlanBoardPort
    serving: ModelServing
    clock: Callable[[], datetime]
    """Of ramps; a demo or a test may hand in a fast one."""
    wall_clock: Callable[[], datetime]
    """Real time, for leases; it only passes."""
    new_id: Callable[[], UUID]
    on_commit: Callable[[], None] = lambda: None
    """Something was committed that follows to the bus."""
    dead_letters: DeadLetterWriter = field(default_factory=DeadLetterWriter)
    """Where rows go that cannot be read."""
    timeouts: DeployTimeouts = field(default_factory=DeployTimeouts)
