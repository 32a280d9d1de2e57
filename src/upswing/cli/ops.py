"""How do Prometheus, Alertmanager, Grafana and Loki watch this loop? `upswing ops DIR` writes what they read."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from upswing.errors import Misuse

if TYPE_CHECKING:
    from upswing.monitor.ops.targets import OpsTargets

_NEXT = """Next, on this machine:

    prometheus --config.file={folder}/prometheus/prometheus.yml
    alertmanager --config.file={folder}/alertmanager/alertmanager.yml
    GF_PATHS_PROVISIONING={folder}/grafana/provisioning grafana server
    loki -config.file={folder}/loki/loki.yml; alloy run {folder}/loki/config.alloy

docs/monitoring.md has the rest."""


def commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """The options of this command."""
    about = "Write configuration for Prometheus, Alertmanager, Grafana and Loki, with this loop's addresses."
    ops = command("ops", "ops:ops", about)
    ops.add_argument("folder", metavar="DIR", type=Path, help="where to write it")
    ops.add_argument("--force", action="store_true", help="overwrite files that differ")
    ops.add_argument("--loop", metavar="URL", help="the loop (default: the one that runs here)")
    for name, whose in (("gateway", "a gateway"), ("model-server", "a model server of ours")):
        ops.add_argument(
            f"--{name}",
            metavar="URL",
            action="append",
            default=[],
            help=f"{whose} elsewhere; may be repeated",
        )
    for name, whose in (
        ("prometheus", "Prometheus, for Grafana"),
        ("alertmanager", "Alertmanager, for Prometheus"),
        ("loki", "Loki, for its collector and Grafana"),
        ("webhook", "where Alertmanager sends alerts (default: nowhere)"),
    ):
        ops.add_argument(f"--{name}", metavar="URL", help=whose)
    ops.add_argument(
        "--logs",
        metavar="PATH",
        action="append",
        default=[],
        help="our JSON logs, for the collector; may be repeated",
    )


def ops(arguments: argparse.Namespace) -> int:
    """Write the files, and say what to do with them."""
    from upswing.config import read_settings
    from upswing.monitor.ops.files import write_ops_files
    from upswing.monitor.ops.targets import OpsSetup, limits_of

    folder = arguments.folder.expanduser().absolute()
    if file := next((each for each in (folder, *folder.parents) if each.is_file()), None):
        raise Misuse(f"{file} is a file: name a directory to write the configuration into.")
    targets = find_targets(arguments)
    limits = limits_of(read_settings(arguments.data, os.environ).alerts)
    written = write_ops_files(folder, OpsSetup(targets, limits), overwrite=arguments.force)
    if arguments.json:
        print(
            json.dumps({"folder": str(folder), "files": [str(path) for path in written]}, indent=2)
        )
        return 0
    for path in written:
        print(path)
    if not targets.model_servers:
        print("No model server of ours is scraped: where one is still starting, run this again.")
    print(_NEXT.format(folder=folder))
    return 0


def find_targets(arguments: argparse.Namespace) -> OpsTargets:
    """The addresses of the loop that runs in the data directory, and what the options name besides."""
    from upswing.infra.instance import find_running_instance, no_loop_sentence
    from upswing.monitor.ops.targets import OpsTargets, scrape_address

    running = find_running_instance(arguments.data)
    loop = arguments.loop or (running.http_url if running else None)
    if loop is None:
        raise Misuse(f"{no_loop_sentence(arguments.data)} Or name its address with --loop.")
    here = running if running and not arguments.loop else None
    gateways = [here.gateway_url] if here and here.gateway_url else []
    servers = [_model_server_url(arguments.data)] if here else []
    named = {
        name: value
        for name in ("prometheus", "alertmanager", "loki", "webhook")
        if (value := getattr(arguments, name)) is not None
    }
    for url in (loop, *gateways, *arguments.gateway, *arguments.model_server, *named.values()):
        scrape_address(url)
    if here:
        logs = (*OpsTargets().logs, str(arguments.data / "serve" / "model-server.log"))
    else:
        logs = OpsTargets().logs
    return OpsTargets(
        loop=loop,
        gateways=(*gateways, *arguments.gateway),
        model_servers=(*filter(None, servers), *arguments.model_server),
        logs=tuple(arguments.logs) or logs,
        **named,
    )


def _model_server_url(data: Path) -> str | None:
    """Where the loop's own model server listens, if it runs; it keeps its port when it is started anew."""
    from upswing.infra.adoption import process_start_time, read_record

    record = read_record(data / "serve" / "server.json")
    if record is None or process_start_time(record.pid) != record.started:
        return None
    return f"http://127.0.0.1:{record.port}"
