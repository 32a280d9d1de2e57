"""How did it go, and what did it cost? `upswing report daily|weekly|job ID`, `upswing costs`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from upswing.cli.arguments import parse_since
from upswing.cli.client import ask, call
from upswing.cli.training import is_remote_loop, printable, read_store
from upswing.errors import Misuse
from upswing.infra.cli_options import IntegerOption

if TYPE_CHECKING:
    from upswing.infra.sql.database import Database
    from upswing.monitor.core.costs import CostTable
    from upswing.monitor.report_builder import ReportBuilder
    from upswing.monitor.report_repository import ReportRow

_NONE_KEPT = "upswing: none is kept yet; this one is of now."


def commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """The options of these commands."""
    about = "Show the newest report of a day, a week or a training job."
    report = command("report", "reports:report", about)
    report.add_argument(
        "kind",
        choices=("daily", "weekly", "job", "list"),
        help="which report, or a list of all",
    )
    report.add_argument("id", nargs="?", help="the training job, or the name of a kept report")
    report.add_argument(
        "--now", action="store_true", help="the day or the week until now; it is not kept"
    )
    report.add_argument(
        "--html", type=_page_path, metavar="FILE", help="write it as a page instead"
    )
    report.add_argument("--limit", type=IntegerOption(1, 200), default=50, help="of the list")
    costs = command("costs", "reports:costs", "Show what each model version has cost.")
    costs.add_argument(
        "--since", type=parse_since, metavar="TIME", help="from 7d or yesterday on, say"
    )


def _page_path(text: str) -> Path:
    path = Path(text).expanduser()
    if path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(
            f"{text} is no file that could be written: check its folder"
        )
    return path


def report(arguments: argparse.Namespace) -> int:
    """Print a report; from the store, whether the loop runs or not."""
    if arguments.kind == "list":
        return _list(arguments)
    if arguments.kind == "job" and not arguments.id:
        raise Misuse("Say which: `upswing report job ID`; `upswing jobs` lists them.")
    view, page = _remote_report(arguments) if is_remote_loop() else _stored_report(arguments)
    if arguments.html:
        arguments.html.write_bytes(page())
        print(f"{printable(view['title'])}: {arguments.html}")
    elif arguments.json:
        print(json.dumps(view, indent=2))
    else:
        print(view["text"], end="")
    return 0


Report = tuple[dict[str, Any], Callable[[], bytes]]
"""What is shown, and how it becomes a page."""


def _stored_report(arguments: argparse.Namespace) -> Report:
    import msgspec

    from upswing.api.reports import report_view
    from upswing.monitor.report_builder import html_of_report

    row = read_store(arguments.data, lambda database: _find(database, arguments))
    return msgspec.to_builtins(report_view(row)), lambda: html_of_report(row).encode()


def _remote_report(arguments: argparse.Namespace) -> Report:
    data, kind = arguments.data, arguments.kind
    name = f"job-{arguments.id}" if kind == "job" else arguments.id
    if not name and not arguments.now:
        found = ask(data, "GET", f"/v1/reports?kind={kind}&limit=1")["reports"]
        name = found[0]["report_id"] if found else None
        if not found:
            print(_NONE_KEPT, file=sys.stderr)
    if name and not arguments.now:
        path = f"/v1/reports/{quote(name, safe='')}"
        return ask(data, "GET", path), lambda: call(data, "GET", f"{path}/html")
    view = ask(data, "GET", f"/v1/report-previews/{kind}")

    def page() -> bytes:
        raise Misuse(
            "A preview of another loop has no page: leave out --html, or take a kept report."
        )

    return view, page


async def _find(database: Database, arguments: argparse.Namespace) -> ReportRow:
    """The kept report that is meant; where there is none, one that is made now."""
    from upswing.infra.sql.store import existing_tables
    from upswing.monitor.report_repository import ReportRepository

    reports, kind = ReportRepository(database), arguments.kind
    if "reports" not in await database.read(existing_tables):
        raise Misuse("An older version left this store: start the loop once, then ask again.")
    if arguments.id and kind != "job":
        kept = await reports.get(arguments.id)
        if kept is None or kept.kind != kind:
            raise Misuse(
                f"There is no {kind} report {arguments.id}; `upswing report list` shows them."
            )
        return kept
    if not arguments.now:
        job_id = arguments.id if kind == "job" else None
        found = await reports.list(kind=kind, job_id=job_id, limit=1)
        if found:
            return found[0]
    made = await _make(_builder(database, arguments.data), arguments)
    if not arguments.now:
        print(_NONE_KEPT, file=sys.stderr)
    return made


async def _make(builder: ReportBuilder, arguments: argparse.Namespace) -> ReportRow:
    from upswing.monitor.core.report_figures import JobFigures
    from upswing.monitor.core.report_periods import day_until, week_until
    from upswing.monitor.reporter import job_row

    now = datetime.now(UTC)  # noqa: TID251 - a person's "until now" means their now
    if arguments.kind == "job":
        built = await builder.job(arguments.id)
        if built is None or not isinstance(built.figures, JobFigures):
            raise Misuse(
                f"There is no job {arguments.id} that has ended; `upswing jobs` lists them."
            )
        return job_row(built, built.figures, now)
    period = day_until(now) if arguments.kind == "daily" else week_until(now)
    built = await builder.period(period)
    return built.row(f"preview-{period.kind}", period.kind, (period.start, period.end), now)


def _builder(database: Database, folder: Path) -> ReportBuilder:
    from upswing.config import defaults, read_settings, read_surroundings
    from upswing.monitor.report_builder import ReportBuilder
    from upswing.monitor.wiring import price_list

    settings = read_settings(folder, os.environ)
    base = defaults(settings, read_surroundings(os.environ)).base_model
    return ReportBuilder(database, price_list(settings), base)


def _list(arguments: argparse.Namespace) -> int:
    found = _remote_list(arguments) if is_remote_loop() else _stored_list(arguments)
    if arguments.json:
        print(json.dumps(found, indent=2))
        return 0
    for each in found:
        made = each["made"][:16].replace("T", " ")
        print(f"{each['report_id']:<44} {made}  {printable(each['title'])}")
    if not found:
        print(
            "No reports yet: the daily one is made at 08:00 UTC, unless `[reports]` says otherwise."
        )
    return 0


def _remote_list(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    path = f"/v1/reports?limit={arguments.limit}"
    found: list[dict[str, Any]] = ask(arguments.data, "GET", path)["reports"]
    return found


def _stored_list(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    import msgspec

    from upswing.api.reports import report_item
    from upswing.infra.sql.store import existing_tables
    from upswing.monitor.report_repository import ReportRepository

    async def read(database: Database) -> list[ReportRow]:
        if "reports" not in await database.read(existing_tables):
            return []  # a store that an older version left
        return await ReportRepository(database).list(limit=arguments.limit)

    return [msgspec.to_builtins(report_item(each)) for each in read_store(arguments.data, read)]


def costs(arguments: argparse.Namespace) -> int:
    """What each model version has cost, from the store."""
    table = _remote_costs(arguments) if is_remote_loop() else _stored_costs(arguments)
    if arguments.json:
        print(json.dumps(table, indent=2))
        return 0
    for each in table["models"]:
        parts = ("training", "judge", "serving")
        told = ", ".join(f"{part} ${each[f'{part}_usd']:,.2f}" for part in parts)
        print(f"{printable(each['model_id']):<28} ${each['total_usd']:>10,.2f}  ({told})")
    if any(table["without_model"].values()):
        print(f"{'no model':<28} ${sum(table['without_model'].values()):>10,.2f}")
    print(f"{'all':<28} ${table['total_usd']:>10,.2f}")
    return 0


def _remote_costs(arguments: argparse.Namespace) -> dict[str, Any]:
    query = {"since": arguments.since.isoformat()} if arguments.since else {}
    found: dict[str, Any] = ask(arguments.data, "GET", f"/v1/costs?{urlencode(query)}")
    return found


def _stored_costs(arguments: argparse.Namespace) -> dict[str, Any]:
    import msgspec

    from upswing.config import read_settings
    from upswing.infra.sql.store import existing_tables
    from upswing.monitor.core.costs import CostTable
    from upswing.monitor.usage import CostReader
    from upswing.monitor.wiring import price_list

    prices = price_list(read_settings(arguments.data, os.environ))

    async def read(database: Database) -> CostTable:
        if "model_usage" not in await database.read(existing_tables):
            return CostTable()  # a store that an older version left
        return await CostReader(database, prices).table(arguments.since)

    found: dict[str, Any] = msgspec.to_builtins(read_store(arguments.data, read))
    return found
