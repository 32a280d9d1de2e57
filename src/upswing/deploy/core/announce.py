"""A model's traffic changed: what is everybody told? model.deployed.v1.

| what happened                     | `metadata.event` |
|-----------------------------------|------------------|
| first traffic beside the baseline | `deployed`       |
| another share                     | `ramped`         |
| all traffic, or all but a holdback | `promoted`      |
| no traffic any more               | `rollback`       |
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from upswing.contracts import ModelDeployed, encode
from upswing.contracts.model import DeploymentConfig, ModelInfo, RampStep, ValidationResults
from upswing.contracts.traffic import Model as Served
from upswing.deploy.core.ramp import ramp_schedule
from upswing.deploy.core.rollout import Rollout
from upswing.deploy.core.states import ACTIVE, RolloutState
from upswing.records import ModelRow

TrafficEvent = Literal["deployed", "ramped", "promoted", "rollback"]
_UNKNOWN = ValidationResults(
    benchmark_passed=False, safety_checks_passed=False, performance_regression=False
)
"""Of a model that nobody validated."""


def traffic_event_of(before: Rollout | None, after: Rollout) -> TrafficEvent | None:
    """What happened to the traffic; None: nothing."""
    had = before.share if before is not None else 0.0
    if after.state is RolloutState.PROMOTED:
        again = before is not None and before.state is RolloutState.PROMOTED
        return None if again else "promoted"
    if after.state in ACTIVE:
        if before is None or before.state not in ACTIVE:
            return "deployed"
        return "ramped" if after.share != had else None
    if after.state is RolloutState.SUCCEEDED or not had:
        return None  # its successor's promotion is told
    return "rollback"


def announcement(
    rollout: Rollout,
    event: TrafficEvent,
    row: ModelRow | None,
    served: Served | None,
    *,
    platform: str,
    by: str,
    now: datetime,
    number: str,
) -> bytes:
    """The message, encoded; `number` makes two alike ones differ."""
    endpoint = served.backend if served else "about:blank"
    name = served.name if served else rollout.model_id
    steps = [
        RampStep(timestamp=at, percentage=share)
        for at, share in ramp_schedule(rollout.steps, rollout.began or now)
    ]
    message = ModelDeployed(
        deployment_id=rollout.rollout_id,
        training_job_id=row.job_id if row else "base",
        timestamp=now,
        model_info=_info(rollout, row),
        deployment_config=DeploymentConfig(
            serving_platform=platform,  # type: ignore[arg-type]  # checked when it is encoded
            endpoint=endpoint,
            model_name=name,
            rollout_strategy=_strategy(rollout),
            traffic_percentage=round(rollout.share * 100, 6),
            ramp_schedule=steps if rollout.steps else UNSET,
        ),
        validation_results=rollout.results or _UNKNOWN,
        metadata=_metadata(rollout, event, by, number),
    )
    return encode(message)


def _info(rollout: Rollout, row: ModelRow | None) -> ModelInfo:
    if row is None:
        return ModelInfo(model_id=rollout.model_id, base_model=rollout.model_id, checkpoint_path="")
    final = row.final_reward
    return ModelInfo(
        model_id=row.model_id,
        base_model=row.base_model,
        checkpoint_path=row.path,
        training_date=row.created,
        training_samples=row.samples if row.samples >= 1 else UNSET,
        final_reward=final if final is not None and math.isfinite(final) else UNSET,
    )


def _metadata(rollout: Rollout, event: TrafficEvent, by: str, number: str) -> dict[str, Any]:
    by_person = bool(rollout.approved) or rollout.state is RolloutState.PAUSED or bool(by)
    status = "manual_approved" if by_person else "automated"
    held = rollout.holdback
    return {
        "deployed_by": by or "upswing",
        "approval_status": "emergency_override" if rollout.override else status,
        "previous_model": rollout.baseline_id,
        "event": event,
        **(
            {
                "holdback": {
                    "model_id": held.model_id,
                    "traffic_percentage": round(held.share * 100, 6),
                    "until": held.until.isoformat(),
                }
            }
            if held
            else {}
        ),
        "reason": rollout.reason or event,
        "sentence": rollout.sentence,
        "decision_id": number,
    }


def _strategy(rollout: Rollout) -> Literal["canary", "blue_green", "immediate"]:
    tag: Literal["canary", "blue_green", "immediate"] = msgspec.to_builtins(rollout.strategy)[
        "type"
    ]
    return tag
