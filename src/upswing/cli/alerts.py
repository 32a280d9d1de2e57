"""What is wrong, and who is on it? `upswing alerts`, `upswing alerts show ID`, `upswing alerts ack ID`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from upswing.cli.client import ask
from upswing.cli.training import is_remote_loop, printable, read_store
from upswing.errors import Misuse, count_phrase
from upswing.infra.cli_options import IntegerOption

if TYPE_CHECKING:
    from upswing.infra.sql.database import Database

_STATES = ("open", "firing", "acknowledged", "resolved", "all")
_SIGNS = {"urgent": "!!", "warning": "! ", "info": "  "}


def commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """The options of this command."""
    alerts = command(
        "alerts", "alerts:alerts", "List alerts, show one, or say that you have seen it."
    )
    alerts.add_argument("action", nargs="?", choices=("list", "show", "ack"), default="list")
    alerts.add_argument("id", nargs="?", help="the alert to show or to acknowledge")
    alerts.add_argument("--state", choices=_STATES, default="open", help="which (default: open)")
    alerts.add_argument("--name", help="only this kind, such as `ModelRolledBack`")
    alerts.add_argument("--note", default="", help="with `ack`: what you do about it")
    alerts.add_argument("--limit", type=IntegerOption(1, 200), default=50)


def alerts(arguments: argparse.Namespace) -> int:
    """The alerts, one of them, or an acknowledgement."""
    if arguments.action == "list":
        return _list(arguments)
    if not arguments.id:
        raise Misuse(
            f"Say which: `upswing alerts {arguments.action} ID`; `upswing alerts` lists them."
        )
    path = f"/v1/alerts/{quote(arguments.id, safe='')}"
    if arguments.action == "ack":
        done = ask(arguments.data, "POST", f"{path}/acknowledge", {"note": arguments.note})
        print(json.dumps(done) if arguments.json else f"{done['name']} is {done['state']}.")
        return 0
    found = ask(arguments.data, "GET", path) if is_remote_loop() else _stored_alert(arguments)
    if arguments.json:
        print(json.dumps(found, indent=2))
        return 0
    _print_alert(found)
    return 0


def _check_name(name: str | None) -> None:
    from upswing.monitor.core.alert_catalog import CATALOG

    if name and name not in CATALOG:
        raise Misuse(f"There is no alert {name}; there are {', '.join(sorted(CATALOG))}.")


def _list(arguments: argparse.Namespace) -> int:
    _check_name(arguments.name)
    found = _remote_alerts(arguments) if is_remote_loop() else _stored_alerts(arguments)
    if arguments.json:
        print(json.dumps(found, indent=2))
        return 0
    for each in found:
        times = f" ({each['times']} times)" if each["times"] > 1 else ""
        print(
            f"{_SIGNS[each['severity']]} {each['alert_id']}  {each['began'][:16].replace('T', ' ')}  "
            f"{each['state']:<12} {each['name']}{times}\n   {printable(each['summary'])}"
        )
    if not found:
        print("No alerts." if arguments.state == "all" else f"No alert is {arguments.state}.")
    return 0


def _print_alert(found: dict[str, Any]) -> None:
    for name in ("name", "severity", "state", "summary", "over", "began", "resolved", "times"):
        if found.get(name) is not None:
            print(f"{name:14}{printable(str(found[name]))}")
    for name in ("labels", "evidence"):
        for key, value in found[name].items():
            print(f"{name:14}{printable(str(key))}: {printable(str(value))}")
    if found["acknowledged_by"]:
        print(f"{'acknowledged':14}{found['acknowledged_by']} {printable(found['note'] or '')}")
    if found.get("remedy"):  # a loop of an earlier version does not say it
        print(f"{'what to do':14}{found['remedy']}")
    print(f"{'runbook':14}{found['runbook']}")
    for each in found["deliveries"]:
        error = f" {printable(each['error'])}" if each["error"] else ""
        print(
            f"{'webhook':14}{each['target']}: {each['state']}, {count_phrase(each['tries'], 'try', 'tries')}{error}"
        )


def _remote_alerts(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    query = {"state": arguments.state, "limit": arguments.limit}
    query |= {"name": arguments.name} if arguments.name else {}
    found: list[dict[str, Any]] = ask(arguments.data, "GET", f"/v1/alerts?{urlencode(query)}")[
        "alerts"
    ]
    return found


def _stored_alerts(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """From the store itself, so that it works when the loop does not run."""
    import msgspec

    from upswing.api.alerts import STATES, alert_item
    from upswing.infra.sql.store import existing_tables
    from upswing.monitor.alert_repository import AlertFilter, AlertRow, read_alerts

    wanted = AlertFilter(states=STATES[arguments.state], name=arguments.name)

    async def read(database: Database) -> list[AlertRow]:
        if "alerts" not in await database.read(existing_tables):
            return []  # a store that an older version left
        return await read_alerts(database, wanted, arguments.limit)

    found = read_store(arguments.data, read)
    return [msgspec.to_builtins(alert_item(each)) for each in found]


def _stored_alert(arguments: argparse.Namespace) -> dict[str, Any]:
    import msgspec

    from upswing.api.alerts import alert_item, delivery_view
    from upswing.monitor.alert_repository import read_alert
    from upswing.monitor.deliveries import DeliveryQueue

    async def read(database: Database) -> tuple[Any, Any]:
        row = await read_alert(database, arguments.id)
        name = row.alert_id if row else arguments.id
        return row, await DeliveryQueue(database).of_notice(name)

    row, deliveries = read_store(arguments.data, read)
    if row is None:
        raise Misuse("There is no alert with this id; `upswing alerts --state all` lists them.")
    view: dict[str, Any] = msgspec.to_builtins(alert_item(row))
    return {**view, "deliveries": msgspec.to_builtins([*map(delivery_view, deliveries)])}
