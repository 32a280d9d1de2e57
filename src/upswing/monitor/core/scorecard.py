"""Does the loop do what it promised? Success metrics beside their targets, each with what it rests on.

| technical                   | target           | value                                                          |
|-----------------------------|------------------|----------------------------------------------------------------|
| improvement per cycle       | +5 to +10 points | mean improvement of the candidates that passed validation      |
| training success rate       | > 90 %           | completed of the jobs that ended                               |
| deployment success rate     | > 95 %           | promoted of the rollouts that ended                            |
| mean time to rollback       | < 60 s           | from the decision to the last episode that the model began     |
| false rollback rate         | < 5 %            | rolled back models that were promoted later all the same       |

| business                    | target           | value: the model that answers beside the base                  |
|-----------------------------|------------------|----------------------------------------------------------------|
| task completion rate        | +10 to +15 %     | change of the completion rate                                  |
| user satisfaction           | +20 %            | change of the mean of what users said                          |
| turns                       | −15 %            | change of the mean turns of a trajectory                       |
| linter score                | +10 %            | change of the mean linter score                                |
| complaints                  | −25 %            | change of the share of trajectories with a complaint           |

Fewer than 20 on either side say nothing: the verdict is `unknown` then, never a guess.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import fsum

from upswing.monitor.core.model_figures import ModelFigures
from upswing.monitor.core.report_figures import (
    DeploymentSummary,
    JobSummary,
    ScoreEntry,
    ScoreVerdict,
    ValidationSummary,
)

LEAST = 20
"""Trajectories on each side of a comparison."""


@dataclass(frozen=True, slots=True)
class ScoreInputs:
    """What the scorecard looks at."""

    jobs: Sequence[JobSummary]
    deployments: Sequence[DeploymentSummary]
    validations: Sequence[ValidationSummary]
    promoted_later: Collection[str]
    """Models that were rolled back and promoted afterwards."""
    current: ModelFigures | None
    """The model that answers, in the period."""
    base: ModelFigures | None
    """The base, over its newest trajectories; None: it answers itself, or nobody knows it."""


def make_scorecard(seen: ScoreInputs) -> tuple[ScoreEntry, ...]:
    """All metrics, in the order of the tables."""
    return (
        _improvement(seen.validations),
        _training_success(seen.jobs),
        _deployment_success(seen.deployments),
        _time_to_rollback(seen.deployments),
        _false_rollbacks(seen.deployments, seen.promoted_later),
        _completion(seen),
        _satisfaction(seen),
        _turns(seen),
        _lint(seen),
        _complaints(seen),
    )


def _improvement(validations: Sequence[ValidationSummary]) -> ScoreEntry:
    found = [
        v.improvement for v in validations if v.verdict == "pass" and v.improvement is not None
    ]
    mean = fsum(found) / len(found) if found else None
    return ScoreEntry(
        group="technical",
        name="Improvement per training cycle",
        target="+5 to +10 points",
        value=mean,
        unit="points",
        verdict=_verdict(mean, mean is not None and mean >= 0.05),
        evidence=f"{len(found)} candidates passed their validation.",
    )


def _training_success(jobs: Sequence[JobSummary]) -> ScoreEntry:
    ended = [job for job in jobs if job.state in {"completed", "failed"}]
    good = sum(job.state == "completed" for job in ended)
    share = good / len(ended) if ended else None
    return ScoreEntry(
        group="technical",
        name="Training success rate",
        target="> 90 %",
        value=share,
        unit="share",
        verdict=_verdict(share, share is not None and share > 0.9),
        evidence=f"{good} of {len(ended)} jobs completed.",
    )


def _deployment_success(deployments: Sequence[DeploymentSummary]) -> ScoreEntry:
    good = sum(each.outcome == "promoted" for each in deployments)
    share = good / len(deployments) if deployments else None
    return ScoreEntry(
        group="technical",
        name="Deployment success rate",
        target="> 95 %",
        value=share,
        unit="share",
        verdict=_verdict(share, share is not None and share > 0.95),
        evidence=f"{good} of {len(deployments)} rollouts ended with a promotion.",
    )


def _time_to_rollback(deployments: Sequence[DeploymentSummary]) -> ScoreEntry:
    taken = [each.seconds for each in deployments if each.seconds is not None]
    mean = fsum(taken) / len(taken) if taken else None
    return ScoreEntry(
        group="technical",
        name="Mean time to rollback",
        target="< 60 s",
        value=mean,
        unit="seconds",
        verdict=_verdict(mean, mean is not None and mean < 60),
        evidence=f"{len(taken)} rollbacks.",
    )


def _false_rollbacks(
    deployments: Sequence[DeploymentSummary], promoted_later: Collection[str]
) -> ScoreEntry:
    back = [each.model_id for each in deployments if each.outcome == "rolled back"]
    wrong = sum(model in promoted_later for model in back)
    share = wrong / len(back) if back else None
    return ScoreEntry(
        group="technical",
        name="False rollback rate",
        target="< 5 %",
        value=share,
        unit="share",
        verdict=_verdict(share, share is not None and share < 0.05),
        evidence=f"{wrong} of {len(back)} models that were rolled back were promoted later.",
    )


def _completion(seen: ScoreInputs) -> ScoreEntry:
    return _change(
        seen, "Task completion rate", "+10 to +15 %", "completion_rate", "outcomes", 0.10
    )


def _satisfaction(seen: ScoreInputs) -> ScoreEntry:
    return _change(seen, "User satisfaction", "+20 %", "satisfaction", "voices", 0.20)


def _turns(seen: ScoreInputs) -> ScoreEntry:
    return _change(seen, "Turns of a trajectory", "−15 %", "turns", "trajectories", -0.15)


def _lint(seen: ScoreInputs) -> ScoreEntry:
    return _change(seen, "Linter score", "+10 %", "lint_score", "linted", 0.10)


def _complaints(seen: ScoreInputs) -> ScoreEntry:
    return _change(seen, "Complaints", "−25 %", "complaint_rate", "trajectories", -0.25)


def _change(
    seen: ScoreInputs, name: str, target: str, figure: str, counted: str, wanted: float
) -> ScoreEntry:
    """The model that answers beside the base; `wanted` below zero asks for less of it."""
    value, evidence = _relative_change(seen, figure, counted)
    met = value is not None and (value >= wanted if wanted > 0 else value <= wanted)
    return ScoreEntry(
        group="business",
        name=name,
        target=target,
        value=value,
        unit="change",
        verdict=_verdict(value, met),
        evidence=evidence,
    )


def _relative_change(seen: ScoreInputs, figure: str, counted: str) -> tuple[float | None, str]:
    current, base = seen.current, seen.base
    if current is None:
        return None, "The model that answers has no trajectory in this period."
    if base is None:
        return None, "The base answers itself, or has no trajectory to compare with."
    now, then = getattr(current, figure), getattr(base, figure)
    few = min(getattr(current, counted), getattr(base, counted))
    sizes = f"{getattr(current, counted):,} and {getattr(base, counted):,} trajectories"
    if now is None or then is None or few < LEAST:
        return None, f"{sizes}: too few of {current.model_id} or {base.model_id}."
    figures = f"{current.model_id} {now:.3g}, {base.model_id} {then:.3g} ({sizes})"
    if not then > 0:
        return None, f"{figures}: there is no share of nothing."
    return (now - then) / then, f"{figures}."


def _verdict(value: float | None, met: bool) -> ScoreVerdict:
    return "unknown" if value is None else "met" if met else "missed"
