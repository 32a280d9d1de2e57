"""How does a model do, as an operator asks it? Plain trees for answers and terminals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from upswing.contracts.traffic import Counts
from upswing.deploy.health import figures, judge
from upswing.deploy.limits import Limits
from upswing.deploy.record import Record, Tallies, total
from upswing.deploy.rollout import Rollout
from upswing.deploy.standing import Standing, shares
from upswing.deploy.states import Rollout as State
from upswing.deploy.watch import Keep, Watch, look
from upswing.ports import ModelRow
from upswing.ports_rollout import Earned

Tree = dict[str, Any]


def traffic(standing: Standing) -> Tree:
    """Who gets which share, in percent."""
    return {
        "baseline": standing.baseline,
        "rollout": standing.lead,
        "operator": bool(standing.active) and standing.ramping is None,
        "traffic": {name: round(share * 100, 6) for name, share in shares(standing).items()},
    }


def model(row: ModelRow | None, name: str, standing: Standing) -> Tree:
    """One model of the list; the base has no row."""
    share = round(shares(standing).get(name, 0.0) * 100, 6)
    if row is None:
        return {"model_id": name, "state": "base", "base_model": name, "traffic_percentage": share}
    return {
        "model_id": row.model_id, "state": row.state, "base_model": row.base_model,
        "checkpoint_path": row.path, "parent": row.parent, "training_job_id": row.job_id,
        "card": row.card, "created": row.created, "deployed": row.deployed,
        "traffic_percentage": share,
    }  # fmt: skip


def metrics(
    name: str, row: ModelRow | None, standing: Standing, rollout: Rollout | None, record: Record,
    tallies: Tallies, earned: Earned, limits: Limits,
) -> Tree:  # fmt: skip
    """How one model does."""
    counts = total(tallies, name)
    told = {
        **model(row, name, standing),
        "is_baseline": name == standing.baseline,
        "degraded": False,
        **_requests(counts),
        "reward_mean": earned.mean,
        "reward_count": earned.count,
    }
    if record.evidence is not None:
        verdict = judge(record.evidence, limits)
        seen = msgspec.to_builtins(figures(record.evidence, limits))
        told |= {
            "health": verdict.health.value, "sentence": verdict.sentence, "proven": verdict.proven,
            "figures": seen, "negative_feedback": seen["complaints"],
        }  # fmt: skip
    if rollout is not None and rollout.state is State.PROMOTED and record.watch is not None:
        told |= _watched(record.watch, rollout, limits)
    if rollout is not None:
        told["rollout"] = rollout_told(rollout)
    return told


def _watched(watch: Watch, rollout: Rollout, limits: Limits) -> Tree:
    """How the model does that answers: `degraded` from when it is not what it was."""
    answer = look(watch, limits)
    told: Tree = {"degraded": not isinstance(answer, Keep)}
    if told["degraded"]:
        told |= {"health": "degraded", "sentence": answer.sentence}
    if rollout.holdback is not None and watch.held is not None:
        rewards = watch.held.rewards
        told["holdback"] = {
            "model_id": rollout.holdback.model_id,
            "traffic_percentage": round(rollout.holdback.share * 100, 6),
            "until": rollout.holdback.until,
            "rewards": rewards.candidates,
            "difference": watch.held.difference,
            "mismatch": watch.held.unequal,
        }
    return told


def rollout_told(rollout: Rollout) -> Tree:
    """A rollout, and what it waits for."""
    tree: Tree = msgspec.to_builtins(rollout)
    canary = rollout.canary
    return tree | {
        "strategy": tree["strategy"]["type"],
        "traffic_percentage": round(rollout.share * 100, 6),
        "step": canary.step + 1 if canary else None,
        "steps": [round(step.share * 100, 6) for step in rollout.steps],
    }


def rollouts(found: Sequence[Rollout]) -> list[Tree]:
    return [rollout_told(each) for each in found]


def _requests(counts: Counts) -> Mapping[str, Any]:
    asked = counts.requests
    return {
        "requests": asked,
        "errors": counts.errors,
        "error_rate": counts.errors / asked if asked else 0.0,
        "fallbacks": counts.fallbacks,
        "latency_ms_mean": counts.latency_ms_sum / asked if asked else None,
    }
