"""What do the answers about jobs and models look like?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any

import msgspec

from upswing.api.openapi import inline_refs
from upswing.contracts import TrainingRequest
from upswing.contracts.schema import json_schema_of
from upswing.errors import Reason, Rejected
from upswing.records import Job, ModelRow
from upswing.train.core.job_states import ACTIVE, PRIORITY_RANKS

JOB_ID = {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"}
_SPAN = re.compile(r"([0-9]{1,5})([smhdw])\Z")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
SPAN_SCHEMA = {"type": "string", "pattern": "^[0-9]{1,5}[smhdw]$", "examples": ["7d"]}
LIMIT = {"type": "integer", "minimum": 1, "maximum": 1000}
FAILED_IN_A_ROW = 3
"""Jobs after which something is wrong."""


class JobStarted(msgspec.Struct, frozen=True):
    """A request is durable; what becomes of it is told by its status."""

    result: str
    """`stored` or `known`."""
    training_job_id: str
    status: str
    detail: str


class JobInfo(msgspec.Struct, frozen=True):
    """A job, and how it stands."""

    training_job_id: str
    status: str
    priority: str
    trigger_reason: str
    requester: str
    algorithm: str
    base_model: str
    attempt: int
    created: datetime
    started: datetime | None
    ended: datetime | None
    not_before: datetime
    cancelling: bool
    """It is to end, and its worker has not ended it yet."""
    latest: dict[str, Any]
    """The newest training.status.v1."""


class JobList(msgspec.Struct, frozen=True):
    jobs: list[JobInfo]


class ModelList(msgspec.Struct, frozen=True):
    models: list[ModelRow]


class TriggerRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Train now: with `force`, whatever there is."""

    force: bool = False
    batch_size: int | None = None
    """Trajectories of the data set."""


class Triggered(msgspec.Struct, frozen=True, rename="camel"):
    """Whether a job was asked for; if not, `reason` says what is missing."""

    triggered: bool
    job_id: str | None
    reason: str
    decision_id: str


def parse_span(text: str, name: str = "since") -> timedelta:
    """How far back.

    >>> parse_span("7d"), parse_span("36h")
    (datetime.timedelta(days=7), datetime.timedelta(days=1, seconds=43200))
    """
    found = _SPAN.match(text)
    if found is None:
        raise Rejected(Reason.SCHEMA, f"`{name}` is a time such as 90m, 36h, 7d or 2w.")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def job_info(job: Job) -> JobInfo:
    """The job as it is shown."""
    config = job.request.training_config
    return JobInfo(
        training_job_id=job.job_id,
        status=job.state,
        priority=next(name for name, rank in PRIORITY_RANKS.items() if rank == job.priority),
        trigger_reason=job.reason,
        requester=job.request.requester,
        algorithm=config.algorithm,
        base_model=config.base_model,
        attempt=job.attempt,
        created=job.created,
        started=job.started,
        ended=job.ended,
        not_before=job.not_before,
        cancelling=job.cancel and job.state in ACTIVE,
        latest=msgspec.to_builtins(job.status),
    )


def job_health(ended: Sequence[str]) -> str:
    """`degraded` when the last jobs that ended, whose states these are, all failed.

    >>> job_health(["failed", "failed", "failed"]), job_health(["failed", "failed"])
    ('degraded', 'healthy')
    """
    failed = len(ended) >= FAILED_IN_A_ROW and set(ended) == {"failed"}
    return "degraded" if failed else "healthy"


def start_schema() -> dict[str, Any]:
    """training.request.v1, of which only the config is needed; or the config; or a part of it."""
    whole = inline_refs(json_schema_of(TrainingRequest))
    whole.pop("examples", None)
    config = whole["properties"]["training_config"]
    config.pop("required", None)
    whole["required"] = ["training_config"]
    return {"anyOf": [whole, deepcopy(config)]}


TRIGGER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "force": {"type": "boolean"},
        "batchSize": {"type": ["integer", "null"], "minimum": 1},
    },
    "additionalProperties": False,
}
OVERVIEW: dict[str, Any] = {
    "type": "object",
    "required": ["status", "automation", "readiness"],
    "properties": {
        "status": {"enum": ["healthy", "degraded"]},
        "automation": {"type": "object", "required": ["dataCollection", "training", "models"]},
        "readiness": {"type": "object", "required": ["ready", "reason", "stats"]},
    },
}
