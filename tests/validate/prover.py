"""A validation desk on a store in a folder, as the loop wires it."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from upswing.adapters.objects import Objects
from upswing.adapters.sql.decisions import Decisions
from upswing.adapters.sql.validations import Validations
from upswing.config import ValidateConfig
from upswing.proving import Proving, pace_of
from upswing.redact import Redactor

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
REDACTOR = Redactor()
SMALL = ValidateConfig(suites=("data_analysis", "safety_toxicity"))


async def no_wait(_):
    await asyncio.sleep(0)


class Prover:
    """`proving`, and what it wrote."""

    def __init__(self, folder, store, find, config=SMALL, **more):
        self.folder, self.store = folder, store
        self.rows, self.journal = Validations(store.database), Decisions(store.database)
        pace = more.pop("pace", None) or pace_of(config)
        options = {
            "clock": self.clock, "wall": lambda: self.wall, "new_id": uuid4,
            "sleep": no_wait, "pace": pace,
        }  # fmt: skip
        objects = more.pop("objects", None) or Objects(str(folder / "models"))
        self.now = self.wall = NOON
        self.proving = Proving(
            folder / "validation", config, self.rows, objects, find, REDACTOR, **options | more
        )

    def clock(self):
        self.now += timedelta(milliseconds=1)
        return self.now

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.proving.close()

    def cells(self):
        """Files with cells."""
        return list((self.folder / "validation" / "runs").glob("*"))
