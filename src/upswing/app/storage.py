"""Is the store sound, what time is it there, who may ask, and where does a bad row go? What comes before all else.

secrets.json ─▶ open ─▶ inspect (a damaged store is not written to) ─▶ migrate ─▶ its time ─▶ users, keys
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from upswing.app.context import Installation
from upswing.app.own_keys import prepare_own_keys, refuse_weak_key
from upswing.collect.core.evaluate import refusal
from upswing.infra.dead_letters import BadRowMetrics, DeadLetterWriter
from upswing.infra.instance import read_known_secrets, read_secrets
from upswing.infra.sql.database import Database
from upswing.infra.sql.decisions import Decisions
from upswing.infra.sql.inspection import Inspection
from upswing.infra.sql.keys import Keys
from upswing.infra.sql.revoked import Revoked
from upswing.infra.sql.store import SqlStore, open_store
from upswing.infra.sql.users import Users
from upswing.redact import Redactor

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoopStorage:
    """The store of a loop, sound and ready."""

    store: SqlStore
    inspection: Inspection | None
    """Of what was too large to be looked through now; None where the database inspects itself."""
    clock: Callable[[], datetime]
    """The store's time, which never goes back."""
    users: Users
    keys: Keys
    secrets: dict[str, str]
    """`secrets.json`."""


async def open_storage(
    exits: contextlib.AsyncExitStack,
    installation: Installation,
    host: str,
    *,
    clock: Callable[[], datetime],
    new_id: Callable[[], UUID],
) -> LoopStorage:
    """`Misuse` about a key too weak for `host`, `Damaged` about a store that is; `exits` closes it."""
    folder, given = installation.folder, installation.surroundings.api_key
    known = read_known_secrets(folder)
    if given:
        refuse_weak_key(host, given)
    store = open_store(folder, installation.surroundings.database_url)
    exits.callback(store.close)
    secrets = read_secrets(folder, dict(known))
    refuse_weak_key(host, given or secrets["key"])
    inspection = Inspection(folder, store.database) if store.folder is not None else None
    if inspection:
        await inspection.begin()
    await store.prepare()
    clock = await continue_store_time(store.database, clock)
    users, keys = Users(store.database), Keys(store.database, Revoked(folder))
    await users.load()
    secrets = await prepare_own_keys(
        keys, folder, secrets, given=given, lost=not known, new_id=new_id, at=clock()
    )
    return LoopStorage(store, inspection, clock, users, keys, secrets)


async def continue_store_time(
    database: Database, clock: Callable[[], datetime]
) -> Callable[[], datetime]:
    """The clock, or one that goes on from the newest decision: a clock that ran ahead may have kept the store."""
    newest = await Decisions(database).latest_time()
    ahead = newest - clock() if newest else timedelta()
    if ahead <= timedelta():
        return clock
    if ahead > timedelta(minutes=1):
        log.warning(
            "the store's time lies %s ahead of the clock: it goes on from there",
            timedelta(seconds=round(ahead.total_seconds())),
            extra={"action": "time_ahead"},
        )
    return lambda: clock() + ahead


def make_dead_letters(
    store: SqlStore,
    redactor: Redactor,
    metrics: BadRowMetrics,
    *,
    clock: Callable[[], datetime],
    on_change: Callable[[], None],
) -> DeadLetterWriter:
    """What any part cannot read becomes a dead letter, a count and a message in the log."""
    bad_rows = store.database.bad_rows
    bad_rows.on_bad_row = metrics.count_row
    return DeadLetterWriter(
        bad_rows,
        store,
        lambda raw, error: refusal(raw, error, redactor),
        clock=clock,
        on_change=on_change,
    )
