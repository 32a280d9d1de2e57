"""Which files make a monitoring stack watch a loop, and what stands in each?

prometheus/prometheus.yml        what is scraped
prometheus/rules/recording.yml   series that Prometheus computes
prometheus/rules/alerts.yml      when somebody is called
alertmanager/alertmanager.yml    who is called
grafana/dashboards/*.json        three dashboards
grafana/provisioning/…           so that Grafana finds them and its data
loki/loki.yml                    logs are kept for thirty days
loki/config.alloy                the collector of the loop's JSON logs
"""

from __future__ import annotations

from pathlib import Path

from upswing.errors import Misuse
from upswing.monitor.ops.alertmanager import alertmanager_config
from upswing.monitor.ops.grafana import (
    DASHBOARDS,
    FOLDER,
    dashboard_json,
    dashboard_provider,
    datasources,
)
from upswing.monitor.ops.loki import alloy_config, loki_config
from upswing.monitor.ops.prometheus import (
    alert_rules_file,
    prometheus_config,
    recording_rules_file,
)
from upswing.monitor.ops.targets import OpsSetup


def ops_files(setup: OpsSetup, dashboards: str = FOLDER) -> dict[str, str]:
    """Path below the folder → text; `dashboards` is where Grafana will find the dashboards."""
    return {
        "prometheus/prometheus.yml": prometheus_config(setup),
        "prometheus/rules/recording.yml": recording_rules_file(setup.limits),
        "prometheus/rules/alerts.yml": alert_rules_file(setup.limits),
        "alertmanager/alertmanager.yml": alertmanager_config(setup),
        **{f"grafana/dashboards/{name}.json": dashboard_json(name) for name in DASHBOARDS},
        "grafana/provisioning/datasources/upswing.yml": datasources(setup),
        "grafana/provisioning/dashboards/upswing.yml": dashboard_provider(dashboards),
        "loki/loki.yml": loki_config(),
        "loki/config.alloy": alloy_config(setup),
    }


def write_ops_files(folder: Path, setup: OpsSetup, *, overwrite: bool = True) -> list[Path]:
    """Write all of them below a folder; where each lies now.

    Unless they may be overwritten, `Misuse` when one of them is there already and says something else.
    """
    dashboards = str(folder.absolute() / "grafana" / "dashboards")
    texts = {folder / name: text for name, text in ops_files(setup, dashboards).items()}
    changed = [path for path, text in texts.items() if _differs(path, text)]
    if changed and not overwrite:
        raise Misuse(
            f"{changed[0]} is there already and differs: name another folder, or overwrite it with --force."
        )
    for path in texts:
        _require_own_place(folder, path)
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(texts)


def _differs(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() != text.encode()


def _require_own_place(folder: Path, path: Path) -> None:
    """`Misuse` where the way to a file, or the file itself, is a link: nobody knows whose file would be written."""
    for part in (path, *path.parents):
        if part == folder:
            break
        wrong = part.is_symlink() or (
            part.exists() and not (part.is_file() if part == path else part.is_dir())
        )
        if wrong:
            raise Misuse(
                f"{part} is a link, or no {'file' if part == path else 'folder'}: remove it."
            )
