"""How does a model do, as an operator asks it? Plain trees for answers and terminals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from upswing.contracts.traffic import Counts, Switches
from upswing.deploy.core.deployment_state import DeploymentState, traffic_shares
from upswing.deploy.core.gateway_switches import exceptions
from upswing.deploy.core.health import canary_figures, judge_health
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.record import RolloutRecord, Tallies, total_counts
from upswing.deploy.core.rollout import Rollout
from upswing.deploy.core.rows import RewardMean
from upswing.deploy.core.states import ACTIVE, RolloutState
from upswing.deploy.core.watch import KeepModel, PromotionWatch, judge_watch
from upswing.records import ModelRow

Tree = dict[str, Any]
LIVE = 100
"""The newest rollouts among which those that have traffic are found."""


def traffic_percentages(deployment: DeploymentState) -> dict[str, float]:
    """Model → percent."""
    return {name: round(share * 100, 6) for name, share in traffic_shares(deployment).items()}


def traffic_view(deployment: DeploymentState, gateways: Mapping[str, Switches]) -> Tree:
    """Who gets which share, in percent, and which gateways' switches decide otherwise."""
    return {
        "baseline": deployment.baseline,
        "holdback": deployment.holdback.model_id if deployment.holdback else None,
        "exceptions": exceptions(gateways),
        "rollout": deployment.plan_rollout_id,
        "operator": bool(deployment.active) and deployment.ramping is None,
        "traffic": traffic_percentages(deployment),
    }


def audited_state(deployment: DeploymentState, model_id: str) -> Tree:
    """How a model and the traffic stand, for the audit."""
    rollout = deployment.rollout_of(model_id)
    known = deployment.models.get(model_id)
    return {
        "baseline": deployment.baseline,
        "traffic": traffic_percentages(deployment),
        "rollout": str(rollout.state) if rollout else None,
        "model": str(known.state) if known else None,
    }


def model_view(row: ModelRow | None, name: str, deployment: DeploymentState) -> Tree:
    """One model of the list; the base has no row."""
    share = round(traffic_shares(deployment).get(name, 0.0) * 100, 6)
    if row is None:
        return {"model_id": name, "state": "base", "base_model": name, "traffic_percentage": share}
    return {
        "model_id": row.model_id,
        "state": row.state,
        "base_model": row.base_model,
        "checkpoint_path": row.path,
        "parent": row.parent,
        "training_job_id": row.job_id,
        "card": row.card,
        "created": row.created,
        "deployed": row.deployed,
        "traffic_percentage": share,
    }


def metrics_view(
    name: str,
    row: ModelRow | None,
    deployment: DeploymentState,
    rollout: Rollout | None,
    record: RolloutRecord,
    tallies: Tallies,
    earned: RewardMean,
    limits: RolloutLimits,
) -> Tree:
    """How one model does."""
    counts = total_counts(tallies, name)
    view = {
        **model_view(row, name, deployment),
        "is_baseline": name == deployment.baseline,
        "degraded": False,
        **_requests(counts),
        "reward_mean": earned.mean,
        "reward_count": earned.count,
    }
    if record.evidence is not None:
        verdict = judge_health(record.evidence, limits)
        seen = msgspec.to_builtins(canary_figures(record.evidence, limits))
        view |= {
            "health": verdict.health.value,
            "sentence": verdict.sentence,
            "proven": verdict.proven,
            "figures": seen,
            "negative_feedback": seen["complaints"],
        }
    if rollout is not None and rollout.state is RolloutState.PROMOTED and record.watch is not None:
        view |= _watched(record.watch, rollout, limits)
    if rollout is not None:
        view["rollout"] = rollout_view(rollout)
    return view


def _watched(watch: PromotionWatch, rollout: Rollout, limits: RolloutLimits) -> Tree:
    """How the model does that answers: `degraded` from when it is not what it was."""
    answer = judge_watch(watch, limits)
    view: Tree = {"degraded": not isinstance(answer, KeepModel)}
    if view["degraded"]:
        view |= {"health": "degraded", "sentence": answer.sentence}
    if rollout.holdback is not None and watch.held is not None:
        rewards = watch.held.rewards
        view["holdback"] = {
            "model_id": rollout.holdback.model_id,
            "traffic_percentage": round(rollout.holdback.share * 100, 6),
            "until": rollout.holdback.until,
            "rewards": rewards.candidates,
            "difference": watch.held.difference,
            "mismatch": watch.held.mismatch_sentence,
        }
    return view


def rollout_view(rollout: Rollout) -> Tree:
    """A rollout, and what it waits for."""
    tree: Tree = msgspec.to_builtins(rollout)
    canary = rollout.canary
    return tree | {
        "strategy": tree["strategy"]["type"],
        "traffic_percentage": round(rollout.share * 100, 6),
        "step": canary.step + 1 if canary else None,
        "steps": [round(step.share * 100, 6) for step in rollout.steps],
    }


def rollout_views(found: Sequence[Rollout]) -> list[Tree]:
    """RolloutRepository, the newest first; the promoted one has what candidates or its holdback leave."""
    active = math.fsum(each.share for each in found if each.state in ACTIVE)
    return [rollout_view(each) | _remaining(each, active) for each in found]


def _remaining(rollout: Rollout, active: float) -> Tree:
    if rollout.state is not RolloutState.PROMOTED:
        return {}
    held = rollout.holdback.share if rollout.holdback and not active else 0.0
    return {"traffic_percentage": round(max(0.0, 1 - active - held) * 100, 6)}


def _requests(counts: Counts) -> Mapping[str, Any]:
    asked = counts.requests
    return {
        "requests": asked,
        "errors": counts.errors,
        "error_rate": counts.errors / asked if asked else 0.0,
        "fallbacks": counts.fallbacks,
        "latency_ms_mean": counts.latency_ms_sum / asked if asked else None,
    }
