"""A store in memory, and what becomes of a row that cannot be read."""

from datetime import UTC, datetime

import pytest

from upswing.collect.core.evaluate import refusal
from upswing.infra.dead_letters import DeadLetterWriter
from upswing.infra.sql.store import open_in_memory_store
from upswing.redact import Redactor

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
REDACTOR = Redactor()


@pytest.fixture
async def store():
    made = open_in_memory_store()
    await made.prepare()
    yield made
    made.close()


@pytest.fixture
def dead_letters(store):
    return DeadLetterWriter(
        store.database.bad_rows,
        store,
        lambda body, error: refusal(body, error, REDACTOR),
        clock=lambda: NOW,
    )
