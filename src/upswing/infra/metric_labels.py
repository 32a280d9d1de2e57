"""How many series can a metric have? As many as we know names; what others make up is `other`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import product

from prometheus_client import Counter, Gauge

OTHER = "other"
MOST_MODELS = 100
"""Models that have series of their own: one that is trained every day is remembered for three months."""


def start_at_zero(counter: Counter, *values: Iterable[str]) -> None:
    """Make the series of these label values: one that begins with its first event shows no increase by it."""
    for labels in product(*values):
        counter.labels(*labels)


class LabelValues:
    """The values of a label: what is known, and of the rest the first few."""

    def __init__(self, known: Iterable[str], *, most_others: int = 0) -> None:
        self._known = set(known)
        self._free = most_others

    def label_for(self, value: str) -> str:
        """The value itself, or `other`.

        >>> values = LabelValues(["main"], most_others=1)
        >>> [values.label_for(each) for each in ("main", "mine", "yours", "mine", "other")]
        ['main', 'mine', 'other', 'mine', 'other']
        """
        if value in self._known:
            return value
        if not self._free or value == OTHER:
            return OTHER
        self._free -= 1
        self._known.add(value)
        return value


class ModelGauge:
    """A gauge whose first label is the model; the models that it heard of longest ago are forgotten."""

    def __init__(self, gauge: Gauge, most: int = MOST_MODELS) -> None:
        self._gauge, self._most = gauge, most
        self._models: OrderedDict[str, set[tuple[str, ...]]] = OrderedDict()

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._models))

    def set(self, value: float, model: str, *rest: str) -> None:
        self._gauge.labels(model, *rest).set(value)
        self._models.setdefault(model, set()).add(rest)
        self._models.move_to_end(model)
        while len(self._models) > self._most:
            self.forget(next(iter(self._models)))

    def forget(self, model: str) -> None:
        for rest in self._models.pop(model, ()):
            self._gauge.remove(model, *rest)

    def retain(self, models: Iterable[str]) -> None:
        """Forget all but these."""
        for model in set(self._models).difference(models):
            self.forget(model)
