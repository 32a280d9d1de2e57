"""What does a training job look like in the user's tracing? One span, from its first attempt's work to its end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from upswing.infra.tracing import OwnSpan


def job_span(
    state: str, seconds: float, samples: int, *, ended: datetime, new_id: Callable[[], UUID]
) -> OwnSpan:
    """A job that ended; its time is that of all its attempts."""
    end = round(ended.timestamp() * 1e9)
    return OwnSpan(
        "upswing train",
        new_id().hex,
        new_id().hex[:16],
        end - round(seconds * 1e9),
        end,
        attributes={"upswing.job.state": state, "upswing.job.samples": samples},
        error="the job failed" if state == "failed" else "",
    )
