"""Why did a model fail, and what would another policy have decided? Read from the store, with or without a loop."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from upswing.cli.arguments import parse_since
from upswing.errors import Misuse
from upswing.infra.cli_options import IntegerOption

if TYPE_CHECKING:
    from upswing.app.backtest import BacktestPolicy
    from upswing.contracts.analysis import FailureAnalysis
    from upswing.contracts.backtest import BacktestReport
    from upswing.infra.sql.database import Database

_USUAL = timedelta(days=30)
_MOST_BYTES = 1024 * 1024


def commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """The options of these commands."""
    about = (
        "Say what a model's failures have in common that its successes have not, and what to do."
    )
    analyse = command("analyse", "analysis:analyse", about)
    analyse.add_argument("model", help="a model that was rolled out, or that failed its validation")
    about = "Replay the journal under a changed policy: what would have differed, and what it would have cost."
    backtest = command("backtest", "analysis:backtest", about)
    backtest.add_argument(
        "--policy",
        required=True,
        type=Path,
        metavar="FILE",
        help="tables as in upswing.toml; only the knobs that it names are changed",
    )
    backtest.add_argument(
        "--since", type=parse_since, metavar="TIME", help="how far back (default: 30d)"
    )
    backtest.add_argument(
        "--most",
        type=IntegerOption(1, 100_000),
        metavar="N",
        help="journal entries that are replayed, the newest (default: 20000)",
    )


def analyse(arguments: argparse.Namespace) -> int:
    """The analysis as of now; where a model was never rolled out, that of its validation."""
    import msgspec

    from upswing.cli.training import printable, read_store
    from upswing.monitor.core.analysis import analysis_lines

    found = read_store(arguments.data, lambda database: _analyse(database, arguments.model))
    if arguments.json:
        print(msgspec.json.format(msgspec.json.encode(found)).decode())
        return 0
    for line in analysis_lines(found):
        print("\n".join(map(printable, line.split("\n"))))
    return 0


async def _analyse(database: Database, model: str) -> FailureAnalysis:
    from uuid import uuid4

    from upswing.app.analysis import make_analyst
    from upswing.cli.training import time_ago
    from upswing.validate.repository import Validations

    try:
        return await make_analyst(database, lambda: time_ago(timedelta()), uuid4).analyse(model)
    except Misuse:
        row = await Validations(database).of_candidate(model)
        if row is None and not await _is_known(database, model):
            raise Misuse(
                f"No model {model} is known here; `upswing models` lists those that are."
            ) from None
        if row is None or row.report is None or row.report.analysis is None:
            raise
        return row.report.analysis


async def _is_known(database: Database, model: str) -> bool:
    """Whether it was registered, or anybody was answered by it."""
    from upswing.infra.sql.models import Models

    if await Models(database).get(model) is not None:
        return True
    sql = "SELECT 1 FROM scored WHERE model = ? LIMIT 1"
    return await database.read(lambda tx: tx.row(sql, (model,))) is not None


def backtest(arguments: argparse.Namespace) -> int:
    """The report, as text or JSON."""
    import msgspec

    from upswing.app.backtest import parse_policy
    from upswing.cli.training import printable, read_store, time_ago
    from upswing.monitor.core.backtest_text import backtest_lines

    change = parse_policy(_read_policy(arguments.policy), str(arguments.policy))
    since, now = arguments.since or time_ago(_USUAL), time_ago(timedelta())
    report = read_store(
        arguments.data, lambda database: _replay(database, change, (since, now), arguments.most)
    )
    if arguments.json:
        print(msgspec.json.format(msgspec.json.encode(report)).decode())
        return 0
    for line in backtest_lines(report):
        print("\n".join(map(printable, line.split("\n"))))
    return 0


async def _replay(
    database: Database, change: BacktestPolicy, span: tuple[datetime, datetime], most: int | None
) -> BacktestReport:
    from upswing.app.backtest import MOST_DECISIONS, replay_journal
    from upswing.infra.sql.decisions import Decisions

    journal, (since, now) = Decisions(database), span
    newest = await journal.latest_time()  # a store's time may lie ahead of the clock
    until = max(now, newest) if newest else now
    return await replay_journal(journal, change, since, until, most or MOST_DECISIONS)


def _read_policy(path: Path) -> str:
    if not path.is_file():
        raise Misuse(f"--policy: {path} is no file: name one with tables as in upswing.toml.")
    if path.stat().st_size > _MOST_BYTES:
        raise Misuse(
            f"--policy: {path} is larger than a policy: name one with tables as in upswing.toml."
        )
    try:
        return path.read_text()
    except UnicodeDecodeError:
        raise Misuse(
            f"--policy: {path} is no text: name one with tables as in upswing.toml."
        ) from None
