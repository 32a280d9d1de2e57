"""What is stored, as JSON lines: as it is, as a table, or as other trainers want it."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING

from upswing.errors import Misuse

if TYPE_CHECKING:
    from upswing.infra.sql.store import SqlStore
    from upswing.records import StoredTrajectory
    from upswing.train.learn.export import Layout

_MOST = 1_000_000
"""Trajectories of one export for training."""


def export(arguments: argparse.Namespace) -> int:
    """Write what is stored to standard output."""
    from upswing.config import read_surroundings
    from upswing.infra.sql.store import open_store_read_only

    async def run() -> None:
        store = open_store_read_only(arguments.data, read_surroundings(os.environ).database_url)
        try:
            if arguments.layout in {"contract", "table"}:
                await _export_stored(store, arguments)
            else:
                await _export_training(store, arguments)
            sys.stdout.buffer.flush()
        finally:
            store.close()

    asyncio.run(run())
    return 0


async def _export_stored(store: SqlStore, arguments: argparse.Namespace) -> None:
    from upswing.contracts.steps import row_from_trajectory

    def encode_row(row: StoredTrajectory) -> bytes:
        tree = json.loads(row.admitted.body)
        if arguments.layout == "table":
            return json.dumps(row_from_trajectory(tree, created_at=row.stored)).encode()
        return row.admitted.body

    seq = arguments.after
    while rows := await store.trajectories_after(seq, 200):
        for body in store.database.bad_rows.read_each("export", "trajectories", rows, encode_row):
            sys.stdout.buffer.write(body + b"\n")
        seq = rows[-1].seq


async def _export_training(store: SqlStore, arguments: argparse.Namespace) -> None:
    """What a training here would learn from: nobody who opted out, no evaluation, nothing held out."""
    import msgspec

    from upswing.app.loop import now
    from upswing.config import defaults, read_settings, read_surroundings
    from upswing.infra.sql.datasets import DataSets
    from upswing.train.core.recipe import build_recipe
    from upswing.train.core.request import RequestDefaults, complete_request
    from upswing.train.jobs.data import TrainingData
    from upswing.train.learn.export import ALGORITHMS, export_lines

    if arguments.after:
        raise Misuse(
            "--after is for the layouts contract and table: training data is chosen as a whole."
        )
    layout: Layout = arguments.layout
    settings = read_settings(arguments.data, os.environ)
    usual = defaults(settings, read_surroundings(os.environ))
    config = {
        "algorithm": ALGORITHMS[layout],
        "base_model": usual.base_model or "any",
        "dataset": {"source": "local", "sample_size": _MOST},
    }
    request = complete_request(
        msgspec.json.encode(config), RequestDefaults("export", now(), "export", usual, None)
    )
    train = settings.train
    least = {"min_agents": train.min_agents, "min_attempts": train.min_attempts}
    recipe = build_recipe(request, {**least, **train.recipe})
    data = TrainingData(DataSets(store.database))
    found = await data.gather(request, recipe, ancestor_jobs=(), excluded_ids=(), now=now())
    written = 0
    for line in export_lines(found.samples, layout, recipe):
        sys.stdout.buffer.write(msgspec.json.encode(line) + b"\n")
        written += 1
    held = sum(each.held_out for each in found.samples)
    left = "; ".join(f"{count} {reason}" for reason, count in found.snapshot.left_out.items())
    print(
        f"{written} lines of {len(found.samples) - held} trajectories; {held} are held out"
        + (f"; left out: {left}." if left else "."),
        file=sys.stderr,
    )
