"""The dashboard Training Overview: what comes in, what it is worth, how training goes, and what it all takes."""

from __future__ import annotations

from upswing.monitor.ops.panels import DashboardPanel, OpsDashboard, PanelQuery, PanelRow, stat
from upswing.monitor.ops.recording_rules import COLLECTION_ERROR_RATIO

_CHILD = "upswing_training_child"

_NOW = PanelRow(
    "Now",
    (
        stat(
            "Trajectories Collected (24h)",
            "sum(increase(agent_rl_trajectories_collected_total[24h]))",
            "Stored, once each, in the last day.",
        ),
        stat(
            "Average Trajectory Reward (1h)",
            "avg_over_time(agent_rl_trajectory_reward[1h])",
            "The mean of five-minute means in which trajectories came.",
        ),
        stat(
            "Training Job Success Rate (24h)",
            'sum(rate(agent_rl_training_jobs_total{status="completed"}[24h])) / '
            "sum(rate(agent_rl_training_jobs_total[24h]))",
            "Of the jobs that ended in the last day.",
            "percentunit",
        ),
        stat(
            "Training Failures in a Row",
            "upswing_training_failures_in_a_row",
            "Three call somebody.",
        ),
    ),
)
_COLLECTING = PanelRow(
    "Collecting",
    (
        DashboardPanel(
            "Trajectory Collection Rate",
            (
                PanelQuery(
                    "sum by (task_domain) (rate(agent_rl_trajectories_collected_total[5m]) * 60)",
                    "{{task_domain}}",
                ),
            ),
            "Trajectories a minute, by domain.",
            "stacked",
        ),
        DashboardPanel(
            "Collection by Agent Type",
            (
                PanelQuery(
                    "sum by (agent_type) (rate(agent_rl_trajectories_collected_total[5m]) * 60)",
                    "{{agent_type}}",
                ),
            ),
            "Trajectories a minute, by the agent's profile.",
            "stacked",
        ),
        DashboardPanel(
            "Collection Errors",
            (PanelQuery(COLLECTION_ERROR_RATIO, "refused or not stored"),),
            "Of what agents send; a tenth calls somebody.",
            unit="percentunit",
        ),
        DashboardPanel(
            "Refused Messages by Reason",
            (
                PanelQuery(
                    "sum by (reason) (increase(upswing_refused_total[$__rate_interval]))",
                    "{{reason}}",
                ),
            ),
            "Each is a dead letter: `upswing dead` shows it.",
            "bars",
        ),
    ),
)
_REWARDS = PanelRow(
    "Rewards",
    (
        DashboardPanel(
            "Reward Distribution",
            (
                PanelQuery(
                    "sum by (le) (increase(agent_rl_trajectory_reward_bucket[$__rate_interval]))",
                    "{{le}}",
                ),
            ),
            "Total rewards of trajectories, normalised against the trailing thousand.",
            "heatmap",
        ),
        DashboardPanel(
            "Trajectory Length",
            (
                PanelQuery(
                    "histogram_quantile(0.5, sum by (le) (rate(agent_rl_trajectory_length_bucket[1h])))",
                    "median",
                ),
                PanelQuery(
                    "histogram_quantile(0.95, sum by (le) (rate(agent_rl_trajectory_length_bucket[1h])))",
                    "95 %",
                ),
            ),
            "Turns of a trajectory, estimated from buckets.",
        ),
        DashboardPanel(
            "Time to Reward",
            (
                PanelQuery(
                    "histogram_quantile(0.95, sum by (le) (rate(upswing_reward_latency_seconds_bucket[5m])))",
                    "95 %",
                ),
            ),
            "From stored to scored.",
            unit="s",
        ),
        DashboardPanel(
            "Judge Spending",
            (PanelQuery("sum by (kind) (increase(upswing_judge_tokens_total[1h]))", "{{kind}}"),),
            "Tokens of the judge in an hour.",
        ),
    ),
)
_TRAINING = PanelRow(
    "Training",
    (
        DashboardPanel(
            "Training Job Status",
            (PanelQuery("upswing_training_jobs_active", "{{state}}"),),
            "Jobs that have not ended.",
        ),
        DashboardPanel(
            "Training Jobs Ended",
            (
                PanelQuery(
                    "sum by (status) (increase(agent_rl_training_jobs_total[$__rate_interval]))",
                    "{{status}}",
                ),
            ),
            "By how they ended.",
            "bars",
        ),
        DashboardPanel(
            "Running Job: Loss and KL",
            (
                PanelQuery(f"{_CHILD}_loss", "loss {{worker}}"),
                PanelQuery(f"{_CHILD}_kl", "KL {{worker}}"),
                PanelQuery(f"{_CHILD}_entropy", "entropy {{worker}}"),
            ),
            "As the child reports after each step; empty while nothing trains.",
        ),
        DashboardPanel(
            "Running Job: Progress and Reward",
            (
                PanelQuery(f"{_CHILD}_step / ({_CHILD}_steps > 0)", "done {{worker}}"),
                PanelQuery(f"{_CHILD}_reward_mean", "reward {{worker}}"),
            ),
            "Share of the planned steps, and the mean reward of the last batch.",
        ),
        DashboardPanel(
            "Training Duration",
            (
                PanelQuery(
                    "sum(increase(agent_rl_training_duration_seconds_sum[7d])) / "
                    "sum(increase(agent_rl_training_duration_seconds_count[7d]))",
                    "mean",
                ),
            ),
            "Of the jobs that ended in a week, all their attempts.",
            unit="s",
        ),
        DashboardPanel(
            "Training Samples",
            (
                PanelQuery(
                    "sum(increase(agent_rl_training_samples_sum[7d])) / "
                    "sum(increase(agent_rl_training_samples_count[7d]))",
                    "mean",
                ),
            ),
            "Trajectories that a job of this week learned from.",
        ),
    ),
)
_RESOURCES = PanelRow(
    "Resource Utilization",
    (
        DashboardPanel(
            "CPU by Process",
            (
                PanelQuery('rate(process_cpu_seconds_total{job=~"upswing.*"}[1m])', "{{job}}"),
                PanelQuery(f"rate({_CHILD}_cpu_seconds_total[1m])", "training {{worker}}"),
            ),
            "Cores in use.",
        ),
        DashboardPanel(
            "Memory by Process",
            (
                PanelQuery('process_resident_memory_bytes{job=~"upswing.*"}', "{{job}}"),
                PanelQuery(f"{_CHILD}_resident_bytes", "training {{worker}}"),
            ),
            "Resident memory.",
            unit="bytes",
        ),
        DashboardPanel(
            "Disk Used",
            (
                PanelQuery(
                    "1 - upswing_disk_free_bytes / upswing_disk_size_bytes",
                    "{{disk}}",
                ),
            ),
            "Of the disk below each folder.",
            unit="percentunit",
        ),
        DashboardPanel(
            "Judge Budget Used",
            (PanelQuery("upswing_judge_budget_used_ratio", "{{kind}}"),),
            "Of the day's budget; empty without a judge.",
            unit="percentunit",
        ),
    ),
)
TRAINING_OVERVIEW = OpsDashboard(
    "training-overview",
    "RL Training Overview",
    "What agents send, what it is worth, and how training goes.",
    (_NOW, _COLLECTING, _REWARDS, _TRAINING, _RESOURCES),
)
