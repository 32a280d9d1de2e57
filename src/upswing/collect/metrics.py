"""What does collecting look like from outside? The trajectory series of `/metrics`."""

from __future__ import annotations

from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from upswing.contracts.feedback import FeedbackType
from upswing.contracts.trajectory import DOMAINS, PROFILES
from upswing.errors import Reason
from upswing.infra.metric_labels import LabelValues, start_at_zero
from upswing.principals import GATEWAY
from upswing.records import Taken

_OTHER_AGENT_TYPES = 45
"""Agents invent profiles; beyond this many the rest are counted together as `other`."""
_ENTRANCES = ("http", "nats", GATEWAY)
"""By which nearly everything comes."""
UNAVAILABLE = "unavailable"
"""What became of a message that could not be stored just now: its sender keeps it."""


class CollectMetrics:
    """Counters of what came in, what was refused and why."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._collected = Counter(
            "agent_rl_trajectories_collected_total",
            "Trajectories stored.",
            ["agent_type", "task_domain"],
            registry=registry,
        )
        self._length = Histogram(
            "agent_rl_trajectory_length",
            "Turns of a trajectory.",
            buckets=(1, 3, 5, 10, 20, 50),
            registry=registry,
        )
        self._taken = Counter(
            "upswing_messages_total",
            "Messages by door and what became of them.",
            ["door", "outcome"],
            registry=registry,
        )
        self._refused = Counter(
            "upswing_refused_total",
            "Messages refused, by reason.",
            ["door", "reason"],
            registry=registry,
        )
        self._feedback = Counter(
            "upswing_feedback_total", "Users' words that were stored.", ["type"], registry=registry
        )
        self._redactions = Counter(
            "upswing_redactions_total", "Values replaced by a placeholder.", registry=registry
        )
        self._erased = Counter(
            "upswing_stream_messages_erased_total",
            "Raw messages erased from a stream.",
            registry=registry,
        )
        self.outbox = Gauge(
            "upswing_outbox_pending",
            "Messages that the bus has not acknowledged.",
            registry=registry,
        )
        self._agent_types = LabelValues(("main", *PROFILES), most_others=_OTHER_AGENT_TYPES)
        self._domains = LabelValues(DOMAINS)
        start_at_zero(self._collected, ("main", *PROFILES), DOMAINS)
        start_at_zero(self._taken, _ENTRANCES, (Taken.STORED, UNAVAILABLE))
        start_at_zero(self._refused, _ENTRANCES, Reason)
        start_at_zero(self._feedback, get_args(FeedbackType))

    def stored(self, agent_type: str, domain: str, turns: int) -> None:
        self._collected.labels(
            self._agent_types.label_for(agent_type), self._domains.label_for(domain)
        ).inc()
        self._length.observe(turns)

    def feedback_stored(self, kind: str) -> None:
        self._feedback.labels(kind).inc()

    def taken(self, door: str, outcome: str) -> None:
        self._taken.labels(door, outcome).inc()

    def refused(self, door: str, reason: str) -> None:
        self._refused.labels(door, reason).inc()

    def redacted(self, findings: int) -> None:
        self._redactions.inc(findings)

    def erased(self) -> None:
        self._erased.inc()
