"""Is it alive, what does it reach, and how many of everything are there?"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from upswing import __version__
from upswing.api.router import Request, Response, Route, answer
from upswing.api.scopes import READER
from upswing.infra.sql.store import SqlStore


class Health(msgspec.Struct, frozen=True):
    """Is it alive, and what does it reach?"""

    status: str
    """`ok`, or `degraded` while the bus is away (the HTTP door goes on) or nothing can be stored."""
    version: str
    bus: bool
    trouble: str | None = None
    """Why nothing can be stored, or soon cannot: the disk is full, say."""


class HealthRoutes:
    """Health, metrics and counts."""

    def __init__(
        self,
        store: SqlStore,
        registry: CollectorRegistry,
        *,
        bus_connected: Callable[[], bool],
        trouble: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._store, self._registry = store, registry
        self._bus_connected, self._trouble = bus_connected, trouble

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET",
                "/health",
                "Is it alive?",
                self.health,
                frozenset(),
                answers={200: ("It is.", Health)},
            ),
            Route(
                "GET",
                "/metrics",
                "Prometheus metrics.",
                self.metrics,
                frozenset(),
                answers={200: ("The series.", CONTENT_TYPE_LATEST)},
            ),
            Route(
                "GET",
                "/v1/status",
                "How many of everything.",
                self.status,
                READER,
                answers={
                    200: (
                        "Counts.",
                        {"type": "object", "additionalProperties": {"type": "integer"}},
                    )
                },
            ),
        ]

    async def health(self, _: Request) -> Response:
        return answer(200, self.current())

    def current(self) -> Health:
        """How it is now."""
        bus, trouble = self._bus_connected(), self._trouble()
        status = "ok" if bus and trouble is None else "degraded"
        return Health(status, __version__, bus, trouble)

    async def metrics(self, _: Request) -> Response:
        return Response(200, generate_latest(self._registry), CONTENT_TYPE_LATEST)

    async def status(self, _: Request) -> Response:
        return answer(200, await self._store.counts())
