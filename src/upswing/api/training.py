"""Jobs and models: start, show, cancel; and the second guide's trigger and status."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

import msgspec

from upswing.api.auditing import Auditor, actor_of
from upswing.api.openapi import inline_refs
from upswing.api.router import JSON, Problem, Request, Response, Route, answer
from upswing.api.scopes import OPERATOR, READER, REQUESTER
from upswing.api.training_types import (
    FAILED_IN_A_ROW,
    JOB_ID,
    LIMIT,
    OVERVIEW,
    SPAN_SCHEMA,
    TRIGGER_SCHEMA,
    JobInfo,
    JobList,
    JobStarted,
    ModelList,
    Triggered,
    TriggerRequest,
    job_health,
    job_info,
    parse_span,
    start_schema,
)
from upswing.contracts import TrainingRequest, TrainingStatus, encode
from upswing.contracts.field_errors import schema_error_sentence
from upswing.contracts.schema import json_schema_of
from upswing.contracts.typed import from_json
from upswing.dataset.groups import Learnable
from upswing.errors import Conflict, Misuse, Reason, Rejected
from upswing.infra.sql.models import Models
from upswing.records import ModelRow
from upswing.train.core.job_states import TRANSITIONS
from upswing.train.core.plan import TrainingPlan
from upswing.train.core.recipe import Recipe
from upswing.train.core.request import MAX_BYTES
from upswing.train.jobs.data import DataPreview
from upswing.train.jobs.planning import TrainingPlanner
from upswing.train.jobs.repository import JobRepository
from upswing.train.jobs.submission import JobSubmission, RequestContext
from upswing.trigger.core.decide import TrainNow
from upswing.trigger.core.inputs import ManualRequest
from upswing.trigger.core.readiness import DataMinimums, TrainingReadiness, training_readiness
from upswing.trigger.signals import SignalReader
from upswing.trigger.trigger import Trigger

_VALIDATED_STATES = frozenset({"passed", "canary", "deployed", "retired"})
"""States of models whose validation passed, and that were not rolled back since."""


class TrainingRoutes:
    """The handlers."""

    def __init__(
        self,
        submission: JobSubmission,
        trigger: Trigger,
        jobs: JobRepository,
        models: Models,
        signals: SignalReader,
        planner: TrainingPlanner,
        auditor: Auditor,
        *,
        clock: Callable[[], datetime],
    ) -> None:
        self._submission = submission
        self._trigger = trigger
        self._jobs = jobs
        self._models = models
        self._signals = signals
        self._planner = planner
        self._auditor = auditor
        self._clock = clock

    def routes(self) -> list[Route]:
        job: dict[str, dict[str, Any]] = {"job_id": JOB_ID}
        gone = {404: ("There is no such job.", Problem)}
        bad = {400: ("Not JSON.", Problem), 422: ("Not what it should be.", Problem)}
        bad_query = {422: ("A parameter is wrong.", Problem)}
        over = {
            409: (
                "The id is known with another request, there is not enough to train on, or a model is being rolled out.",
                Problem,
            )
        }
        ready: dict[str, dict[str, Any]] = {"only_if_ready": {"enum": ["true", "false"]}}
        filters: dict[str, dict[str, Any]] = {
            "status": {"enum": list(TRANSITIONS)},
            "limit": LIMIT,
            "since": SPAN_SCHEMA,
        }
        return [
            Route(
                "POST",
                "/training/start",
                "Train: a request, or only its config, or some of it.",
                self.start,
                REQUESTER,
                takes={JSON: start_schema()},
                query=ready,
                answers={202: ("Durable.", JobStarted), **over, **bad},
                max_body=MAX_BYTES,
            ),
            Route(
                "POST",
                "/training/plan",
                "What would be trained on and how, without training.",
                self.plan,
                READER,
                takes={JSON: start_schema()},
                answers={200: ("That.", TrainingPlan), **over, **bad},
                max_body=MAX_BYTES,
            ),
            Route(
                "GET",
                "/training/{job_id}/status",
                "The newest status of a job.",
                self.status,
                READER,
                params=job,
                answers={
                    200: ("training.status.v1.", inline_refs(json_schema_of(TrainingStatus))),
                    **gone,
                },
            ),
            Route(
                "POST",
                "/training/{job_id}/cancel",
                "End a job.",
                self.cancel,
                OPERATOR,
                params=job,
                answers={
                    200: ("It ends, or has ended.", JobInfo),
                    409: ("It is over.", Problem),
                    **gone,
                },
            ),
            Route(
                "GET",
                "/jobs",
                "Jobs, the newest first.",
                self.jobs,
                READER,
                query=filters,
                answers={200: ("They.", JobList), **bad_query},
            ),
            Route(
                "GET",
                "/models",
                "Models that training made, the newest first.",
                self.models,
                READER,
                query={"deployed_since": SPAN_SCHEMA},
                answers={200: ("They.", ModelList), **bad_query},
            ),
            Route(
                "POST",
                "/api/admin/training/trigger",
                "Train when there is enough, or with `force` anyway.",
                self.trigger,
                REQUESTER,
                takes={JSON: TRIGGER_SCHEMA},
                answers={
                    200: ("What came of it; not being ready is an answer, no error.", Triggered),
                    **bad,
                },
            ),
            Route(
                "GET",
                "/api/admin/training/status",
                "How the loop stands, and whether it is ready to train.",
                self.overview,
                READER,
                answers={200: ("That.", OVERVIEW)},
            ),
        ]

    async def start(self, request: Request) -> Response:
        only = request.query.get("only_if_ready", "false")
        if only not in {"true", "false"}:
            raise Rejected(Reason.SCHEMA, "`only_if_ready` is true or false.")
        placed = await self._submission.submit_http(
            request.body,
            actor_of(request),
            check_readiness=self._why_not_ready if only == "true" else None,
            current_context=self._request_context,
        )
        started = JobStarted(placed.taken.value, placed.job_id, placed.status, placed.sentence)
        await self._auditor.note(request, "train", placed.job_id, after=started)
        return answer(202, started)

    async def plan(self, request: Request) -> Response:
        """Not having anything to train on is a conflict with what there is."""
        resolved, recipe = await self._submission.resolve(
            request.body, actor_of(request), self._request_context
        )
        found = await self._preview(resolved, recipe)
        state = self._readiness(found.learnable, recipe)
        if found.snapshot is None:
            raise Conflict(f"Not ready to train: {_join_reasons(state, found.no_data_reason)}")
        plan = await self._planner.plan(resolved, recipe, found.snapshot)
        waits = await self._trigger.blocking_work() if state.ready else None
        verdict = f"{waits or state.reason} {found.learnable.tasks.sentence}".strip()
        ready = state.ready and waits is None
        return answer(200, msgspec.structs.replace(plan, ready=ready, verdict=verdict))

    async def status(self, request: Request) -> Response:
        return Response(200, encode(await self._submission.status(request.params["job_id"])))

    async def cancel(self, request: Request) -> Response:
        name = request.params["job_id"]
        known = await self._jobs.get(name)
        job = job_info(await self._submission.cancel(name))
        before = {"status": known.state if known else None}
        after = {"status": job.status, "cancelling": job.cancelling}
        await self._auditor.note(request, "cancel", name, before=before, after=after)
        return answer(200, job)

    async def jobs(self, request: Request) -> Response:
        state = request.query.get("status") or None
        if state is not None and state not in TRANSITIONS:
            raise Rejected(Reason.SCHEMA, f"`status` is one of {', '.join(TRANSITIONS)}.")
        limit = _integer_query(request, "limit", 100)
        found = await self._jobs.list(state, self._since(request, "since"), limit)
        return answer(200, JobList([job_info(job) for job in found]))

    async def models(self, request: Request) -> Response:
        found = await self._models.list(self._since(request, "deployed_since"))
        return answer(200, ModelList(found))

    async def trigger(self, request: Request) -> Response:
        try:
            requested = from_json(request.body or b"{}", TriggerRequest)
        except msgspec.ValidationError as error:
            raise Rejected(Reason.SCHEMA, schema_error_sentence(error, TriggerRequest)) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Rejected(Reason.MALFORMED, f"{error}.") from None
        if requested.batch_size is not None and requested.batch_size < 1:
            raise Rejected(Reason.SCHEMA, "`batchSize` is a number from 1 on.")
        decided = await self._trigger.request_training(
            ManualRequest(actor_of(request), requested.force, requested.batch_size)
        )
        done = isinstance(decided.choice, TrainNow)
        outcome = Triggered(done, decided.job_id, decided.choice.sentence, decided.decision_id)
        about = decided.job_id or decided.decision_id
        await self._auditor.note(request, "trigger", about, detail=requested, after=outcome)
        return answer(200, outcome)

    async def ready(self) -> tuple[bool, str]:
        """Whether the loop is ready to train, and why or why not."""
        ready, reason, _ = await self.counted_readiness()
        return ready, reason

    async def counted_readiness(self) -> tuple[bool, str, datetime]:
        """The same, and when it was counted."""
        rules = self._trigger.policy.rules
        counted = await self._trigger.counted.newest()
        state = training_readiness(counted.learnable, rules.minimums, rules.algorithm)
        return state.ready, state.reason, counted.counted

    async def overview(self, _: Request) -> Response:
        """The second guide's status."""
        minimums = self._trigger.policy.rules.minimums
        day = await self._signals.collected_since(self._clock() - timedelta(hours=24))
        rules = self._trigger.policy.rules
        counted = await self._trigger.counted.newest()
        learnable = counted.learnable
        state = training_readiness(learnable, minimums, rules.algorithm)
        models, active = await self._models.list(), await self._jobs.active()
        done = await self._jobs.list("completed", limit=1)
        now = next((job for job in active if job.state == "running"), active[0] if active else None)
        tree = {
            "status": job_health(await self._jobs.last_ended(FAILED_IN_A_ROW)),
            "automation": {
                "dataCollection": {"last24h": day, "ratePerHour": round(day / 24, 2)},
                "training": {
                    "currentJob": now.job_id if now else None,
                    "lastCompleted": done[0].ended if done else None,
                },
                "models": {
                    "latest": next((row.model_id for row in models if _is_validated(row)), None),
                    "deployed": sum(model.deployed is not None for model in models),
                },
            },
            "readiness": {
                "ready": state.ready,
                "reason": state.reason,
                "stats": {
                    "totalTrajectories": learnable.trajectories,
                    "scenarioGroups": learnable.groups,
                    "usableGroups": learnable.usable,
                    "flatGroups": learnable.flat,
                    "identicalGroups": learnable.identical,
                    "statedOutcomes": learnable.with_outcome,
                    "singleAttempts": learnable.singles,
                    "newSuccesses": learnable.imitable,
                    "tasks": asdict(learnable.tasks),
                },
                "asOf": counted.counted,
                "algorithm": state.algorithm,
                "why": state.why,
                "notes": [
                    each
                    for each in (learnable.tasks.sentence, await self._trigger.blocking_work())
                    if each
                ],
            },
        }
        return answer(200, tree)

    async def _why_not_ready(self, request: TrainingRequest, recipe: Recipe) -> str | None:
        """What this kind of training needs and there is not, or the rollout that it waits for."""
        found = await self._preview(request, recipe)
        state = self._readiness(found.learnable, recipe)
        if state.ready and not found.no_data_reason:
            return await self._trigger.blocking_work()
        return _join_reasons(state, found.no_data_reason)

    async def _preview(self, request: TrainingRequest, recipe: Recipe) -> DataPreview:
        """What a job would find; a source or a start that is not there is the request's fault."""
        try:
            return await self._planner.preview(request, recipe)
        except Misuse as error:
            raise Rejected(Reason.SCHEMA, str(error)) from None

    def _readiness(self, learnable: Learnable, recipe: Recipe) -> TrainingReadiness:
        """Whether that is enough for a job of this recipe, by the rule that the trigger has."""
        rules = self._trigger.policy.rules
        default = rules.minimums
        least = DataMinimums(
            default.trajectories, default.groups, recipe.min_agents, recipe.min_attempts
        )
        state = training_readiness(learnable, least, rules.algorithm)
        if state.algorithm == recipe.algorithm or (
            state.algorithm is None and recipe.algorithm == self._trigger.policy.defaults.algorithm
        ):
            return state
        return training_readiness(learnable, least, rules.algorithm, requested=recipe.algorithm)

    async def _request_context(self) -> RequestContext:
        """What a request means that names neither an algorithm nor what to start from."""
        rules = self._trigger.policy.rules
        fits = rules.algorithm
        if fits is None:
            fits = training_readiness(
                await self._count_learnable(rules.minimums), rules.minimums
            ).algorithm
        serving = await self._models.serving()
        return RequestContext(fits, serving.job_id if serving is not None else None)

    async def _count_learnable(self, minimums: DataMinimums) -> Learnable:
        policy = self._trigger.policy
        return await self._signals.learnable(
            policy.rules.base_model,
            min_agents=minimums.agents,
            min_attempts=minimums.attempts,
            self_reported=policy.self_reported,
        )

    def _since(self, request: Request, name: str) -> datetime | None:
        text = request.query.get(name)
        return self._clock() - parse_span(text, name) if text else None


def _join_reasons(state: TrainingReadiness, nothing: str) -> str:
    """What is missing, and what became of what there is."""
    return " ".join([*([] if state.ready else [state.reason]), *([nothing] if nothing else [])])


def _integer_query(request: Request, name: str, default: int) -> int:
    text = request.query.get(name, str(default))
    if not text.isascii() or not text.isdecimal() or len(text) > 4 or not 1 <= int(text) <= 1000:
        raise Rejected(Reason.SCHEMA, f"`{name}` is a number from 1 to 1000.")
    return int(text)


def _is_validated(row: ModelRow) -> bool:
    """Training made it, and validation passed it; what somebody registered was trained elsewhere."""
    return row.state in _VALIDATED_STATES and not row.job_id.startswith("registered-")
