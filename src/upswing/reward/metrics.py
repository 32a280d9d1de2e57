"""What do rewards look like from outside?"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from upswing.infra.metric_labels import ModelGauge, start_at_zero


class RewardMetrics:
    """Series of the reward stage."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.reward = Histogram(
            "agent_rl_trajectory_reward",
            "Trajectory total reward.",
            buckets=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
            registry=registry,
        )
        self.model_mean = ModelGauge(
            Gauge(
                "agent_rl_model_reward_mean",
                "Mean raw reward of a model's newest trajectories.",
                ["model_version"],
                registry=registry,
            )
        )
        self.latency = Histogram(
            "upswing_reward_latency_seconds",
            "From stored to reward committed.",
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5),
            registry=registry,
        )
        self.revisions = Counter(
            "upswing_reward_revisions_total",
            "Rewards that changed, by cause.",
            ["cause"],
            registry=registry,
        )
        self.trouble = Counter(
            "upswing_reward_trouble_total",
            "What a reward had to do without: a plugin, a linter, a judge's usable answer.",
            ["what"],
            registry=registry,
        )
        self.given_up = Counter(
            "upswing_feedback_given_up_total",
            "Words on work that nobody told of while they waited; each is a dead letter.",
            registry=registry,
        )
        self.judge_groups = Gauge(
            "upswing_judge_groups",
            "Groups by how they stand with the judge.",
            ["state"],
            registry=registry,
        )
        self.judge_usd = Counter("upswing_judge_usd_total", "Spent on judges.", registry=registry)
        self.judge_tokens = Counter(
            "upswing_judge_tokens_total", "Tokens of judges.", ["kind"], registry=registry
        )
        start_at_zero(self.judge_tokens, ("prompt", "completion"))
