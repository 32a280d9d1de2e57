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

from upswing.labels import OTHER

BOUNDS_MS = (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000)
_ROLLOUTS = 16
"""Remembered; the oldest goes."""
_MODELS = 100
"""That have series of their own; the one that answered longest ago joins `other`."""


@dataclass(slots=True)
class Counts:
    """Of one model."""

    requests: int = 0
    errors: int = 0
    fallbacks: int = 0
    latency_ms_sum: float = 0.0

    def add(self, ms: float, *, error: bool, fallback: bool) -> None:
        self.requests += 1
        self.errors += error
        self.fallbacks += fallback
        self.latency_ms_sum += ms

    def join(self, more: Counts) -> None:
        self.requests += more.requests
        self.errors += more.errors
        self.fallbacks += more.fallbacks
        self.latency_ms_sum += more.latency_ms_sum


@dataclass(slots=True)
class Histogram:
    """Of latencies."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_MS) + 1))
    total: float = 0.0

    def add(self, ms: float) -> None:
        self.buckets[bisect_left(BOUNDS_MS, ms)] += 1
        self.total += ms

    def join(self, more: Histogram) -> None:
        self.buckets = [mine + its for mine, its in zip(self.buckets, more.buckets, strict=True)]
        self.total += more.total


class Tally:
    """Everything that is counted."""

    def __init__(self) -> None:
        self._rollouts: OrderedDict[str, dict[str, Counts]] = OrderedDict()
        self.models: OrderedDict[str, Counts] = OrderedDict()
        """All rollouts and named requests together, for the metrics."""
        self.latencies: dict[str, Histogram] = {}
        self.outcomes: dict[str, int] = {}
        self.faults: dict[tuple[str, str], int] = {}
        """(model, what went wrong)"""
        self.refused: dict[str, int] = {}
        self.changes = 0

    def settled(
        self, rollout: str, model_id: str, outcome: str, ms: float,
        *, error: bool, fallback: bool, evidence: bool,
    ) -> None:  # fmt: skip
        """Count one request."""
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        if outcome == "cancelled":
            return
        self._of(self.models, model_id).add(ms, error=error, fallback=fallback)
        self.models.move_to_end(model_id)
        histogram = self.latencies.get(model_id)
        if histogram is None:
            histogram = self.latencies[model_id] = Histogram()
            self._bound()
        histogram.add(ms)
        if evidence:
            self.changes += 1
            models = self._rollouts.get(rollout)
            if models is None:
                models = self._rollouts[rollout] = {}
                if len(self._rollouts) > _ROLLOUTS:
                    self._rollouts.popitem(last=False)
            self._of(models, model_id).add(ms, error=error, fallback=fallback)

    def fault(self, model_id: str, word: str) -> None:
        key = (model_id, word)
        self.faults[key] = self.faults.get(key, 0) + 1

    def probe(self) -> None:
        self.outcomes["probe"] = self.outcomes.get("probe", 0) + 1

    def refuse(self, word: str) -> None:
        self.refused[word] = self.refused.get(word, 0) + 1

    def written(self) -> bytes:
        """The counts as other processes read them.

        >>> tally = Tally()
        >>> tally.settled("r", "m", "answered", 2.5, error=False, fallback=False, evidence=True)
        >>> tally.written()
        b'{"r":{"m":{"requests":1,"errors":0,"fallbacks":0,"latency_ms_sum":2.5}}}'
        """
        return msgspec.json.encode(self._rollouts)

    def _bound(self) -> None:
        """The counts of models that have not answered for long become those of `other`."""
        others = self._of(self.models, OTHER) if len(self.models) > _MODELS else None
        while others is not None and len(self.models) > _MODELS + 1:
            name = next(name for name in self.models if name != OTHER)
            others.join(self.models.pop(name))
            self.latencies.setdefault(OTHER, Histogram()).join(self.latencies.pop(name))
            for key in [key for key in self.faults if key[0] == name]:
                word = (OTHER, key[1])
                self.faults[word] = self.faults.get(word, 0) + self.faults.pop(key)

    @staticmethod
    def _of(models: dict[str, Counts], model_id: str) -> Counts:
        counts = models.get(model_id)
        if counts is None:
            counts = models[model_id] = Counts()
        return counts
