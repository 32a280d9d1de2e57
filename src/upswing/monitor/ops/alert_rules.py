"""When does Prometheus call somebody, and what should they know?

The alerts are the loop's own (`monitor/core/alert_catalog.py`), with their urgency and remedy, and the same limits; Prometheus sees
them from outside, so it also sees a loop that is down. What is a state fires while it lasts. What is an event (a rollback, a
failed validation) fires for a while after it.
"""

from __future__ import annotations

from dataclasses import dataclass

from upswing.monitor.core.alert_catalog import CATALOG, AlertKind
from upswing.monitor.core.conditions import FAILURES, FREE_BYTES, FREE_SHARE, LEAST_FREE_BYTES
from upswing.monitor.ops.recording_rules import COLLECTION_ERROR_RATIO, COLLECTION_MESSAGES
from upswing.monitor.ops.targets import GATEWAY, LOOP, MODEL_SERVER, OpsLimits, duration


@dataclass(frozen=True, slots=True)
class AlertRule:
    """One reason to call somebody."""

    kind: AlertKind
    expr: str
    summary: str
    """One sentence, with what Prometheus knows filled in."""
    seconds: int = 0
    """For which it must hold."""

    @property
    def name(self) -> str:
        return self.kind.name

    @property
    def runbook(self) -> str:
        return self.kind.runbook


def alert_rules(limits: OpsLimits) -> tuple[AlertRule, ...]:
    """All of them."""
    return (*_training_and_models(limits), *_collecting_and_bus(limits), *_machine(limits))


def _training_and_models(limits: OpsLimits) -> tuple[AlertRule, ...]:
    event = duration(limits.event_window)
    return (
        AlertRule(
            CATALOG["TrainingFailing"],
            f"upswing_training_failures_in_a_row >= {FAILURES}",
            "{{ $value }} training jobs failed one after the other.",
        ),
        AlertRule(
            CATALOG["ValidationFailed"],
            f'sum by (verdict) (increase(upswing_validations_total{{verdict=~"fail|failed"}}[{event}])) > 0',
            "A validation ended with {{ $labels.verdict }}: that model is not rolled out.",
        ),
        AlertRule(
            CATALOG["ModelRolledBack"],
            f'sum by (status) (increase(agent_rl_model_deployments_total{{status="rollback"}}[{event}])) > 0',
            "A model was rolled back: the previous baseline answers again.",
        ),
        AlertRule(
            CATALOG["RewardDrift"],
            "upswing_reward_drop >= on (instance, job, model_version) upswing_reward_drop_limit\n"
            "unless on (instance, job) upswing_canary_steps",
            '{{ $labels.model_version }} earns {{ $value | printf "%.3f" }} less than it did at first, '
            "though no other model is rolled out.",
            limits.settled,
        ),
        AlertRule(
            CATALOG["JudgeBudgetSpent"],
            "upswing_judge_budget_spent == 1",
            "The judge's budget of the day is spent: groups stay unjudged.",
        ),
    )


def _collecting_and_bus(limits: OpsLimits) -> tuple[AlertRule, ...]:
    return (
        AlertRule(
            CATALOG["CollectionErrors"],
            f"{COLLECTION_ERROR_RATIO} > {limits.error_ratio} and {COLLECTION_MESSAGES} >= {limits.least_messages}",
            "{{ $value | humanizePercentage }} of what agents send is refused or cannot be stored.",
            limits.settled,
        ),
        AlertRule(
            CATALOG["BusUnreachable"],
            "upswing_bus_connected == 0",
            f"The bus has not been reached for {duration(limits.bus_away)}.",
            limits.bus_away,
        ),
        AlertRule(
            CATALOG["BusMayLoseMessages"],
            "upswing_bus_sync_always == 0",
            "The bus acknowledges before it fsyncs: a power cut loses what it acknowledged.",
        ),
    )


def _machine(limits: OpsLimits) -> tuple[AlertRule, ...]:
    free, size = "upswing_disk_free_bytes", "upswing_disk_size_bytes"
    return (
        AlertRule(
            CATALOG["TrainingServiceUnreachable"],
            f'up{{job="{LOOP}"}} == 0',
            "The loop at {{ $labels.instance }} does not answer: nothing is collected, trained or rolled out.",
            limits.server_away,
        ),
        AlertRule(
            CATALOG["GatewayUnreachable"],
            f'up{{job="{GATEWAY}"}} == 0',
            "The gateway at {{ $labels.instance }} does not answer: agents get nothing from it.",
            limits.server_away,
        ),
        AlertRule(
            CATALOG["ModelServerUnreachable"],
            f'upswing_model_server_answers == 0 or on () up{{job="{MODEL_SERVER}"}} == 0',
            "The model server does not answer.",
            limits.server_away,
        ),
        AlertRule(
            CATALOG["DiskNearlyFull"],
            f"{free} < {LEAST_FREE_BYTES}\n"
            f"or ({free} < {FREE_BYTES} and {free} < {FREE_SHARE} * {size})",
            "{{ $value | humanize1024 }}B are left on the disk of {{ $labels.disk }}.",
            limits.settled,
        ),
    )
