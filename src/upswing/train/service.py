"""Somebody wants to train: does it become a job?

| what comes                                     | by HTTP      | by NATS, or from the trigger         |
|------------------------------------------------|--------------|--------------------------------------|
| a request                                      | queued       | queued                               |
| the same once more                             | known        | known                                |
| the same id with another body                  | conflict     | dead letter                          |
| not what the contract or the recipe allows     | refused      | dead letter, at the first delivery   |
| a base model that this machine does not have   | refused      | a failed job, whose status says why  |

Who asks over the bus hears nothing but statuses, so there a missing base is told by one.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

import msgspec

from upswing.config import Defaults
from upswing.contracts import TrainingRequest, TrainingStatus, encode
from upswing.contracts.training import Algorithm
from upswing.contracts.typed import from_json
from upswing.errors import Conflict, Misuse, Reason, Rejected, Transient
from upswing.ports import Decision, Job, Taken
from upswing.redact import Redactor
from upswing.train.jobs import ACTIVE, first, stillborn
from upswing.train.progress import State
from upswing.train.recipe import Recipe, recipe_of
from upswing.train.wish import Filling, clean, filled, whole

log = logging.getLogger(__name__)
_LONGEST = 1000
"""Characters of a sentence that quotes a name."""
_WAITS = "Waits for a worker."
_ELSEWHERE = "This machine does not train (TRAIN_RL_LOCAL=false): it waits for another worker."


class JobStore(Protocol):
    """What the desk asks of the store. Every write is durable when it returns."""

    async def submit(
        self, request: TrainingRequest, recipe: bytes, status: TrainingStatus, *, now: datetime,
        covers_seq: int | None = None, decision: Decision | None = None, slot: datetime | None = None,
        announce: bool = False, alone: bool = False,
    ) -> Taken: ...  # fmt: skip

    async def get(self, job_id: str) -> Job | None: ...

    async def cancel(self, job_id: str, now: datetime) -> Job | None: ...


@dataclass(frozen=True, slots=True)
class Ways:
    """How this machine trains."""

    defaults: Defaults
    recipe: Mapping[str, Any]
    """The config's own knobs."""
    train_here: bool = True


@dataclass(frozen=True, slots=True)
class Placed:
    """What became of a request."""

    taken: Taken
    job_id: str
    status: str
    sentence: str
    redacted: bool = False
    """Whether the form that came in holds something that must not stay."""


@dataclass(frozen=True, slots=True)
class Current:
    """What a request that leaves things open means just now."""

    algorithm: Algorithm | None = None
    """What fits the data that there is."""
    serving_job: str | None = None
    """The job that made the model which answers; None: the base answers."""


class Desk:
    """Takes training requests from every door, and tells how jobs stand."""

    def __init__(
        self,
        jobs: JobStore,
        redactor: Redactor,
        ways: Ways,
        *,
        check_base: Callable[[str], Awaitable[None]],
        check_world: Callable[[str], object] = lambda _: None,
        clock: Callable[[], datetime],
        new_id: Callable[[], UUID],
        changed: Callable[[], None] = lambda: None,
        finished: Callable[[State, float, int], None] = lambda _state, _seconds, _samples: None,
    ) -> None:
        """`check_base` raises `Misuse` for a base model that cannot be had, `check_world` for a world.

        `changed` is called after each commit, `finished` for each job that ends here.
        """
        self._jobs = jobs
        self._redactor = redactor
        self._ways = ways
        self._check_base, self._check_world = check_base, check_world
        self._clock = clock
        self._new_id = new_id
        self._changed = changed
        self._finished = finished

    async def by_http(
        self,
        raw: bytes,
        requester: str,
        *,
        missing: Callable[[TrainingRequest, Recipe], Awaitable[str | None]] | None = None,
        current: Callable[[], Awaitable[Current]] | None = None,
    ) -> Placed:
        """A request, whole or in part; `Rejected` says what is wrong with it.

        `missing` says what there is not enough of for this request; without it nobody asks.
        `current` says what fits where the request is silent.
        """
        request = filled(raw, await self._filling(requester, current))
        if (absent := await self._missing_base(request)) is not None:
            raise Rejected(Reason.SCHEMA, absent)
        if missing is not None:
            what = await missing(request, self._recipe(request))
            if what is not None:
                raise Conflict(f"Not ready to train: {what}")
        return await self._place(request, announce=True)

    async def asked(
        self, raw: bytes, requester: str, current: Callable[[], Awaitable[Current]]
    ) -> tuple[TrainingRequest, Recipe]:
        """What a request means, without placing it; `Rejected` says what is wrong with it."""
        filling = await self._filling(requester, current)
        request = filled(raw, filling)
        if (absent := await self._missing_base(request)) is not None:
            raise Rejected(Reason.SCHEMA, absent)
        return request, self._recipe(request)

    async def _filling(
        self, requester: str, current: Callable[[], Awaitable[Current]] | None
    ) -> Filling:
        usual, now = self._ways.defaults, await current() if current else Current()
        if now.algorithm is not None and usual.configured is None:
            usual = msgspec.structs.replace(usual, algorithm=now.algorithm)
        name = f"manual-{self._new_id()}"
        return Filling(name, self._clock(), requester, usual, now.serving_job)

    async def by_nats(self, raw: bytes) -> Placed:
        """A request as the contract has it."""
        return await self._place(whole(raw), announce=False)

    async def ask(
        self,
        request: TrainingRequest,
        decision: Decision,
        *,
        covers_seq: int | None,
        slot: datetime | None = None,
        alone: bool = True,
    ) -> bool:
        """The trigger's: the job, its request and the reason why are one transaction.

        False when another process was quicker.
        """
        placed = await self._place(
            request, announce=True, decision=decision, covers_seq=covers_seq, slot=slot, alone=alone
        )
        return placed.taken is Taken.STORED

    async def _place(self, request: TrainingRequest, *, announce: bool, **more: Any) -> Placed:
        job_id, now = request.training_job_id, self._clock()
        recipe = self._recipe(request)
        fit = clean(request, self._redactor)
        missing = await self._missing_base(request)
        note = _WAITS if self._ways.train_here else _ELSEWHERE
        status = stillborn(job_id, now, missing) if missing else first(job_id, now, note)
        taken = await self._jobs.submit(
            fit.request, msgspec.json.encode(recipe), status,
            now=now, announce=announce or fit.changed, **more,
        )  # fmt: skip
        if taken is Taken.CONFLICT:
            raise Conflict(f"Job {job_id} is known with another request; the first one stays.")
        if taken is Taken.STORED:
            self._changed()
            if status.status == "failed":
                self._finished("failed", 0.0, 0)
            sentence = missing or note
            log.info("job %s: %s", job_id, sentence, extra={"action": f"job_{status.status}"})
            return Placed(taken, job_id, status.status, sentence, fit.changed)
        job = await self._jobs.get(job_id)
        state = job.state if job else "unknown"
        return Placed(taken, job_id, state, f"The job is known; it is {state}.", fit.changed)

    def _recipe(self, request: TrainingRequest) -> Recipe:
        """How the job is trained, or `Rejected`; where it is trained elsewhere, worlds are others' matter."""
        recipe = recipe_of(request, self._ways.recipe)
        if recipe.rollouts is not None and self._ways.train_here:
            try:
                self._check_world(recipe.rollouts.world)
            except Misuse as error:
                sentence = f"The recipe cannot be used: `rollouts.world`: {error}"
                raise Rejected(Reason.SCHEMA, sentence) from None
        return recipe

    async def _missing_base(self, request: TrainingRequest) -> str | None:
        """Why the base model cannot be had here; another worker's machine may well have it."""
        if not self._ways.train_here:
            return None
        try:
            await self._check_base(request.training_config.base_model)
        except Misuse as error:
            return str(error)[:_LONGEST]
        return None

    async def status(self, job_id: str) -> TrainingStatus:
        """The newest; `Misuse` when there is no such job."""
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
        self._changed()
        if job.state == "cancelled":
            self._finished("cancelled", 0.0, 0)
        log.info("job %s is to end", job_id, extra={"action": "job_cancel"})
        return job

    async def answer(self, raw: bytes) -> bytes:
        """The reply to an enquiry `{"job_id": …}`: the newest status, or a sentence."""
        try:
            wish = from_json(raw, _Enquiry)
            return encode(await self.status(wish.job_id))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return _sorry("malformed", 'Ask with {"job_id": "…"}.')
        except Misuse as error:
            return _sorry("not_found", str(error))
        except Transient as error:
            return _sorry("unavailable", str(error))


class _Enquiry(msgspec.Struct):
    job_id: str


def _sorry(error: str, detail: str) -> bytes:
    return msgspec.json.encode({"error": error, "detail": detail})
