"""What should be done? Rules over the figures of a report; each says on which of them it rests.

| rule               | when                                                                             |
|--------------------|----------------------------------------------------------------------------------|
| `nothing_collected` | no trajectory came in                                                            |
| `refused`          | more than a tenth of what came in was refused                                    |
| `training_failed`  | jobs failed, by their most frequent error                                        |
| `rolled_back`      | a model was rolled back                                                          |
| `reward_fell`      | the model that answers earns 0.05 less than what it is compared with             |
| `no_outcomes`      | of 50 trajectories or more, fewer than half say how they ended                   |
| `nobody_speaks`    | of 200 trajectories or more, users spoke of fewer than one in a hundred          |
| `complaints`       | users complain of a twentieth of the work or more                                |
| `faults`           | the infrastructure spoiled more than a twentieth                                 |
| `open_alerts`      | urgent alerts are open                                                           |
| `no_prices`        | tokens were used, or jobs ran, and everything cost nothing                       |

Without a reason there is no recommendation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from upswing.monitor.core.report_figures import JobFigures, PeriodFigures, Recommendation

_FALL = 0.05
REMEDIES = {
    "OOM": "Training ran out of memory: set `[train] memory_gb`, take a smaller base, or leave long trajectories out "
    "(`[trigger] max_turns`).",
    "CONVERGENCE": "Training diverged: lower the learning rate (`[train.recipe] learning_rate`).",
    "DATA": "Training had no usable data: `upswing train --dry-run` says what was left out and why.",
    "INFRA": "Training failed for its surroundings: look at the disk and at `MODEL_STORAGE_PATH`.",
    "TIMEOUT": "Training took too long: raise `[train] timeout_hours`, or take fewer samples.",
    "UNKNOWN": "Training broke in a way that nobody foresaw: `upswing jobs show ID` has the traceback.",
}


def recommend(figures: PeriodFigures) -> tuple[Recommendation, ...]:
    """What follows from a period's figures."""
    return tuple(each for rule in _RULES for each in rule(figures))


def recommend_for_job(figures: JobFigures) -> tuple[Recommendation, ...]:
    """What follows from a job's."""
    if figures.state == "failed":
        evidence = f"The job failed with {figures.error or 'UNKNOWN'}."
        return (
            _make("training_failed", REMEDIES.get(figures.error, REMEDIES["UNKNOWN"]), evidence),
        )
    if figures.validation == "failed":
        sentence = "Look at the tasks that fell (`upswing explain ID` of its decision) before the next training."
        return (_make("validation_failed", sentence, figures.validation_sentence),)
    if figures.improvement_pct is not None and figures.improvement_pct <= 0:
        sentence = "The job did not improve its policy: it needs more, or more varied, attempts."
        evidence = f"The held-out reward changed by {figures.improvement_pct:+.1f} %."
        return (_make("no_gain", sentence, evidence),)
    return ()


def _nothing_collected(seen: PeriodFigures) -> Iterator[Recommendation]:
    if not seen.trajectories:
        yield _make(
            "nothing_collected",
            "Check that agents record: `upswing doctor`, and `upswing info` for the addresses that they need.",
            "No trajectory came in.",
        )


def _refused(seen: PeriodFigures) -> Iterator[Recommendation]:
    refused = sum(seen.refused.values())
    whole = refused + seen.trajectories
    if refused and refused / whole > 0.1:
        worst = max(seen.refused, key=lambda reason: (seen.refused[reason], reason))
        yield _make(
            "refused",
            f"Mend who sends what is refused as `{worst}`: `upswing dead --reason {worst}` shows it.",
            f"{refused:,} of {whole:,} messages were refused.",
        )


def _training_failed(seen: PeriodFigures) -> Iterator[Recommendation]:
    errors = Counter(job.error or "UNKNOWN" for job in seen.jobs if job.state == "failed")
    for code, count in errors.most_common(1):
        ended = seen.jobs_completed + seen.jobs_failed
        yield _make(
            "training_failed",
            REMEDIES.get(code, REMEDIES["UNKNOWN"]),
            f"{seen.jobs_failed} of {ended} jobs failed, {count} of them with {code}.",
        )


def _rolled_back(seen: PeriodFigures) -> Iterator[Recommendation]:
    for each in seen.deployments:
        if each.outcome == "rolled back":
            yield _make(
                "rolled_back",
                f"Find out what {each.model_id} did worse before the next rollout: `upswing rollouts`.",
                each.sentence or each.reason,
            )


def _reward_fell(seen: PeriodFigures) -> Iterator[Recommendation]:
    current = seen.current
    if current is not None and current.delta is not None and current.delta <= -_FALL:
        yield _make(
            "reward_fell",
            f"Train on the newest work: {current.model_id} earns less than {current.against}.",
            f"{current.delta:+.3f} of raw reward.",
        )


def _no_outcomes(seen: PeriodFigures) -> Iterator[Recommendation]:
    known = sum(each.outcomes for each in seen.models)
    whole = sum(each.trajectories - each.faults for each in seen.models)
    if whole >= 50 and known / whole < 0.5:
        yield _make(
            "no_outcomes",
            "Let agents say how their tasks ended (`outcome`): it is what is learned from.",
            f"{known:,} of {whole:,} trajectories have an outcome.",
        )


def _nobody_speaks(seen: PeriodFigures) -> Iterator[Recommendation]:
    voices = sum(each.voices for each in seen.models)
    whole = sum(each.trajectories - each.faults for each in seen.models)
    if whole >= 200 and voices / whole < 0.01:
        yield _make(
            "nobody_speaks",
            "Give users thumbs or stars (`/v1/feedback`): a quarter of every reward is theirs.",
            f"Users spoke of {voices:,} of {whole:,} trajectories.",
        )


def _complaints(seen: PeriodFigures) -> Iterator[Recommendation]:
    for each in seen.models:
        if each.complaint_rate is not None and each.complaints >= 5 and each.complaint_rate >= 0.05:
            yield _make(
                "complaints",
                f"Read what users say of {each.model_id}, and pin what went wrong as a test.",
                f"{each.complaints:,} of {each.trajectories:,} trajectories have a complaint.",
            )


def _faults(seen: PeriodFigures) -> Iterator[Recommendation]:
    for each in seen.models:
        if each.error_rate is not None and each.faults >= 5 and each.error_rate > 0.05:
            yield _make(
                "faults",
                f"Look at the server and the tools behind {each.model_id}: work is lost before it counts.",
                f"{each.faults:,} of {each.trajectories:,} trajectories were spoiled.",
            )


def _open_alerts(seen: PeriodFigures) -> Iterator[Recommendation]:
    urgent = [
        each for each in seen.issues if each.severity == "urgent" and each.state != "resolved"
    ]
    if urgent:
        names = ", ".join(sorted({each.name for each in urgent}))
        yield _make(
            "open_alerts",
            "Deal with the urgent alerts first: `upswing alerts`.",
            f"{len(urgent)} open: {names}.",
        )


def _no_prices(seen: PeriodFigures) -> Iterator[Recommendation]:
    tokens = sum(each.tokens for each in seen.costs.models)
    if not seen.costs.total_usd and (tokens or seen.jobs):
        yield _make(
            "no_prices",
            "Set prices in `[costs]`, so that versions can be compared by what they cost.",
            f"{tokens:,.0f} tokens and {len(seen.jobs)} jobs cost $0.",
        )


_RULES: tuple[Callable[[PeriodFigures], Iterator[Recommendation]], ...] = (
    _nothing_collected,
    _refused,
    _training_failed,
    _rolled_back,
    _reward_fell,
    _no_outcomes,
    _nobody_speaks,
    _complaints,
    _faults,
    _open_alerts,
    _no_prices,
)


def _make(rule: str, sentence: str, evidence: str) -> Recommendation:
    return Recommendation(rule=rule, sentence=sentence, evidence=evidence)
