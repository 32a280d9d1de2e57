"""May this model ship, which of two is better, and what must not go wrong again?

| exit code of `validate` | means                                                |
|-------------------------|------------------------------------------------------|
| 0                       | pass                                                 |
| 1                       | fail                                                 |
| 2                       | misuse: an unknown model or suite, no loop, no report|
| 3                       | inconclusive, or nobody could be asked how it ended  |
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from upswing.cli.client import ask
from upswing.errors import Misuse, Transient, UpswingError
from upswing.infra.cli_options import IntegerOption

if TYPE_CHECKING:
    from upswing.api.comparison import Comparison

EXITS = {"pass": 0, "fail": 1, "inconclusive": 3}
MISUSE, UNDECIDED = 2, 3
Info = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Polling:
    """How a validation is followed."""

    seconds: float = 0.5
    silences: int = 60
    """Polls without an answer after which nobody waits any longer: half a minute."""


_POLLING = Polling()


def commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """The options of these commands."""
    about = "Compare a model with the one that answers now, task by task; 0 pass, 1 fail, 3 inconclusive."
    validate = command("validate", "validation:validate", about)
    validate.add_argument("model", help="the candidate")
    validate.add_argument(
        "--against", metavar="MODEL", help="another one than the model that answers now"
    )
    validate.add_argument(
        "--suite", action="append", metavar="NAME", help="only this suite; may be repeated"
    )
    compare = command(
        "compare", "validation:compare", "Compare what two models earned in production."
    )
    compare.add_argument("a", metavar="A", help="a model")
    compare.add_argument("b", metavar="B", help="another one")
    about = "Make a failure a task that every later model has to do."
    pin = command("pin", "validation:pin", about)
    pin.add_argument("trajectory", help="the trajectory's id")
    pin.add_argument(
        "--turn", type=IntegerOption(1), metavar="N", help="what went wrong (default: the last)"
    )
    pin.add_argument(
        "--contains", action="append", default=[], metavar="TEXT", help="a good answer has this"
    )
    pin.add_argument(
        "--excludes", action="append", default=[], metavar="TEXT", help="a good answer has not"
    )


# ── validate ─────────────────────────────────────────────────────────────────────────────────────


def validate(arguments: argparse.Namespace, polling: Polling = _POLLING) -> int:
    """Validate a model and show the report; the exit code is the verdict."""
    try:
        info = _run_validation(arguments, polling)
    except UpswingError as error:
        if getattr(arguments, "debug", False):
            raise
        print(f"upswing: {error}", file=sys.stderr)
        return UNDECIDED if isinstance(error, Transient) else MISUSE
    if arguments.json:
        print(json.dumps(info, indent=2))
    else:
        print(_report_text(info), end="")
    return EXITS[info["word"]]


def _run_validation(arguments: argparse.Namespace, polling: Polling) -> Info:
    options = {"model_id": arguments.model, "against": arguments.against, "suites": arguments.suite}
    given = {name: value for name, value in options.items() if value is not None}
    started: Info = ask(arguments.data, "POST", "/v1/validations", given)
    states = _poll_states(arguments, started["validation_id"], polling)
    if arguments.json:
        info = _last_state(states)
    elif sys.stdout.isatty():
        info = _watch_live(states, started)
    else:
        info = _watch_as_lines(states, started)
    if info["state"] != "done":
        raise Misuse(str(info["sentence"] or "There is no report."))
    return info


def _poll_states(
    arguments: argparse.Namespace, validation_id: str, polling: Polling
) -> Iterator[Info]:
    """How it stands, again and again, until it has ended; a loop that restarts is waited for."""
    silences = 0
    while True:
        try:
            info: Info = ask(
                arguments.data, "GET", f"/v1/validations/{quote(validation_id, safe='')}"
            )
        except Transient:
            silences += 1
            if silences >= polling.silences:
                raise
        else:
            silences = 0
            yield info
            if info["state"] != "running":
                return
        time.sleep(polling.seconds)


def _last_state(states: Iterator[Info]) -> Info:
    *_, info = states
    return info


def _watch_as_lines(states: Iterator[Info], started: Info) -> Info:
    """A line when another tenth is done."""
    print(f"{started['validation_id']}: {started['model_id']} against {started['against']}")
    shown, info = -1, {}
    for info in states:
        done, total = _total_progress(info)
        if total and (tenth := 10 * done // total) > shown:
            print(f"{done} of {total} answers", flush=True)
            shown = tenth
    print()
    return info


def _watch_live(states: Iterator[Info], started: Info) -> Info:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    info: Info = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining())
    with Progress(*columns) as picture:
        title = f"{started['model_id']} against {started['against']}"
        whole = picture.add_task(title, total=None)
        bars: dict[str, Any] = {}
        for info in states:
            done, total = _total_progress(info)
            picture.update(whole, completed=done, total=total or None)
            for each in info["progress"]:
                name = each["suite"]
                if name not in bars:
                    bars[name] = picture.add_task(f"  {name}")
                picture.update(bars[name], completed=each["done"], total=each["total"])
        for bar in bars.values():
            picture.remove_task(bar)
    return info


def _total_progress(info: Info) -> tuple[int, int]:
    progress = info["progress"]
    return sum(each["done"] for each in progress), sum(each["total"] for each in progress)


def _report_text(info: Info) -> str:

    from upswing.cli.training import printable
    from upswing.contracts.typed import from_tree
    from upswing.contracts.validation import ValidationReport
    from upswing.validate.core.render import as_text

    report = as_text(from_tree(info["report"], ValidationReport))
    artifact_note = (
        f"Kept at {info['artifact']}; `upswing explain {info['decision_id']}` tells why."
    )
    return "\n".join(printable(line) for line in [*report.split("\n"), artifact_note, ""])


# ── compare ──────────────────────────────────────────────────────────────────────────────────────


def compare(arguments: argparse.Namespace) -> int:
    """What two models earned, and how they did in suites that both have done."""
    import msgspec

    found = _load_comparison(arguments)
    if arguments.json:
        print(json.dumps(msgspec.to_builtins(found), indent=2))
        return 0
    width = max(len(found.a.model_id), len(found.b.model_id))
    for arm in (found.a, found.b):
        mean = "  –" if arm.mean is None else f"{arm.mean:.3f}"
        print(f"{arm.model_id:<{width}}  {arm.trajectories:>7,} trajectories  mean reward {mean}")
    if side := found.production:
        bounds = _bounds(side.difference, side.lower, side.upper)
        print(f"\n{bounds} over {side.compared:,} side by side")
    print(found.sentence)
    if found.suites:
        print(f"\nvalidation {', '.join(found.reports)}")
    longest = max((len(each.suite) for each in found.suites), default=0)
    for each in found.suites:
        scores = f"{_plain(each.a)} {_plain(each.b)}"
        print(
            f"{each.suite:<{longest}}  {scores}  {_bounds(each.difference, each.lower, each.upper)}"
        )
    return 0


def _load_comparison(arguments: argparse.Namespace) -> Comparison:
    """From the loop's port when AGENTGYM_RL_URL names one, else from the store itself."""
    from upswing.api.comparison import Comparison, load_comparison
    from upswing.cli.training import is_remote_loop, read_store
    from upswing.contracts.typed import from_tree
    from upswing.infra.sql.earnings import Earnings
    from upswing.validate.repository import Validations

    a, b = arguments.a, arguments.b
    if a == b:
        raise Misuse("Name two different models.")
    if is_remote_loop():
        path = f"/v1/compare?{urlencode({'a': a, 'b': b})}"
        return from_tree(ask(arguments.data, "GET", path), Comparison)
    found = read_store(
        arguments.data, lambda db: load_comparison(a, b, Earnings(db), Validations(db))
    )
    for arm in (found.a, found.b):
        known = arm.trajectories or found.suites or _is_registered(arguments, arm.model_id)
        if not known:
            raise Misuse(f"Nothing is known of {arm.model_id}; `upswing models` lists the models.")
    return found


def _is_registered(arguments: argparse.Namespace, name: str) -> bool:
    from upswing.cli.training import read_store
    from upswing.infra.sql.models import Models

    return read_store(arguments.data, lambda db: Models(db).get(name)) is not None


def _bounds(estimate: float | None, lower: float | None, upper: float | None) -> str:
    """+0.031 [−0.010, +0.072], as far as it is known."""
    if estimate is None:
        return "–"
    known = (
        f" [{_signed(lower)}, {_signed(upper)}]" if lower is not None and upper is not None else ""
    )
    return f"{_signed(estimate)}{known}"


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def _plain(value: float | None) -> str:
    return "    –" if value is None else f"{value:.3f}"


# ── pin ──────────────────────────────────────────────────────────────────────────────────────────


def pin(arguments: argparse.Namespace) -> int:
    """Pin a stored trajectory's failure."""
    request: dict[str, Any] = {"trajectory_id": arguments.trajectory}
    if arguments.turn is not None:
        request["turn_id"] = arguments.turn
    request |= {name: getattr(arguments, name) for name in ("contains", "excludes")}
    done = ask(arguments.data, "POST", "/v1/pins", request)
    if arguments.json:
        print(json.dumps(done))
        return 0
    known = "" if done["new"] else " It was pinned before."
    print(
        f"{done['task_id']} is a task of the suite `regression`, which has {done['pinned']}.{known}"
    )
    return 0
