"""The dashboard Model Performance: what each model earns, where it fails, and what users say."""

from __future__ import annotations

from upswing.monitor.ops.panels import DashboardPanel, OpsDashboard, PanelQuery, PanelRow

_BY_MODEL = "{{model_version}}"


def _latency(quantile: float) -> str:
    series = "rate(upswing_gateway_latency_seconds_bucket[5m])"
    return f"histogram_quantile({quantile}, sum by (le, model_version) ({series}))"


_REWARDS = PanelRow(
    "Rewards",
    (
        DashboardPanel(
            "Model Reward Over Time",
            (PanelQuery("agent_rl_model_reward_mean", _BY_MODEL),),
            "Mean raw reward of a model's newest thousand trajectories, nobody counting for more than a fair share.",
            width=24,
        ),
        DashboardPanel(
            "A/B Test: Reward Difference",
            (
                PanelQuery("upswing_canary_reward_difference", f"{_BY_MODEL} difference"),
                PanelQuery("upswing_canary_reward_difference_lower", f"{_BY_MODEL} at least"),
                PanelQuery("upswing_canary_reward_difference_upper", f"{_BY_MODEL} at most"),
            ),
            "A canary's reward minus the baseline's, with an interval that holds whenever one looks.",
        ),
        DashboardPanel(
            "A/B Test: Rewards Compared",
            (PanelQuery("upswing_canary_rewards", _BY_MODEL),),
            "Rewards of a canary that the comparison rests on.",
        ),
        DashboardPanel(
            "Benchmark Scores",
            (PanelQuery("agent_rl_model_benchmark_score", "{{model_version}} {{task_type}}"),),
            "What validation measured, by suite.",
        ),
        DashboardPanel(
            "Reward Lost Since Promotion",
            (
                PanelQuery("upswing_reward_drop", f"{_BY_MODEL} lost"),
                PanelQuery("upswing_reward_drop_limit", f"{_BY_MODEL} limit"),
            ),
            "How much less the baseline earns than at first; above the limit somebody is called.",
        ),
    ),
)
_ERRORS = PanelRow(
    "Errors and Latency",
    (
        DashboardPanel(
            "Errors by Model Version",
            (PanelQuery("rate(agent_rl_model_errors_total[5m])", _BY_MODEL),),
            "Failed requests a second, as gateways see them.",
            unit="reqps",
        ),
        DashboardPanel(
            "Error Rate by Model Version",
            (PanelQuery("max by (model_version) (agent_rl_model_error_rate)", _BY_MODEL),),
            "Share of a model's requests that failed, since the gateway's start.",
            unit="percentunit",
        ),
        DashboardPanel(
            "Answer Latency by Model Version",
            (
                PanelQuery(_latency(0.5), f"{_BY_MODEL} median"),
                PanelQuery(_latency(0.95), f"{_BY_MODEL} 95 %"),
            ),
            "From the request to the whole answer.",
            unit="s",
        ),
        DashboardPanel(
            "Tokens a Second",
            (
                PanelQuery(
                    "sum by (model, kind) (rate(upswing_model_server_tokens_total[5m]))",
                    "{{model}} {{kind}}",
                ),
            ),
            "Read and drawn by our own model server.",
        ),
    ),
)
_FEEDBACK = PanelRow(
    "User Feedback",
    (
        DashboardPanel(
            "User Feedback",
            (
                PanelQuery(
                    "sum by (type) (increase(upswing_feedback_total[$__rate_interval]))", "{{type}}"
                ),
            ),
            "What people said, by kind.",
            "bars",
        ),
        DashboardPanel(
            "Complaints: Canary and Baseline",
            (
                PanelQuery("upswing_canary_complaints", _BY_MODEL),
                PanelQuery("upswing_canary_baseline_complaints", f"baseline beside {_BY_MODEL}"),
            ),
            "Since the canary's first traffic.",
        ),
        DashboardPanel(
            "Rewards Revised",
            (
                PanelQuery(
                    "sum by (cause) (increase(upswing_reward_revisions_total[$__rate_interval]))",
                    "{{cause}}",
                ),
            ),
            "By what people, judges and later outcomes said.",
            "bars",
        ),
        DashboardPanel(
            "Thumbs Up (24h)",
            (
                PanelQuery(
                    'sum(increase(upswing_feedback_total{type="thumbs_up"}[24h])) / '
                    'sum(increase(upswing_feedback_total{type=~"thumbs_up|thumbs_down"}[24h]))'
                ),
            ),
            "Of all thumbs.",
            "stat",
            "percentunit",
        ),
    ),
)
MODEL_PERFORMANCE = OpsDashboard(
    "model-performance",
    "Model Performance",
    "What each model earns, where it fails, and what users say of it.",
    (_REWARDS, _ERRORS, _FEEDBACK),
)
