"""Jobs and models: start, look, cancel; and the second guide's trigger and status."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, Protocol

import msgspec

from upswing.contracts import TrainingRequest, TrainingStatus, encode
from upswing.contracts.schema import schema
from upswing.contracts.typed import from_json
from upswing.dataset.groups import Learnable
from upswing.errors import Conflict, Misuse, Reason, Rejected
from upswing.http.app import JSON, Problem, Request, Response, Route, answer
from upswing.http.openapi import inline
from upswing.http.operations import OPERATOR, READER
from upswing.http.training_types import (
    JOB_ID,
    LIMIT,
    OVERVIEW,
    SPAN_SCHEMA,
    WISH,
    JobInfo,
    JobList,
    JobStarted,
    ModelList,
    Triggered,
    TriggerWish,
    health,
    info,
    span,
    start_schema,
)
from upswing.ports import Job, ModelRow
from upswing.train.data_service import Preview
from upswing.train.jobs import BECOMES
from upswing.train.plan import Plan
from upswing.train.plan_service import Planner
from upswing.train.recipe import Recipe
from upswing.train.service import Current, Desk
from upswing.train.wish import MAX_BYTES
from upswing.trigger.decide import Train
from upswing.trigger.inputs import Manual
from upswing.trigger.ready import Minimums, Readiness, readiness
from upswing.trigger.service import Trigger

_PROVED = frozenset({"passed", "canary", "deployed", "retired"})
"""States of models whose validation passed, and that were not taken back since."""


class JobStore(Protocol):
    async def list(
        self, status: str | None = None, since: datetime | None = None, limit: int = 100
    ) -> list[Job]: ...

    async def active(self) -> tuple[Job, ...]: ...


class ModelStore(Protocol):
    async def list(
        self, deployed_since: datetime | None = None, limit: int = 1000
    ) -> list[ModelRow]: ...

    async def serving(self) -> ModelRow | None: ...


class Counts(Protocol):
    async def learnable(
        self, base: str | None = None, *, min_agents: int, min_attempts: int, self_reported: bool = False,
    ) -> Learnable: ...  # fmt: skip

    async def collected_since(self, since: datetime) -> int: ...


class Training:
    """The handlers."""

    def __init__(
        self,
        desk: Desk,
        trigger: Trigger,
        jobs: JobStore,
        models: ModelStore,
        counts: Counts,
        planner: Planner,
        *,
        clock: Callable[[], datetime],
    ) -> None:
        self._desk = desk
        self._trigger = trigger
        self._jobs = jobs
        self._models = models
        self._counts = counts
        self._planner = planner
        self._clock = clock

    def routes(self) -> list[Route]:
        job: dict[str, dict[str, Any]] = {"job_id": JOB_ID}
        gone = {404: ("There is no such job.", Problem)}
        bad = {400: ("Not JSON.", Problem), 422: ("Not what it should be.", Problem)}
        odd = {422: ("A parameter is wrong.", Problem)}
        over = {409: ("The id is known with another request, there is not enough to train on, or a model is on its way.", Problem)}  # fmt: skip
        ready: dict[str, dict[str, Any]] = {"only_if_ready": {"enum": ["true", "false"]}}
        which: dict[str, dict[str, Any]] = {
            "status": {"enum": list(BECOMES)}, "limit": LIMIT, "since": SPAN_SCHEMA,
        }  # fmt: skip
        return [
            Route("POST", "/training/start", "Train: a request, or only its config, or some of it.", self.start, OPERATOR,
                  takes={JSON: start_schema()}, query=ready, answers={202: ("Durable.", JobStarted), **over, **bad}, max_body=MAX_BYTES),
            Route("POST", "/training/plan", "What would be trained on and how, without training.", self.plan, READER,
                  takes={JSON: start_schema()}, answers={200: ("That.", Plan), **over, **bad}, max_body=MAX_BYTES),
            Route("GET", "/training/{job_id}/status", "The newest status of a job.", self.status, READER, params=job,
                  answers={200: ("training.status.v1.", inline(schema(TrainingStatus))), **gone}),
            Route("POST", "/training/{job_id}/cancel", "End a job.", self.cancel, OPERATOR, params=job,
                  answers={200: ("It ends, or has ended.", JobInfo), 409: ("It is over.", Problem), **gone}),
            Route("GET", "/jobs", "Jobs, the newest first.", self.jobs, READER, query=which,
                  answers={200: ("They.", JobList), **odd}),
            Route("GET", "/models", "Models that training made, the newest first.", self.models, READER,
                  query={"deployed_since": SPAN_SCHEMA}, answers={200: ("They.", ModelList), **odd}),
            Route("POST", "/api/admin/training/trigger", "Train when there is enough, or with `force` anyway.",
                  self.trigger, OPERATOR, takes={JSON: WISH},
                  answers={200: ("What came of it; not being ready is an answer, no error.", Triggered), **bad}),
            Route("GET", "/api/admin/training/status", "How the loop stands, and whether it is ready to train.",
                  self.overview, READER, answers={200: ("That.", OVERVIEW)}),
        ]  # fmt: skip

    async def start(self, request: Request) -> Response:
        only = request.query.get("only_if_ready", "false")
        if only not in {"true", "false"}:
            raise Rejected(Reason.SCHEMA, "`only_if_ready` is true or false.")
        placed = await self._desk.by_http(
            request.body, _requester(request), missing=self._missing if only == "true" else None,
            current=self._current,
        )  # fmt: skip
        told = JobStarted(placed.taken.value, placed.job_id, placed.status, placed.sentence)
        return answer(202, told)

    async def plan(self, request: Request) -> Response:
        """Not having anything to train on is a conflict with what there is."""
        asked, recipe = await self._desk.asked(request.body, _requester(request), self._current)
        found = await self._look(asked, recipe)
        state = self._state(found.there, recipe)
        if found.snapshot is None:
            raise Conflict(f"Not ready to train: {_both(state, found.nothing)}")
        plan = await self._planner.plan(asked, recipe, found.snapshot)
        verdict = f"{state.reason} {found.there.tasks.sentence}".strip()
        return answer(200, msgspec.structs.replace(plan, ready=state.ready, verdict=verdict))

    async def status(self, request: Request) -> Response:
        return Response(200, encode(await self._desk.status(request.params["job_id"])))

    async def cancel(self, request: Request) -> Response:
        return answer(200, info(await self._desk.cancel(request.params["job_id"])))

    async def jobs(self, request: Request) -> Response:
        state = request.query.get("status") or None
        if state is not None and state not in BECOMES:
            raise Rejected(Reason.SCHEMA, f"`status` is one of {', '.join(BECOMES)}.")
        limit = _number(request, "limit", 100)
        found = await self._jobs.list(state, self._since(request, "since"), limit)
        return answer(200, JobList([info(job) for job in found]))

    async def models(self, request: Request) -> Response:
        found = await self._models.list(self._since(request, "deployed_since"))
        return answer(200, ModelList(found))

    async def trigger(self, request: Request) -> Response:
        try:
            wish = from_json(request.body or b"{}", TriggerWish)
        except msgspec.ValidationError as error:
            raise Rejected(Reason.SCHEMA, f"{error}.") from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Rejected(Reason.MALFORMED, f"{error}.") from None
        if wish.batch_size is not None and wish.batch_size < 1:
            raise Rejected(Reason.SCHEMA, "`batchSize` is a number from 1 on.")
        asked = await self._trigger.ask(Manual(_requester(request), wish.force, wish.batch_size))
        done = isinstance(asked.choice, Train)
        return answer(200, Triggered(done, asked.job_id, asked.choice.sentence, asked.decision_id))

    async def ready(self) -> tuple[bool, str]:
        """Whether the loop is ready to train, and why or why not."""
        rules = self._trigger.policy.rules
        state = readiness(await self._trigger.learnable(), rules.minimums, rules.algorithm)
        return state.ready, state.reason

    async def overview(self, _: Request) -> Response:
        """The second guide's status."""
        minimums = self._trigger.policy.rules.minimums
        day = await self._counts.collected_since(self._clock() - timedelta(hours=24))
        rules = self._trigger.policy.rules
        there = await self._trigger.learnable()
        state = readiness(there, minimums, rules.algorithm)
        models, active = await self._models.list(), await self._jobs.active()
        done = await self._jobs.list("completed", limit=1)
        now = next((job for job in active if job.state == "running"), active[0] if active else None)
        tree = {
            "status": health(await self._jobs.list(limit=100)),
            "automation": {
                "dataCollection": {"last24h": day, "ratePerHour": round(day / 24, 2)},
                "training": {
                    "currentJob": now.job_id if now else None,
                    "lastCompleted": done[0].ended if done else None,
                },
                "models": {
                    "latest": next((row.model_id for row in models if _proved(row)), None),
                    "deployed": sum(model.deployed is not None for model in models),
                },
            },
            "readiness": {
                "ready": state.ready,
                "reason": state.reason,
                "stats": {
                    "totalTrajectories": there.trajectories,
                    "scenarioGroups": there.groups,
                    "usableGroups": there.usable,
                    "flatGroups": there.flat,
                    "identicalGroups": there.identical,
                    "statedOutcomes": there.told,
                    "singleAttempts": there.singles,
                    "newSuccesses": there.imitable,
                    "tasks": asdict(there.tasks),
                },
                "algorithm": state.algorithm,
                "why": state.why,
                "notes": [
                    each
                    for each in (there.tasks.sentence, await self._trigger.on_its_way())
                    if each
                ],
            },
        }
        return answer(200, tree)

    async def _missing(self, request: TrainingRequest, recipe: Recipe) -> str | None:
        """What this way to train needs and there is not, or what is on its way before it."""
        found = await self._look(request, recipe)
        state = self._state(found.there, recipe)
        if state.ready and not found.nothing:
            return await self._trigger.on_its_way()
        return _both(state, found.nothing)

    async def _look(self, request: TrainingRequest, recipe: Recipe) -> Preview:
        """What a job would find; a source or a start that is not there is the request's fault."""
        try:
            return await self._planner.look(request, recipe)
        except Misuse as error:
            raise Rejected(Reason.SCHEMA, str(error)) from None

    def _state(self, there: Learnable, recipe: Recipe) -> Readiness:
        """Whether that is enough for a job of this recipe, by the rule that the trigger has."""
        rules = self._trigger.policy.rules
        usual = rules.minimums
        least = Minimums(usual.trajectories, usual.groups, recipe.min_agents, recipe.min_attempts)
        state = readiness(there, least, rules.algorithm)
        if state.algorithm == recipe.algorithm or (
            state.algorithm is None and recipe.algorithm == self._trigger.policy.defaults.algorithm
        ):
            return state
        return readiness(there, least, rules.algorithm, asked=recipe.algorithm)

    async def _current(self) -> Current:
        """What a request means that names neither an algorithm nor what to start from."""
        rules = self._trigger.policy.rules
        fits = rules.algorithm
        if fits is None:
            fits = readiness(await self._learnable(rules.minimums), rules.minimums).algorithm
        serving = await self._models.serving()
        return Current(fits, serving.job_id if serving is not None else None)

    async def _learnable(self, minimums: Minimums) -> Learnable:
        policy = self._trigger.policy
        return await self._counts.learnable(
            policy.rules.base_model, min_agents=minimums.agents, min_attempts=minimums.attempts,
            self_reported=policy.self_reported,
        )  # fmt: skip

    def _since(self, request: Request, name: str) -> datetime | None:
        text = request.query.get(name)
        return self._clock() - span(text, name) if text else None


def _both(state: Readiness, nothing: str) -> str:
    """What is missing, and what became of what there is."""
    return " ".join([*([] if state.ready else [state.reason]), *([nothing] if nothing else [])])


def _requester(request: Request) -> str:
    return f"key {request.principal.key_id}" if request.principal else "unknown"


def _number(request: Request, name: str, usual: int) -> int:
    text = request.query.get(name, str(usual))
    if not text.isascii() or not text.isdecimal() or len(text) > 4 or not 1 <= int(text) <= 1000:
        raise Rejected(Reason.SCHEMA, f"`{name}` is a number from 1 to 1000.")
    return int(text)


def _proved(row: ModelRow) -> bool:
    """Training made it, and validation passed it; what somebody registered was trained elsewhere."""
    return row.state in _PROVED and not row.job_id.startswith("registered-")
