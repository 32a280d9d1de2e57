"""Who answers, and who should? Traffic, rollouts, and the way back."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from upswing.adapters.options import Whole
from upswing.cli.client import ask
from upswing.errors import Misuse

if TYPE_CHECKING:
    from upswing.adapters.sql.database import Database

WORDS = ("approve", "pause", "resume", "override")


def commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """The options of these commands."""
    about = "Show who gets which share of the traffic, or hold models at shares of your own."
    traffic = command("traffic", "deployment:traffic", about)
    traffic.add_argument(
        "shares", nargs="*", metavar="MODEL=PERCENT",
        help="of new episodes; the baseline gets the rest, and 100 makes a model the baseline",
    )  # fmt: skip
    rollouts = command(
        "rollouts", "deployment:rollouts", "List rollouts; approve, pause, resume or override one."
    )
    rollouts.add_argument("action", nargs="?", choices=("list", *WORDS), default="list")
    rollouts.add_argument("model", nargs="?", help="the model it is about")
    rollouts.add_argument("--reason", default="", help="for the journal; `override` needs one")
    rollouts.add_argument("--limit", type=Whole(1, 1000), default=20)
    about = "Take a model back: the one on its way, or else the one that answers."
    rollback = command("rollback", "deployment:rollback", about)
    rollback.add_argument("model", nargs="?", help="this one")
    rollback.add_argument("--reason", default="", help="for the journal")


def traffic(arguments: argparse.Namespace) -> int:
    """Show the shares, or set them."""
    from upswing.cli.training import printable

    wanted = dict(map(_share, arguments.shares))
    if not wanted:
        told = ask(arguments.data, "GET", "/admin/traffic")
    elif len(wanted) == 1:
        ((model, percent),) = wanted.items()
        body = {"model_id": model, "traffic_percentage": percent}
        told = ask(arguments.data, "PUT", "/admin/traffic", body)
    else:
        told = ask(arguments.data, "PUT", "/admin/traffic", {"shares": wanted})
    if arguments.json:
        print(json.dumps(told, indent=2))
        return 0
    for model, percent in sorted(told["traffic"].items(), key=lambda each: -each[1]):
        role = "baseline" if model == told["baseline"] else "candidate"
        print(f"{printable(model):<28} {percent:6.2f} %  {role}")
    if told["operator"]:
        print("An operator holds these shares: `upswing rollouts resume MODEL` lets a ramp go on.")
    return 0


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
    """The newest rollouts, or a word to one."""
    from upswing.cli.training import printable

    if arguments.action != "list":
        return _say(arguments, arguments.action)
    found = _rollouts(arguments)
    if arguments.json:
        print(json.dumps(found, indent=2))
        return 0
    for each in found:
        way = " → ".join(f"{share:g}" for share in each["steps"]) or each["strategy"]
        print(
            f"{printable(each['model_id']):<24} {each['state']:<18} {each['traffic_percentage']:6.2f} %  "
            f"{each['created'][:19]}  {way}\n    {printable(each['sentence'])}"
        )
    if not found:
        print("No rollouts.")
    return 0


def _rollouts(arguments: argparse.Namespace) -> Sequence[dict[str, Any]]:
    """As the loop's port shows them; from the store, so that it works when the loop does not run."""
    from upswing.cli.training import read, remote

    if remote():
        path = f"/v1/rollouts?limit={arguments.limit}"
        found: list[dict[str, Any]] = ask(arguments.data, "GET", path)["rollouts"]
        return found
    from upswing.adapters.sql.rollouts import Rollouts
    from upswing.deploy import told
    from upswing.deploy.standing import decoded

    async def listed(database: Database) -> Sequence[dict[str, Any]]:
        rows = await Rollouts(database).history(arguments.limit)
        sound = database.aside.sound(
            "deploy", "rollouts", rows, decoded, key=lambda r: r.rollout_id
        )
        return told.rollouts(sound)

    return read(arguments.data, listed)


def rollback(arguments: argparse.Namespace) -> int:
    """Take a model back."""
    if arguments.model:
        return _say(arguments, "rollback")
    return _show(
        arguments, ask(arguments.data, "POST", "/v1/rollback", {"reason": arguments.reason})
    )


def _say(arguments: argparse.Namespace, word: str) -> int:
    if not arguments.model:
        raise Misuse(f"Name the model: `upswing rollouts {word} MODEL`.")
    if word == "override" and not arguments.reason.strip():
        raise Misuse("An override skips the validation: say why with --reason.")
    path = f"/v1/rollouts/{quote(arguments.model, safe='')}/{word}"
    return _show(arguments, ask(arguments.data, "POST", path, {"reason": arguments.reason}))


def _show(arguments: argparse.Namespace, told: dict[str, Any]) -> int:
    from upswing.cli.training import printable

    if arguments.json:
        print(json.dumps(told, indent=2))
    else:
        share = told["traffic_percentage"]
        print(
            f"{told['model_id']} is {told['state']} at {share:g} %: {printable(told['sentence'])}"
        )
    return 0
