"""A training request arrives: does it become a job?

| what arrives                                   | by HTTP      | by NATS, or from the trigger         |
|------------------------------------------------|--------------|--------------------------------------|
| a request                                      | queued       | queued                               |
| the same once more                             | known        | known                                |
| the same id with another body                  | conflict     | dead letter                          |
| not what the contract or the recipe allows     | refused      | dead letter, at the first delivery   |
| a base model that this machine does not have   | refused      | a failed job, whose status says why  |

A requester on the bus receives only statuses, so a missing base is reported as a failed status.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from upswing.config import Defaults
from upswing.contracts import TrainingRequest, TrainingStatus, encode
from upswing.contracts.training import Algorithm
from upswing.contracts.typed import from_json
from upswing.errors import Conflict, Misuse, Reason, Rejected, Transient
from upswing.records import Decision, Job, Taken
from upswing.redact import Redactor
from upswing.train.core.job_states import ACTIVE, failed_status, queued_status
from upswing.train.core.progress import JobState
from upswing.train.core.recipe import Recipe, build_recipe
from upswing.train.core.request import (
    RequestDefaults,
    complete_request,
    decode_request,
    redact_request,
)
from upswing.train.jobs.repository import JobRepository

log = logging.getLogger(__name__)
_MAX_SENTENCE = 1000
"""Characters of a sentence that quotes a name."""
_QUEUED_HERE = "Waits for a worker."
_QUEUED_ELSEWHERE = (
    "This machine does not train (TRAIN_RL_LOCAL=false): it waits for another worker."
)


@dataclass(frozen=True, slots=True)
class SubmissionSettings:
    """How requests are completed, and whether this machine trains them."""

    defaults: Defaults
    recipe: Mapping[str, Any]
    """The config's own knobs."""
    trains_here: bool = True


@dataclass(frozen=True, slots=True)
class SubmissionResult:
    """The result of submitting a request."""

    taken: Taken
    job_id: str
    status: str
    sentence: str
    redacted: bool = False
    """Whether the received form holds private data that must not stay on the bus."""


@dataclass(frozen=True, slots=True)
class RequestContext:
    """What a request that leaves fields open means at this moment."""

    algorithm: Algorithm | None = None
    """The algorithm that fits the recorded data."""
    serving_job: str | None = None
    """The job that made the serving model; None: the base model serves."""


class JobSubmission:
    """Takes training requests from HTTP, NATS and the trigger, and reports the status of jobs."""

    def __init__(
        self,
        jobs: JobRepository,
        redactor: Redactor,
        settings: SubmissionSettings,
        *,
        check_base: Callable[[str], Awaitable[None]],
        check_world: Callable[[str], object] = lambda _: None,
        clock: Callable[[], datetime],
        new_id: Callable[[], UUID],
        on_change: Callable[[], None] = lambda: None,
        on_finished: Callable[[JobState, float, int], None] = lambda _state, _seconds, _samples: (
            None
        ),
    ) -> None:
        """`check_base` raises `Misuse` for a base model that is not available, `check_world` for a world.

        `on_change` is called after each commit, `on_finished` for each job that ends here.
        """
        self._jobs = jobs
        self._redactor = redactor
        self._settings = settings
        self._check_base, self._check_world = check_base, check_world
        self._clock = clock
        self._new_id = new_id
        self._on_change = on_change
        self._on_finished = on_finished

    async def submit_http(
        self,
        raw: bytes,
        requester: str,
        *,
        check_readiness: Callable[[TrainingRequest, Recipe], Awaitable[str | None]] | None = None,
        current_context: Callable[[], Awaitable[RequestContext]] | None = None,
    ) -> SubmissionResult:
        """A request, whole or in part; `Rejected` says what is wrong with it.

        `check_readiness` returns what is missing for this request; without it nothing is checked.
        `current_context` gives the values for fields that the request leaves open.
        """
        request = complete_request(raw, await self._request_defaults(requester, current_context))
        if (absent := await self._missing_base(request)) is not None:
            raise Rejected(Reason.SCHEMA, absent)
        if check_readiness is not None:
            what = await check_readiness(request, self._recipe_of_request(request))
            if what is not None:
                raise Conflict(f"Not ready to train: {what}")
        return await self._submit_request(request, announce=True)

    async def resolve(
        self, raw: bytes, requester: str, current_context: Callable[[], Awaitable[RequestContext]]
    ) -> tuple[TrainingRequest, Recipe]:
        """The complete request and its recipe, without submitting it; `Rejected` says what is wrong."""
        defaults = await self._request_defaults(requester, current_context)
        request = complete_request(raw, defaults)
        if (absent := await self._missing_base(request)) is not None:
            raise Rejected(Reason.SCHEMA, absent)
        return request, self._recipe_of_request(request)

    async def _request_defaults(
        self, requester: str, current_context: Callable[[], Awaitable[RequestContext]] | None
    ) -> RequestDefaults:
        usual, now = (
            self._settings.defaults,
            await current_context() if current_context else RequestContext(),
        )
        if now.algorithm is not None and usual.configured is None:
            usual = msgspec.structs.replace(usual, algorithm=now.algorithm)
        name = f"manual-{self._new_id()}"
        return RequestDefaults(name, self._clock(), requester, usual, now.serving_job)

    async def submit_message(self, raw: bytes) -> SubmissionResult:
        """A request in the form of the contract, from the bus."""
        return await self._submit_request(decode_request(raw), announce=False)

    async def submit_triggered(
        self,
        request: TrainingRequest,
        decision: Decision,
        *,
        covers_seq: int | None,
        slot: datetime | None = None,
        only_if_idle: bool = True,
    ) -> bool:
        """From the trigger: the job, its request and the decision are one transaction.

        False when another process was faster.
        """
        placed = await self._submit_request(
            request,
            announce=True,
            decision=decision,
            covers_seq=covers_seq,
            slot=slot,
            only_if_idle=only_if_idle,
        )
        return placed.taken is Taken.STORED

    async def _submit_request(
        self, request: TrainingRequest, *, announce: bool, **more: Any
    ) -> SubmissionResult:
        job_id, now = request.training_job_id, self._clock()
        recipe = self._recipe_of_request(request)
        fit = redact_request(request, self._redactor)
        missing = await self._missing_base(request)
        note = _QUEUED_HERE if self._settings.trains_here else _QUEUED_ELSEWHERE
        status = (
            failed_status(job_id, now, missing) if missing else queued_status(job_id, now, note)
        )
        taken = await self._jobs.submit(
            fit.request,
            msgspec.json.encode(recipe),
            status,
            now=now,
            announce=announce or fit.changed,
            **more,
        )
        if taken is Taken.CONFLICT:
            raise Conflict(f"Job {job_id} is known with another request; the first one stays.")
        if taken is Taken.STORED:
            self._on_change()
            if status.status == "failed":
                self._on_finished("failed", 0.0, 0)
            sentence = missing or note
            log.info("job %s: %s", job_id, sentence, extra={"action": f"job_{status.status}"})
            return SubmissionResult(taken, job_id, status.status, sentence, fit.changed)
        job = await self._jobs.get(job_id)
        state = job.state if job else "unknown"
        return SubmissionResult(
            taken, job_id, state, f"The job is known; it is {state}.", fit.changed
        )

    def _recipe_of_request(self, request: TrainingRequest) -> Recipe:
        """How the job is trained, or `Rejected`; a machine that does not train does not check worlds."""
        recipe = build_recipe(request, self._settings.recipe)
        if recipe.rollouts is not None and self._settings.trains_here:
            try:
                self._check_world(recipe.rollouts.world)
            except Misuse as error:
                sentence = f"The recipe cannot be used: `rollouts.world`: {error}"
                raise Rejected(Reason.SCHEMA, sentence) from None
        return recipe

    async def _missing_base(self, request: TrainingRequest) -> str | None:
        """Why the base model is not available here; another worker's machine may have it."""
        if not self._settings.trains_here:
            return None
        try:
            await self._check_base(request.training_config.base_model)
        except Misuse as error:
            return str(error)[:_MAX_SENTENCE]
        return None

    async def status(self, job_id: str) -> TrainingStatus:
        """The newest status; `Misuse` when there is no such job."""
        job = await self._jobs.get(job_id)
        if job is None:
            raise Misuse("There is no job with this id; `upswing jobs` lists them.")
        return job.status

    async def cancel(self, job_id: str) -> Job:
        """End a queued job, or ask its worker to; `Conflict` when it is over."""
        before = await self._jobs.get(job_id)
        if before is not None and before.state not in ACTIVE:
            raise Conflict(f"Job {job_id} is {before.state} already.")
        job = await self._jobs.cancel(job_id, self._clock())
        if job is None:
            raise Misuse("There is no job with this id; `upswing jobs` lists them.")
        self._on_change()
        if job.state == "cancelled":
            self._on_finished("cancelled", 0.0, 0)
        log.info("cancelling job %s", job_id, extra={"action": "job_cancel"})
        return job

    async def answer_enquiry(self, raw: bytes) -> bytes:
        """The reply to an enquiry `{"job_id": …}`: the newest status, or a sentence."""
        try:
            enquiry = from_json(raw, _StatusEnquiry)
            return encode(await self.status(enquiry.job_id))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return _error_reply("malformed", 'Ask with {"job_id": "…"}.')
        except Misuse as error:
            return _error_reply("not_found", str(error))
        except Transient as error:
            return _error_reply("unavailable", str(error))


class _StatusEnquiry(msgspec.Struct):
    job_id: str


def _error_reply(error: str, detail: str) -> bytes:
    return msgspec.json.encode({"error": error, "detail": detail})
