"""How many alerts are open? A series of `/metrics` for each kind that is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from upswing.monitor.alert_repository import AlertRow


class AlertCollector(Collector):
    """Counts what the monitor last read."""

    def __init__(self, open_alerts: Callable[[], Sequence[AlertRow]]) -> None:
        self._open = open_alerts

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(
            "upswing_alerts_open",
            "Alerts that are not resolved.",
            labels=["name", "severity", "state"],
        )
        counts = Counter((each.name, each.severity, each.state) for each in self._open())
        for labels, count in sorted(counts.items()):
            family.add_metric(labels, count)
        yield family
