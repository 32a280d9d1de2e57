"""How does Grafana find its data and the three dashboards? By files, so that nobody has to click."""

from __future__ import annotations

from importlib.resources import files

from upswing.monitor.ops.targets import OpsSetup
from upswing.monitor.ops.yaml import dump

DASHBOARDS = ("training-overview", "model-performance", "deployment-health")
"""Their JSON is made by `scripts/dashboards` and shipped beside this module."""
PROMETHEUS_UID, LOKI_UID = "upswing-prometheus", "upswing-loki"
FOLDER = "/etc/grafana/dashboards/upswing"


def dashboard_json(name: str) -> str:
    """One of the three, as Grafana reads it."""
    return (files(__package__) / "dashboards" / f"{name}.json").read_text(encoding="utf-8")


def datasources(setup: OpsSetup) -> str:
    """`provisioning/datasources/upswing.yml`."""
    return dump(
        {
            "apiVersion": 1,
            "datasources": [
                {
                    "name": "Upswing Prometheus",
                    "uid": PROMETHEUS_UID,
                    "type": "prometheus",
                    "access": "proxy",
                    "url": setup.targets.prometheus,
                    "jsonData": {"timeInterval": f"{setup.limits.scrape}s"},
                },
                {
                    "name": "Upswing Loki",
                    "uid": LOKI_UID,
                    "type": "loki",
                    "access": "proxy",
                    "url": setup.targets.loki,
                },
            ],
        }
    )


def dashboard_provider(folder: str = FOLDER) -> str:
    """`provisioning/dashboards/upswing.yml`; `folder` holds the JSON."""
    return dump(
        {
            "apiVersion": 1,
            "providers": [
                {
                    "name": "Upswing",
                    "folder": "Upswing",
                    "type": "file",
                    "allowUiUpdates": False,
                    "options": {"path": folder},
                }
            ],
        }
    )
