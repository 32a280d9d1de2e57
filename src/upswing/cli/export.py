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
    from upswing.adapters.sql.store import SqlStore
    from upswing.ports import StoredTrajectory
    from upswing.train.export import Layout

_MOST = 1_000_000
"""Trajectories of one export for training."""


def export(arguments: argparse.Namespace) -> int:
    """Write what is stored to standard output."""
    from upswing.adapters.sql.store import read_only
    from upswing.config import read_surroundings

    async def run() -> None:
        store = read_only(arguments.data, read_surroundings(os.environ).database_url)
        try:
            if arguments.layout in {"contract", "table"}:
                await _stored(store, arguments)
            else:
                await _for_training(store, arguments)
            sys.stdout.buffer.flush()
        finally:
            store.close()

    asyncio.run(run())
    return 0


async def _stored(store: SqlStore, arguments: argparse.Namespace) -> None:
    from upswing.contracts.steps import row_of_trajectory

    def told(row: StoredTrajectory) -> bytes:
        tree = json.loads(row.admitted.body)
        if arguments.layout == "table":
            return json.dumps(row_of_trajectory(tree, created_at=row.stored)).encode()
        return row.admitted.body

    seq = arguments.after
    while rows := await store.trajectories_after(seq, 200):
        for body in store.database.aside.sound("export", "trajectories", rows, told):
            sys.stdout.buffer.write(body + b"\n")
        seq = rows[-1].seq


async def _for_training(store: SqlStore, arguments: argparse.Namespace) -> None:
    """What a training here would learn from: nobody who opted out, no evaluation, nothing held out."""
    import msgspec

    from upswing.adapters.sql.datasets import DataSets
    from upswing.config import defaults, read_settings, read_surroundings
    from upswing.runtime import now
    from upswing.train.data_service import Data
    from upswing.train.export import ALGORITHMS, lines
    from upswing.train.recipe import recipe_of
    from upswing.train.wish import Filling, filled

    if arguments.after:
        raise Misuse("--after is for the layouts contract and table: training data is chosen as a whole.")  # fmt: skip
    layout: Layout = arguments.layout
    settings = read_settings(arguments.data, os.environ)
    usual = defaults(settings, read_surroundings(os.environ))
    config = {
        "algorithm": ALGORITHMS[layout], "base_model": usual.base_model or "any",
        "dataset": {"source": "local", "sample_size": _MOST},
    }  # fmt: skip
    request = filled(msgspec.json.encode(config), Filling("export", now(), "export", usual, None))
    train = settings.train
    least = {"min_agents": train.min_agents, "min_attempts": train.min_attempts}
    recipe = recipe_of(request, {**least, **train.recipe})
    data = Data(DataSets(store.database))
    found = await data.gather(request, recipe, ancestors=(), drop=(), now=now())
    written = 0
    for line in lines(found.samples, layout, recipe):
        sys.stdout.buffer.write(msgspec.json.encode(line) + b"\n")
        written += 1
    held = sum(each.held_out for each in found.samples)
    left = "; ".join(f"{count} {reason}" for reason, count in found.snapshot.left_out.items())
    print(
        f"{written} lines of {len(found.samples) - held} trajectories; {held} are held out"
        + (f"; left out: {left}." if left else "."),
        file=sys.stderr,
    )
