"""A validation runner on a store in a folder, as the loop wires it."""

import asyncio
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from upswing.config import ValidateConfig
from upswing.infra.sql.decisions import Decisions
from upswing.redact import Redactor
from upswing.train.checkpoints.storage import CheckpointStore
from upswing.validate.repository import Validations
from upswing.validate.runner import (
    ModelAccess,
    RunClocks,
    TaskSources,
    ValidationRunner,
    ValidationStorage,
    run_pace,
)

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
REDACTOR = Redactor()
SMALL = ValidateConfig(suites=("data_analysis", "safety_toxicity"))


async def no_wait(_):
    await asyncio.sleep(0)


def _taken(more, kind):
    """The fields of a value object, taken out of the keyword arguments."""
    return {each.name: more.pop(each.name) for each in fields(kind) if each.name in more}


class Prover:
    """`proving`, and what it wrote."""

    def __init__(self, folder, store, find, config=SMALL, **more):
        self.folder, self.store = folder, store
        self.rows, self.journal = Validations(store.database), Decisions(store.database)
        pace = more.pop("pace", None) or run_pace(config)
        self.now = self.wall = NOON
        storage = ValidationStorage(
            folder=folder / "validation",
            rows=self.rows,
            attach_files=more.pop("attach_files", None)
            or CheckpointStore(str(folder / "models")).attach,
            redactor=REDACTOR,
            metrics=more.pop("metrics", None),
        )
        clocks = RunClocks(
            clock=more.pop("clock", self.clock),
            wall=more.pop("wall", lambda: self.wall),
            new_id=more.pop("new_id", uuid4),
            sleep=more.pop("sleep", no_wait),
            lease_poll_seconds=0.02,
        )
        models = ModelAccess(find=find, **_taken(more, ModelAccess))
        tasks = TaskSources(**_taken(more, TaskSources))
        self.runner = ValidationRunner(
            config, storage, models, clocks, tasks=tasks, pace=pace, **more
        )

    def clock(self):
        self.now += timedelta(milliseconds=1)
        return self.now

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.runner.close()

    def sample_scores(self):
        """Files with sample scores."""
        return list((self.folder / "validation" / "runs").glob("*"))
