"""The loop's port with the doors of validation alone: a real socket and a real store."""

import asyncio
import contextlib

from tests.support import Client, raw, trajectory
from tests.validate.endpoint import Endpoint
from tests.validate.prover import NOON, REDACTOR, SMALL, Prover
from upswing.api.auditing import Auditor
from upswing.api.comparison import load_comparison
from upswing.api.server import HttpServer
from upswing.api.validation import ValidationRoutes
from upswing.collect.core.admit import AdmissionLimits, admit
from upswing.infra.sql.audit import AuditTrail
from upswing.infra.sql.earnings import Earnings
from upswing.infra.sql.keys import Keys

KEY = "up_operator"


class ValidationPort:
    """`async with ValidationPort(folder, store) as desk: …`; `desk.ask` talks to it."""

    def __init__(self, folder, store, models=None, config=SMALL, current="old", **more):
        self.folder, self.store, self.current = folder, store, current
        self.models = models or Endpoint()
        self.config, self.more = config, more
        self._exits = contextlib.AsyncExitStack()

    async def __aenter__(self):
        await self._exits.enter_async_context(self.models)
        self.prover = Prover(self.folder, self.store, self.models.find, self.config, **self.more)
        await self._exits.enter_async_context(self.prover)
        keys = Keys(self.store.database)
        await keys.add("o", "operator", "operator", KEY, NOON)
        await keys.add("r", "reader", "reader", "up_reader", NOON)
        front = HttpServer(self._doors().routes(), keys, "127.0.0.1", 0)
        task = asyncio.create_task(front.run())
        self.url = front.url
        self._exits.push_async_callback(asyncio.wait, [task])
        self._exits.push_async_callback(front.close)
        self.ask = await self._exits.enter_async_context(Client(self.url, KEY))
        return self

    async def __aexit__(self, *_):
        await self._exits.aclose()

    def _doors(self):
        rows, earnings = self.prover.rows, Earnings(self.store.database)

        async def known(model):
            return model in self.models.known

        async def current():
            return self.current

        return ValidationRoutes(
            self.prover.runner,
            self.store,
            REDACTOR,
            Auditor(AuditTrail(self.store.database), lambda: NOON),
            compare=lambda a, b: load_comparison(a, b, earnings, rows),
            current=current,
            known=known,
        )

    async def store_one(self, **changes):
        """A stored trajectory's id."""
        row = admit(raw(trajectory(**changes)), REDACTOR, AdmissionLimits()).admitted
        await self.store.take(row, door="http", now=NOON, stream_seq=None, announce=False)
        return row.trajectory_id
