"""Every series that our processes have, from the code that makes them, as the rows of docs/monitoring.md."""

import re
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

from upswing.collect.metrics import CollectMetrics
from upswing.collect.trace_metrics import TraceMetrics
from upswing.deploy.metrics import DeployMetrics
from upswing.gateway.counters import GatewayCounters
from upswing.gateway.metrics import GatewayCollector, GatewayGauges
from upswing.infra.dead_letters import BadRowMetrics
from upswing.infra.tracing import SpanCollector, SpanExporter
from upswing.monitor.alert_metrics import AlertCollector
from upswing.monitor.condition_metrics import ConditionCollector
from upswing.monitor.core.conditions import LoopConditions
from upswing.reward.metrics import RewardMetrics
from upswing.serve.core.engine import EngineStats
from upswing.serve.metrics import ModelServerCollector, ServerCounters
from upswing.train.metrics import TrainMetrics
from upswing.validate.metrics import ValidateMetrics

PAGE = Path(__file__).parents[2] / "docs" / "monitoring.md"


def registries():
    """Process → a registry with everything that it tells."""
    loop, gateway, server = CollectorRegistry(), CollectorRegistry(), CollectorRegistry()
    for stage in (
        CollectMetrics,
        TraceMetrics,
        RewardMetrics,
        TrainMetrics,
        ValidateMetrics,
        DeployMetrics,
        BadRowMetrics,
    ):
        stage(loop)
    loop.register(ConditionCollector(LoopConditions))
    loop.register(AlertCollector(list))
    gauges = GatewayGauges({}, 0, 0, 0, 0, 0, {}, 1.0)
    gateway.register(GatewayCollector(GatewayCounters(), lambda: gauges))
    exporter = SpanExporter("http://127.0.0.1:4318", "upswing")  # where the user traces the loop
    for registry in (loop, gateway):
        registry.register(SpanCollector(exporter))
    stats = EngineStats(0, 0, 0, 0, 0)
    server.register(ModelServerCollector(ServerCounters(), lambda: 0, list, lambda: stats))
    return {"loop": loop, "gateway": gateway, "model server": server}


def rows():
    """(name, type, labels, processes, meaning), by name; one of several processes stands once."""
    found = {}
    for process, registry in registries().items():
        for collector in registry._collector_to_names:
            if isinstance(collector, MetricWrapperBase):
                families = [(each, collector._labelnames) for each in collector.collect()]
            else:
                families = [(each, each._labelnames) for each in collector.collect()]
            for family, labels in families:
                name = family.name + ("_total" if family.type == "counter" else "")
                key = (name, family.type, ", ".join(labels), family.documentation.rstrip("."))
                found.setdefault(key, []).append(process)
    return sorted(
        (name, kind, labels, ", ".join(processes), about)
        for (name, kind, labels, about), processes in found.items()
    )


def as_markdown():
    lines = ["| series | type | labels | of | means |", "|---|---|---|---|---|"]
    lines += [
        f"| `{name}` | {kind} | {labels} | {of} | {about} |"
        for name, kind, labels, of, about in rows()
    ]
    return "\n".join(lines)


def table_of_page():
    return re.search(r"<!-- metrics -->\n(.*?)\n<!-- /metrics -->", PAGE.read_text(), re.DOTALL)[1]
