"""How did each model do, as the gateway saw it? Counts that only rise, by rollout and model.

A request counts for the model that was chosen for its episode, even when the baseline answered in
its place: a fallback hides nothing. As evidence an episode counts one answer at most, up to its first error, and that
error: whoever goes on asking adds nothing. Requests that name their model are nobody's evidence, and so are
those that did not reach the baseline's server.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from dataclasses import dataclass, field

import msgspec

from upswing.infra.metric_labels import OTHER

BOUNDS_MS = (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000)
_MAX_ROLLOUTS = 16
"""Remembered; the oldest goes."""
_MAX_MODELS = 100
"""That have series of their own; the one that answered longest ago joins `other`."""


@dataclass(slots=True)
class ModelCounts:
    """Of one model."""

    requests: int = 0
    errors: int = 0
    fallbacks: int = 0
    latency_ms_sum: float = 0.0

    def add(self, latency_ms: float, *, error: bool, fallback: bool) -> None:
        self.requests += 1
        self.errors += error
        self.fallbacks += fallback
        self.latency_ms_sum += latency_ms

    def merge(self, other: ModelCounts) -> None:
        self.requests += other.requests
        self.errors += other.errors
        self.fallbacks += other.fallbacks
        self.latency_ms_sum += other.latency_ms_sum


@dataclass(slots=True)
class LatencyHistogram:
    """Of latencies."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_MS) + 1))
    total: float = 0.0

    def add(self, latency_ms: float) -> None:
        self.buckets[bisect_left(BOUNDS_MS, latency_ms)] += 1
        self.total += latency_ms

    def merge(self, other: LatencyHistogram) -> None:
        self.buckets = [mine + its for mine, its in zip(self.buckets, other.buckets, strict=True)]
        self.total += other.total


class GatewayCounters:
    """Everything that is counted."""

    def __init__(self) -> None:
        self._rollouts: OrderedDict[str, dict[str, ModelCounts]] = OrderedDict()
        self.models: OrderedDict[str, ModelCounts] = OrderedDict()
        """All rollouts and named requests together, for the metrics."""
        self.latencies: dict[str, LatencyHistogram] = {}
        self.outcomes: dict[str, int] = {}
        self.faults: dict[tuple[str, str], int] = {}
        """(model, what went wrong)"""
        self.refused: dict[str, int] = {}
        self.changes = 0

    def count_request(
        self,
        rollout: str,
        model_id: str,
        outcome: str,
        latency_ms: float,
        *,
        error: bool,
        fallback: bool,
        evidence: bool,
        judged: bool = True,
    ) -> None:
        """Count one request; one that is not `judged` says nothing of its model."""
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        if not judged:
            return
        self._counts_of(self.models, model_id).add(latency_ms, error=error, fallback=fallback)
        self.models.move_to_end(model_id)
        histogram = self.latencies.get(model_id)
        if histogram is None:
            histogram = self.latencies[model_id] = LatencyHistogram()
            self._merge_oldest()
        histogram.add(latency_ms)
        if evidence:
            self.changes += 1
            models = self._rollouts.get(rollout)
            if models is None:
                models = self._rollouts[rollout] = {}
                if len(self._rollouts) > _MAX_ROLLOUTS:
                    self._rollouts.popitem(last=False)
            self._counts_of(models, model_id).add(latency_ms, error=error, fallback=fallback)

    def count_fault(self, model_id: str, fault_code: str) -> None:
        key = (model_id, fault_code)
        self.faults[key] = self.faults.get(key, 0) + 1

    def count_unrecorded(self, kind: str) -> None:
        """A request of nobody's episode: `probe` or `unrecorded`."""
        self.outcomes[kind] = self.outcomes.get(kind, 0) + 1

    def count_refusal(self, reason: str) -> None:
        self.refused[reason] = self.refused.get(reason, 0) + 1

    def encode(self) -> bytes:
        """The counts as other processes read them.

        >>> counters = GatewayCounters()
        >>> counters.count_request("r", "m", "answered", 2.5, error=False, fallback=False, evidence=True)
        >>> counters.encode()
        b'{"r":{"m":{"requests":1,"errors":0,"fallbacks":0,"latency_ms_sum":2.5}}}'
        """
        return msgspec.json.encode(self._rollouts)

    def _merge_oldest(self) -> None:
        """The counts of models that have not answered for long become those of `other`."""
        others = self._counts_of(self.models, OTHER) if len(self.models) > _MAX_MODELS else None
        while others is not None and len(self.models) > _MAX_MODELS + 1:
            name = next(name for name in self.models if name != OTHER)
            others.merge(self.models.pop(name))
            self.latencies.setdefault(OTHER, LatencyHistogram()).merge(self.latencies.pop(name))
            for key in [key for key in self.faults if key[0] == name]:
                merged = (OTHER, key[1])
                self.faults[merged] = self.faults.get(merged, 0) + self.faults.pop(key)

    @staticmethod
    def _counts_of(models: dict[str, ModelCounts], model_id: str) -> ModelCounts:
        counts = models.get(model_id)
        if counts is None:
            counts = models[model_id] = ModelCounts()
        return counts
