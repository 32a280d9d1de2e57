"""Why did a model fail, and what would another policy have decided? Read from what is stored; nothing is changed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from upswing.api.openapi import inline_refs
from upswing.api.router import JSON, Problem, Request, Response, Route, answer
from upswing.api.scopes import READER
from upswing.api.training_types import parse_span
from upswing.contracts.analysis import FailureAnalysis
from upswing.contracts.backtest import BacktestReport
from upswing.contracts.field_errors import schema_error_sentence
from upswing.contracts.typed import from_json
from upswing.errors import Misuse, Reason, Rejected, Transient
from upswing.monitor.failure_analyst import FailureAnalyst
from upswing.validate.repository import Validations

_MODEL: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[^/]+$"}
_MOST_BYTES = 64 * 1024

_EARLIEST = datetime.min.replace(tzinfo=UTC)
RunBacktest = Callable[[Mapping[str, Any] | str, datetime, datetime], Awaitable[BacktestReport]]
"""A policy as TOML or as a tree, and the time that is replayed."""


class AnalysisView(Struct, frozen=True):
    """What a model's failures have in common."""

    model_id: str
    analyses: list[FailureAnalysis]
    """Made by themselves after a rollback or a failed validation, the newest first."""
    fresh: FailureAnalysis | None
    """Made now, with `fresh=true`; null where it was not asked for, or the model has had no rollout."""


class BacktestRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A changed policy, and how far back it is tried."""

    policy: dict[str, Any] | Annotated[str, Meta(max_length=_MOST_BYTES)]
    """Tables as in `upswing.toml`, or its text: only the knobs that it names are changed."""
    since: Annotated[str, Meta(max_length=40)] = "30d"
    """A span back from now (`36h`, `30d`, `8w`), or a time such as 2026-01-15T08:00:00Z."""


class AnalysisRoutes:
    """The handlers. Both read much, so each does one request at a time."""

    def __init__(
        self,
        analyst: FailureAnalyst,
        validations: Validations,
        backtest: RunBacktest,
        *,
        clock: Callable[[], datetime],
    ) -> None:
        self._analyst, self._validations, self._backtest = analyst, validations, backtest
        self._clock = clock
        self._analysing, self._backtesting = asyncio.Lock(), asyncio.Lock()

    def routes(self) -> Sequence[Route]:
        busy = {503: ("Another one is being made: ask again soon.", Problem)}
        return [
            Route(
                "GET",
                "/v1/analysis/{model_id}",
                "What a model's failures have in common that its successes have not.",
                self.analysis,
                READER,
                params={"model_id": _MODEL},
                query={"fresh": {"type": "boolean"}},
                answers={
                    200: ("That.", AnalysisView),
                    404: ("Nothing of such a model can be compared.", Problem),
                    422: ("Not what it should be.", Problem),
                    **busy,
                },
            ),
            Route(
                "POST",
                "/v1/backtest",
                "Replay the journal under a changed policy; nothing is changed by it.",
                self.backtest,
                READER,
                takes={JSON: inline_refs(msgspec.json.schema(BacktestRequest))},
                answers={
                    200: (
                        "What would have differed, when, and what it would have cost.",
                        BacktestReport,
                    ),
                    400: ("Not JSON.", Problem),
                    422: ("No policy, or no time.", Problem),
                    **busy,
                },
                max_body=_MOST_BYTES,
            ),
        ]

    async def analysis(self, request: Request) -> Response:
        model_id = request.params["model_id"]
        wanted = request.query.get("fresh", "false")
        if wanted not in {"true", "false"} or request.query.keys() - {"fresh"}:
            raise Rejected(Reason.SCHEMA, "The one filter is `fresh`: true or false.")
        kept = await self._kept(model_id)
        asked = wanted == "true" or not kept
        fresh = await self._fresh(model_id, known=bool(kept)) if asked else None
        return answer(200, AnalysisView(model_id, kept, fresh))

    async def _kept(self, model_id: str) -> list[FailureAnalysis]:
        found = await self._analyst.stored(model_id)
        row = await self._validations.of_candidate(model_id)
        if row is not None and row.report is not None and row.report.analysis is not None:
            found.append(row.report.analysis)
        return sorted(found, key=lambda each: each.made or _EARLIEST, reverse=True)

    async def _fresh(self, model_id: str, *, known: bool) -> FailureAnalysis | None:
        _require_free(self._analysing)
        async with self._analysing:
            try:
                return await self._analyst.analyse(model_id)
            except Misuse:
                if known:
                    return None
                raise

    async def backtest(self, request: Request) -> Response:
        try:
            asked = from_json(request.body, BacktestRequest)
        except msgspec.ValidationError as error:
            raise Rejected(Reason.SCHEMA, schema_error_sentence(error, BacktestRequest)) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise Rejected(Reason.MALFORMED, "The body is not JSON.") from None
        now = self._clock()
        since = _parse_time(asked.since, now)
        _require_free(self._backtesting)
        async with self._backtesting:
            try:
                return answer(200, await self._backtest(asked.policy, since, now))
            except Misuse as error:  # the policy is wrong, not the path
                raise Rejected(Reason.SCHEMA, str(error)) from None


def _require_free(lock: asyncio.Lock) -> None:
    if lock.locked():
        raise Transient("Another one is being made; ask again in a few seconds.")


def _parse_time(text: str, now: datetime) -> datetime:
    """A span back from now, or a time.

    >>> from datetime import UTC
    >>> now = datetime(2026, 3, 4, tzinfo=UTC)
    >>> str(_parse_time("7d", now)), str(_parse_time("2026-01-15T08:00:00Z", now))
    ('2026-02-25 00:00:00+00:00', '2026-01-15 08:00:00+00:00')
    """
    if "T" in text.upper():
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            found = now
        if found.tzinfo is None or not found < now:
            raise Rejected(
                Reason.SCHEMA,
                "`since` is a span such as 36h or 30d, or a time that is over, such as 2026-01-15T08:00:00Z.",
            )
        return found
    return now - parse_span(text)
