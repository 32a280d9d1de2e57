"""Who answers, and who should? Traffic, rollouts, and rollback."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from upswing.cli.client import ask
from upswing.errors import Misuse
from upswing.infra.cli_options import IntegerOption

if TYPE_CHECKING:
    from upswing.infra.sql.database import Database

ACTIONS = ("approve", "pause", "resume", "override", "revalidate")


def commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """The options of these commands."""
    about = "Show who gets which share of the traffic, or hold models at shares of your own."
    traffic = command("traffic", "deployment:traffic", about)
    traffic.add_argument(
        "shares",
        nargs="*",
        metavar="MODEL=PERCENT",
        help="of new episodes; the baseline gets the rest, and 100 makes a model the baseline",
    )
    rollouts = command(
        "rollouts",
        "deployment:rollouts",
        "List rollouts; approve, pause, resume or override one; validate a model again.",
    )
    rollouts.add_argument("action", nargs="?", choices=("list", *ACTIONS), default="list")
    rollouts.add_argument("model", nargs="?", help="the model it is about")
    rollouts.add_argument("--reason", default="", help="for the journal; `override` needs one")
    rollouts.add_argument("--limit", type=IntegerOption(1, 1000), default=20)
    about = "Roll a model back: the one being rolled out, or else the one that answers."
    rollback = command("rollback", "deployment:rollback", about)
    rollback.add_argument("model", nargs="?", help="this one")
    rollback.add_argument("--reason", default="", help="for the journal")


def traffic(arguments: argparse.Namespace) -> int:
    """Show the shares, or set them."""
    from upswing.cli.training import printable

    wanted = dict(map(_share, arguments.shares))
    if not wanted:
        view = ask(arguments.data, "GET", "/admin/traffic")
    elif len(wanted) == 1:
        ((model, percent),) = wanted.items()
        body = {"model_id": model, "traffic_percentage": percent}
        view = ask(arguments.data, "PUT", "/admin/traffic", body)
    else:
        view = ask(arguments.data, "PUT", "/admin/traffic", {"shares": wanted})
    if arguments.json:
        print(json.dumps(view, indent=2))
        return 0
    for model, percent in sorted(view["traffic"].items(), key=lambda each: -each[1]):
        print(f"{printable(model):<28} {percent:6.2f} %  {_role(model, view)}")
    for sentence in view.get("exceptions", ()):
        print(printable(sentence))
    if view["operator"]:
        print("An operator holds these shares: `upswing rollouts resume MODEL` lets a ramp go on.")
    return 0


def _role(model: str, traffic: dict[str, Any]) -> str:
    """As what a model gets its share."""
    for role in ("baseline", "holdback"):
        if model == traffic.get(role):
            return role
    return "candidate"


def _share(text: str) -> tuple[str, float]:
    model, _, percent = text.rpartition("=")
    try:
        value = float(percent.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not model or not 0 <= value <= 100:
        raise Misuse(f"{text!r} is no share: write MODEL=PERCENT, with 0 to 100.")
    return model, value


def rollouts(arguments: argparse.Namespace) -> int:
    """The newest rollouts, or an action on one."""
    from upswing.cli.training import printable

    if arguments.action != "list":
        return _request_action(arguments, arguments.action)
    found = _stored_rollouts(arguments)
    if arguments.json:
        print(json.dumps(found, indent=2))
        return 0
    for each in found:
        ramp = " → ".join(f"{share:g}" for share in each["steps"]) or each["strategy"]
        print(
            f"{printable(each['model_id']):<24} {each['state']:<18} {each['traffic_percentage']:6.2f} %  "
            f"{each['created'][:19]}  {ramp}\n    {printable(each['sentence'])}"
        )
    if not found:
        print("No rollouts.")
    return 0


def _stored_rollouts(arguments: argparse.Namespace) -> Sequence[dict[str, Any]]:
    """As the loop's port shows them; from the store, so that it works when the loop does not run."""
    from upswing.cli.training import is_remote_loop, read_store

    if is_remote_loop():
        path = f"/v1/rollouts?limit={arguments.limit}"
        found: list[dict[str, Any]] = ask(arguments.data, "GET", path)["rollouts"]
        return found
    from upswing.deploy.core import views
    from upswing.deploy.core.deployment_state import decode_rollout
    from upswing.deploy.repository import RolloutRepository

    async def list_rollouts(database: Database) -> Sequence[dict[str, Any]]:
        rows = await RolloutRepository(database).list_rollouts(max(arguments.limit, views.LIVE))
        sound = database.bad_rows.read_each(
            "deploy", "rollouts", rows, decode_rollout, key=lambda r: r.rollout_id
        )
        return views.rollout_views(sound)[: arguments.limit]

    return read_store(arguments.data, list_rollouts)


def rollback(arguments: argparse.Namespace) -> int:
    """Roll a model back."""
    if arguments.model:
        return _request_action(arguments, "rollback")
    return _print_rollout(
        arguments, ask(arguments.data, "POST", "/v1/rollback", {"reason": arguments.reason})
    )


def _request_action(arguments: argparse.Namespace, action: str) -> int:
    if not arguments.model:
        raise Misuse(f"Name the model: `upswing rollouts {action} MODEL`.")
    if action == "override" and not arguments.reason.strip():
        raise Misuse("An override skips the validation: say why with --reason.")
    path = f"/v1/rollouts/{quote(arguments.model, safe='')}/{action}"
    return _print_rollout(
        arguments, ask(arguments.data, "POST", path, {"reason": arguments.reason})
    )


def _print_rollout(arguments: argparse.Namespace, rollout: dict[str, Any]) -> int:
    from upswing.cli.training import printable

    if arguments.json:
        print(json.dumps(rollout, indent=2))
    elif "traffic_percentage" not in rollout:
        print(f"{rollout['model_id']} is {rollout['state']}.")
    else:
        share = rollout["traffic_percentage"]
        print(
            f"{rollout['model_id']} is {rollout['state']} at {share:g} %: {printable(rollout['sentence'])}"
        )
    return 0
