"""What does every part of a loop get? The installation, where its data lies, and its clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import UUID

from prometheus_client import CollectorRegistry

from upswing.config import Settings, Surroundings
from upswing.infra.dead_letters import DeadLetterWriter
from upswing.infra.nats.bus import Bus
from upswing.infra.sql.store import SqlStore
from upswing.redact import Redactor


@dataclass(frozen=True, slots=True)
class Installation:
    """What this machine was set up with."""

    folder: Path
    """The data directory."""
    settings: Settings
    """`upswing.toml`."""
    surroundings: Surroundings
    """The environment."""


@dataclass(frozen=True, slots=True)
class LoopContext:
    """What the parts of one running loop share."""

    installation: Installation
    store: SqlStore
    bus: Bus
    redactor: Redactor
    registry: CollectorRegistry
    """Of Prometheus."""
    dead_letters: DeadLetterWriter
    """Where rows go that cannot be read."""
    clock: Callable[[], datetime]
    """The loop's own; a demo may hand in a fast one."""
    wall_clock: Callable[[], datetime]
    """Real time, for leases and for whoever is outside."""
    new_id: Callable[[], UUID]
