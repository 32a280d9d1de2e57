"""Does the loop appear in the user's own tracing? Its spans, where the settings name an endpoint."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from prometheus_client import CollectorRegistry

from upswing.app.supervision import RunPart
from upswing.infra.tracing import SpanCollector, exporter_for
from upswing.train.tracing import job_span


class LoopTracing:
    """Exports spans of this process; without an endpoint it does nothing."""

    def __init__(
        self, endpoint: str | None, *, clock: Callable[[], datetime], new_id: Callable[[], UUID]
    ) -> None:
        self._exporter = exporter_for(endpoint, "upswing", os.environ)
        self._clock, self._new_id = clock, new_id

    def start(
        self, registry: CollectorRegistry, exits: contextlib.AsyncExitStack, run: RunPart
    ) -> None:
        if self._exporter is not None:
            registry.register(SpanCollector(self._exporter))
            exits.push_async_callback(self._exporter.flush)
            run("spans", self._exporter.run)

    def trace_job(self, state: str, seconds: float, samples: int) -> None:
        """A training job that has ended, as a span."""
        if self._exporter is not None:
            self._exporter.add(
                job_span(state, seconds, samples, ended=self._clock(), new_id=self._new_id)
            )
