"""What does Prometheus scrape, and which rules does it evaluate?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from upswing.monitor.ops.alert_rules import AlertRule, alert_rules
from upswing.monitor.ops.recording_rules import recording_rules
from upswing.monitor.ops.targets import (
    GATEWAY,
    LOOP,
    MODEL_SERVER,
    OpsLimits,
    OpsSetup,
    duration,
    scrape_address,
)
from upswing.monitor.ops.yaml import Tree, dump


def prometheus_config(setup: OpsSetup) -> str:
    """`prometheus.yml`."""
    targets, limits = setup.targets, setup.limits
    alertmanager = scrape_address(targets.alertmanager)
    jobs = (
        (LOOP, (targets.loop,)),
        (GATEWAY, targets.gateways),
        (MODEL_SERVER, targets.model_servers),
    )
    return dump(
        {
            "global": {
                "scrape_interval": duration(limits.scrape),
                "scrape_timeout": duration(min(10, limits.scrape)),
                "evaluation_interval": duration(limits.evaluate),
            },
            "rule_files": ["rules/*.yml"],
            "alerting": {
                "alertmanagers": [
                    {
                        "scheme": alertmanager.scheme,
                        "static_configs": [{"targets": [alertmanager.netloc]}],
                    }
                ]
            },
            "scrape_configs": [each for name, urls in jobs for each in _scrape_jobs(name, urls)],
        }
    )


def _scrape_jobs(name: str, urls: Sequence[str]) -> list[Tree]:
    """One for each scheme, under one name: the rules know processes by it."""
    by_scheme: dict[str, list[str]] = defaultdict(list)
    for url in urls:
        address = scrape_address(url)
        by_scheme[address.scheme].append(address.netloc)
    return [
        {
            "job_name": name if scheme == "http" or len(by_scheme) == 1 else f"{name}-{scheme}",
            "scheme": scheme,
            "metrics_path": "/metrics",
            "static_configs": [{"targets": hosts, "labels": {"job": name}}],
        }
        for scheme, hosts in sorted(by_scheme.items())
    ]


def recording_rules_file(limits: OpsLimits) -> str:
    """`rules/recording.yml`."""
    rules = [{"record": each.record, "expr": each.expr} for each in recording_rules(limits)]
    return dump({"groups": [{"name": "upswing-recording", "rules": rules}]})


def alert_rules_file(limits: OpsLimits) -> str:
    """`rules/alerts.yml`."""
    rules = [_alert_tree(each) for each in alert_rules(limits)]
    return dump({"groups": [{"name": "upswing-alerts", "rules": rules}]})


def _alert_tree(rule: AlertRule) -> Tree:
    return {
        "alert": rule.name,
        "expr": rule.expr,
        "for": duration(rule.seconds),
        "labels": {"severity": rule.kind.severity, "service": "upswing"},
        "annotations": {
            "summary": rule.summary,
            "action": rule.kind.remedy,
            "runbook": rule.runbook,
        },
    }
