"""A store in memory, and what becomes of a row that cannot be read."""

from datetime import UTC, datetime

import pytest

from upswing.adapters.sql.store import in_memory
from upswing.aside import Burial
from upswing.collect.look import refusal
from upswing.redact import Redactor

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
REDACTOR = Redactor()


@pytest.fixture
async def store():
    made = in_memory()
    await made.prepare()
    yield made
    made.close()


@pytest.fixture
def burial(store):
    return Burial(
        store.database.aside, store, lambda body, error: refusal(body, error, REDACTOR),
        clock=lambda: NOW,
    )  # fmt: skip
