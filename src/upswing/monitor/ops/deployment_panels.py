"""The dashboard Deployment Health: who answers, how rollouts go, and whether every part is there."""

from __future__ import annotations

from upswing.monitor.ops.panels import DashboardPanel, OpsDashboard, PanelQuery, PanelRow, stat
from upswing.monitor.ops.recording_rules import VALIDATION_RATIO

_BY_MODEL = "{{model_version}}"
_NOW = PanelRow(
    "Now",
    (
        DashboardPanel(
            "Alerts",
            (
                PanelQuery(
                    'count(ALERTS{alertstate="firing", service="upswing"}) or vector(0)',
                    "firing here",
                ),
                PanelQuery("sum(upswing_alerts_open) or vector(0)", "open in the loop"),
            ),
            "Of Prometheus's rules, and of the loop itself (`upswing alerts`).",
            "stat",
            width=6,
            height=4,
        ),
        stat("Processes Up", 'sum(up{job=~"upswing.*"})', "Loop, gateways and model servers."),
        stat("Validation Pass Rate (7d)", VALIDATION_RATIO, "Of all verdicts.", "percentunit"),
        stat(
            "Rollbacks (7d)",
            'sum(increase(agent_rl_model_deployments_total{status="rollback"}[7d]))',
            "Each of them has an incident: `upswing rollouts`.",
        ),
    ),
)
_ROLLOUTS = PanelRow(
    "Rollouts",
    (
        DashboardPanel(
            "Canary Rollout Progress",
            (
                PanelQuery("upswing_canary_step", f"{_BY_MODEL} step"),
                PanelQuery("upswing_canary_steps", f"{_BY_MODEL} of"),
            ),
            "The step of a canary, of those that its rollout has; empty without one.",
        ),
        DashboardPanel(
            "Traffic Distribution",
            (PanelQuery("max by (model_version) (agent_rl_model_traffic_percentage)", _BY_MODEL),),
            "Share of new episodes.",
            "stacked",
            "percent",
        ),
        DashboardPanel(
            "Rollback History",
            (
                PanelQuery(
                    'sum(increase(agent_rl_model_deployments_total{status="rollback"}[$__rate_interval]))',
                    "rollbacks",
                ),
            ),
            "When models were rolled back.",
            "bars",
        ),
        DashboardPanel(
            "Deployments by Status",
            (
                PanelQuery(
                    "sum by (status) (increase(agent_rl_model_deployments_total[$__rate_interval]))",
                    "{{status}}",
                ),
            ),
            "First traffic, steps, promotions, rollbacks, and models that did not ship.",
            "bars",
        ),
        DashboardPanel(
            "Validations by Verdict",
            (
                PanelQuery(
                    "sum by (verdict) (increase(upswing_validations_total[$__rate_interval]))",
                    "{{verdict}}",
                ),
            ),
            "`failed` ended without a report.",
            "bars",
        ),
        DashboardPanel(
            "Errors: Canary and Baseline",
            (
                PanelQuery("upswing_canary_error_ratio", _BY_MODEL),
                PanelQuery("upswing_canary_baseline_error_ratio", f"baseline beside {_BY_MODEL}"),
            ),
            "Share of requests that failed, since the canary's first traffic.",
            unit="percentunit",
        ),
    ),
)
_GATEWAYS = PanelRow(
    "Gateways and Model Servers",
    (
        DashboardPanel(
            "Gateway Requests by Outcome",
            (
                PanelQuery(
                    "sum by (outcome) (rate(upswing_gateway_requests_total[5m]))", "{{outcome}}"
                ),
            ),
            "A second.",
            "stacked",
            "reqps",
        ),
        DashboardPanel(
            "Requests Under Way",
            (
                PanelQuery("upswing_gateway_under_way", "gateway {{instance}}"),
                PanelQuery("upswing_model_server_requests_under_way", "model server {{instance}}"),
            ),
            "At this moment.",
        ),
        DashboardPanel(
            "Episodes",
            (
                PanelQuery("upswing_gateway_episodes", "open"),
                PanelQuery(
                    "increase(upswing_gateway_episodes_recorded_total[5m])", "recorded (5m)"
                ),
                PanelQuery(
                    "increase(upswing_gateway_episodes_not_recorded_total[5m])",
                    "not recorded: {{reason}}",
                ),
            ),
            "Conversations at the gateway, and what became of those that ended.",
        ),
        DashboardPanel(
            "Model Server Batch",
            (
                PanelQuery("upswing_model_server_running", "running"),
                PanelQuery("upswing_model_server_waiting", "waiting"),
                PanelQuery("upswing_model_server_models", "models"),
            ),
            "Requests in the batch, those that wait for a slot, and the models that are served.",
        ),
    ),
)
_PARTS = PanelRow(
    "Parts",
    (
        DashboardPanel(
            "Reachable",
            (
                PanelQuery('up{job=~"upswing.*"}', "{{job}}"),
                PanelQuery("upswing_bus_connected", "bus"),
                PanelQuery("upswing_bus_sync_always", "bus fsyncs"),
                PanelQuery("upswing_model_server_answers", "model server"),
            ),
            "1 or 0.",
        ),
        DashboardPanel(
            "Rows Set Aside, Rounds Failed, Outbox",
            (
                PanelQuery("sum(upswing_rows_set_aside_total) or vector(0)", "rows set aside"),
                PanelQuery("sum(upswing_rounds_failed_total) or vector(0)", "rounds failed"),
                PanelQuery("upswing_outbox_pending", "outbox"),
            ),
            "Rows that a stage could not read, rounds of a part that broke, and messages that wait for the bus.",
        ),
    ),
)
DEPLOYMENT_HEALTH = OpsDashboard(
    "deployment-health",
    "Deployment Health",
    "Who answers, how rollouts go, and whether every part is there.",
    (_NOW, _ROLLOUTS, _GATEWAYS, _PARTS),
)
