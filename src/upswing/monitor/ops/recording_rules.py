"""Which series does Prometheus compute itself, so that common questions have short answers?

| series                            | why it is recorded                                                         |
|-----------------------------------|----------------------------------------------------------------------------|
| `agent_rl_trajectory_reward`      | a histogram has no series of its own name; with it `avg_over_time` answers |
| `upswing:trajectories:per_minute` | how fast the loop collects                                                 |
| `upswing:collection:…`            | what the alert on collection errors rests on                               |
| `upswing:training:success_ratio`  | over a day                                                                 |
| `upswing:validation:pass_ratio`   | over a week                                                                |

Where nothing happened in a window there is no mean, so there is no sample: NaN would spoil every mean over it.
"""

from __future__ import annotations

from dataclasses import dataclass

from upswing.monitor.ops.targets import OpsLimits, duration

REWARD = "agent_rl_trajectory_reward"
PER_MINUTE = "upswing:trajectories:per_minute"
COLLECTION_MESSAGES = "upswing:collection:messages"
COLLECTION_ERROR_RATIO = "upswing:collection:error_ratio"
SUCCESS_RATIO = "upswing:training:success_ratio"
VALIDATION_RATIO = "upswing:validation:pass_ratio"


@dataclass(frozen=True, slots=True)
class RecordingRule:
    """A series and what it is."""

    record: str
    expr: str


def recording_rules(limits: OpsLimits) -> tuple[RecordingRule, ...]:
    """All of them."""
    reward, errors = duration(limits.reward_window), duration(limits.errors_window)
    return (
        RecordingRule(
            REWARD,
            f"rate({REWARD}_sum[{reward}]) / (rate({REWARD}_count[{reward}]) > 0)",
        ),
        RecordingRule(
            PER_MINUTE,
            f"sum(rate(agent_rl_trajectories_collected_total[{reward}])) * 60",
        ),
        RecordingRule(
            COLLECTION_MESSAGES,
            f"(sum(increase(upswing_messages_total[{errors}])) or vector(0))\n"
            f"+ (sum(increase(upswing_refused_total[{errors}])) or vector(0))",
        ),
        RecordingRule(
            COLLECTION_ERROR_RATIO,
            "(\n"
            f'  (sum(increase(upswing_messages_total{{outcome="unavailable"}}[{errors}])) or vector(0))\n'
            f"  + (sum(increase(upswing_refused_total[{errors}])) or vector(0))\n"
            f") / ({COLLECTION_MESSAGES} > 0)",
        ),
        RecordingRule(
            SUCCESS_RATIO,
            'sum(increase(agent_rl_training_jobs_total{status="completed"}[1d]))\n'
            '/ (sum(increase(agent_rl_training_jobs_total{status=~"completed|failed"}[1d])) > 0)',
        ),
        RecordingRule(
            VALIDATION_RATIO,
            'sum(increase(upswing_validations_total{verdict="pass"}[7d]))\n'
            "/ (sum(increase(upswing_validations_total[7d])) > 0)",
        ),
    )
