"""What people ask of the metrics: the contract's names and labels, the queries of the guides, and every panel's."""

import json
from pathlib import Path

from tests.support import samples

OPS = Path(__file__).parents[2] / "ops"
CONTRACT = {
    "agent_rl_trajectories_collected_total": ("counter", {"agent_type", "task_domain"}),
    "agent_rl_training_jobs_total": ("counter", {"status"}),
    "agent_rl_model_deployments_total": ("counter", {"status"}),
    "agent_rl_model_errors_total": ("counter", {"model_version"}),
    "agent_rl_trajectory_reward": ("histogram", (0, 0.2, 0.4, 0.6, 0.8, 1)),
    "agent_rl_trajectory_length": ("histogram", (1, 3, 5, 10, 20, 50)),
    "agent_rl_training_duration_seconds": (
        "histogram",
        (300, 600, 1800, 3600, 7200, 14400),
    ),
    "agent_rl_training_samples": ("histogram", (1000, 5000, 10000, 50000, 100000)),
    "agent_rl_model_reward_mean": ("gauge", {"model_version"}),
    "agent_rl_model_error_rate": ("gauge", {"model_version"}),
    "agent_rl_model_benchmark_score": ("gauge", {"model_version", "task_type"}),
    "agent_rl_model_traffic_percentage": ("gauge", {"model_version"}),
}
"""Name → its type, and its labels or, of a histogram, the bounds of its buckets."""
SEEDS = {
    "how fast trajectories are collected, a minute": "rate(agent_rl_trajectories_collected_total[5m]) * 60",
    "what a trajectory earns on average": "avg_over_time(agent_rl_trajectory_reward[1h])",
    "how many training jobs succeed": (
        'sum(rate(agent_rl_training_jobs_total{status="completed"}[24h])) /\n'
        "sum(rate(agent_rl_training_jobs_total[24h]))"
    ),
    "how models compare": 'agent_rl_model_reward_mean{model_version=~".*"}',
    "how often each model fails": "rate(agent_rl_model_errors_total[5m])",
    "what came in a day": "sum(increase(agent_rl_trajectories_collected_total[24h]))",
    "what models earn": "agent_rl_model_reward_mean",
    "which share of requests fails": "agent_rl_model_error_rate",
}
"""Question → the query of the guides, as they write it."""


def panels():
    """(dashboard, panel, query) of the generated dashboards."""
    for path in sorted((OPS / "grafana" / "dashboards").glob("*.json")):
        tree = json.loads(path.read_text())
        for panel in tree["panels"]:
            for target in panel.get("targets", ()):
                yield tree["title"], panel["title"], target["expr"]


def panel_queries(interval):
    """Panel → its queries, with an interval where Grafana would put one."""
    found = {}
    for dashboard, panel, expr in panels():
        asked = expr.replace("$__rate_interval", interval)
        found.setdefault(f"{dashboard}: {panel}", []).append(asked)
    return found


def described(text):
    """What `/metrics` says: {name: (type, labels or bounds)}, as `CONTRACT` writes it."""
    types = dict(line.split()[2:4] for line in text.splitlines() if line.startswith("# TYPE "))
    labels, bounds = {}, {}
    for name, pairs in samples(text):
        names = {key for key, _ in pairs}
        if name.endswith("_bucket"):
            bound = dict(pairs)["le"]
            if bound != "+Inf":
                bounds.setdefault(name.removesuffix("_bucket"), set()).add(float(bound))
        else:
            labels.setdefault(name, set()).update(names)
    return {
        name: (kind, tuple(sorted(bounds[name])) if kind == "histogram" else labels[name])
        for name, kind in types.items()
        if name in bounds or name in labels
    }
