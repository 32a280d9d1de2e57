"""Does one of the loop's conditions call for a person? One rule for each, all of them pure.

| rule                       | fires                                                | is over                                |
|----------------------------|------------------------------------------------------|----------------------------------------|
| TrainingFailing            | three jobs that ended have failed in a row           | fewer have                             |
| CollectionErrors           | refused > 10 % of at least 20 messages in the window | nothing refused, or the share is lower |
| BusUnreachable             | not connected for 5 minutes                          | connected                              |
| BusMayLoseMessages         | its server says that it fsyncs later                 | it says that it does not               |
| TrainingServiceUnreachable | its port is silent for a minute, or a due job waits  | neither                                |
|                            | for ten while no worker has any                      |                                        |
| GatewayUnreachable         | the loop's own is silent for a minute                | it answers                             |
| ModelServerUnreachable     | silent for a minute                                  | it answers                             |
| DiskNearlyFull             | a disk has less room than it needs, one by one       | it has room                            |
| JudgeBudgetSpent           | the next question would cost more than is left       | it would not                           |
| RewardDrift                | the baseline has fallen, and no rollout is under way | it has not                             |

Whatever cannot be said just now says nothing: an alert that is open stays so, and none begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain
from typing import Any

from upswing.monitor.core.alert_states import AlertOver, AlertSeen, Observation
from upswing.monitor.core.conditions import DiskSpace, LoopConditions


@dataclass(frozen=True, slots=True)
class AlertLimits:
    """From when on trouble is worth a person's time."""

    bus_away: timedelta = timedelta(minutes=5)
    server_away: timedelta = timedelta(minutes=1)
    """Of the training service, the gateway and the model server."""
    job_waits: timedelta = timedelta(minutes=10)
    """Twice what a job may wait in the queue while there are workers."""
    refused_share: float = 0.10
    least_messages: int = 20
    """In the window: of fewer, a single bad one would be a tenth."""


@dataclass(frozen=True, slots=True)
class CollectionCounts:
    """What came in during the window, and what of it was refused."""

    taken: int = 0
    refused: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Of the refused."""

    @property
    def total(self) -> int:
        return self.taken + self.refused


@dataclass(frozen=True, slots=True)
class AlertFacts:
    """What the rules look at; None: nobody can say."""

    conditions: LoopConditions
    bus_away: timedelta = timedelta()
    """How long the bus has not been connected."""
    gateway_away: timedelta = timedelta()
    model_server_away: timedelta = timedelta()
    training_port_away: timedelta | None = None
    job_waits: timedelta | None = None
    """How long the oldest due job waits while no worker has any."""
    collected: CollectionCounts | None = None
    rollout_under_way: bool | None = None


def observe_conditions(facts: AlertFacts, limits: AlertLimits) -> list[Observation]:
    """What all rules say."""
    return list(chain.from_iterable(rule(facts, limits) for rule in RULES))


def training_failing(facts: AlertFacts, _: AlertLimits) -> Iterator[Observation]:
    failed = facts.conditions.failed_jobs_in_a_row
    yield _either(
        facts.conditions.training_fails,
        "TrainingFailing",
        f"{failed} training jobs in a row have failed.",
        "A training job has completed.",
        {"failed_in_a_row": failed},
    )


def collection_errors(facts: AlertFacts, limits: AlertLimits) -> Iterator[Observation]:
    found = facts.collected
    if found is None:
        return
    share = found.refused / found.total if found.total else 0.0
    if found.refused and found.total < limits.least_messages:
        return
    worst = sorted(found.reasons.items(), key=lambda each: (-each[1], each[0]))[:5]
    reasons = ", ".join(f"{reason} {count}" for reason, count in worst)
    yield _either(
        share > limits.refused_share,
        "CollectionErrors",
        f"{share:.0%} of {found.total:,} messages were refused ({reasons}); {limits.refused_share:.0%} may be.",
        f"{found.refused:,} of the last {found.total:,} messages were refused.",
        {"refused": found.refused, "messages": found.total, "reasons": dict(worst)},
    )


def bus_unreachable(facts: AlertFacts, limits: AlertLimits) -> Iterator[Observation]:
    if not facts.conditions.bus_connected and facts.bus_away < limits.bus_away:
        return
    yield _either(
        not facts.conditions.bus_connected,
        "BusUnreachable",
        f"The bus has not been reached for {_lasted(facts.bus_away)}; HTTP goes on, and the outbox waits.",
        "The bus is connected.",
        {"seconds": round(facts.bus_away.total_seconds())},
    )


def bus_may_lose(facts: AlertFacts, _: AlertLimits) -> Iterator[Observation]:
    always = facts.conditions.bus_sync_always
    if always is None:
        return
    yield _either(
        not always,
        "BusMayLoseMessages",
        "The bus may lose in a power cut what it has acknowledged: it does not run with `sync_interval: always`.",
        "The bus runs with `sync_interval: always`.",
    )


def training_service_unreachable(facts: AlertFacts, limits: AlertLimits) -> Iterator[Observation]:
    away, waits = facts.training_port_away, facts.job_waits
    if away is not None and timedelta() < away < limits.server_away:
        return
    silent = away is not None and away >= limits.server_away
    stuck = waits is not None and waits >= limits.job_waits
    if not silent and not stuck and away is None:
        return
    sentence = (
        f"The training service has not answered on its port for {_lasted(away or timedelta())}."
        if silent
        else f"A training job waits for {_lasted(waits or timedelta())}, and no worker takes it."
    )
    yield _either(
        silent or stuck,
        "TrainingServiceUnreachable",
        sentence,
        "The training service answers, and no job waits for a worker.",
        {"port_silent": silent, "job_waits_seconds": round(waits.total_seconds()) if waits else 0},
    )


def gateway_unreachable(facts: AlertFacts, limits: AlertLimits) -> Iterator[Observation]:
    answers, away = facts.conditions.gateway_answers, facts.gateway_away
    if answers is None or (not answers and away < limits.server_away):
        return
    yield _either(
        not answers,
        "GatewayUnreachable",
        f"The gateway has not answered for {_lasted(away)}: agents get nothing from it.",
        "The gateway answers.",
        {"seconds": round(away.total_seconds())},
    )


def model_server_unreachable(facts: AlertFacts, limits: AlertLimits) -> Iterator[Observation]:
    answers, away = facts.conditions.model_server_answers, facts.model_server_away
    if answers is None or (not answers and away < limits.server_away):
        return
    yield _either(
        not answers,
        "ModelServerUnreachable",
        f"The model server has not answered for {_lasted(away)}.",
        "The model server answers.",
        {"seconds": round(away.total_seconds())},
    )


def disk_nearly_full(facts: AlertFacts, _: AlertLimits) -> Iterator[Observation]:
    for disk in facts.conditions.disks:
        yield _either(
            disk.nearly_full,
            "DiskNearlyFull",
            f"The disk of the folder `{disk.name}` has {_gigabytes(disk.free_bytes)} left of "
            f"{_gigabytes(disk.size_bytes)}; {_gigabytes(disk.needed_bytes)} should be free.",
            f"The disk has {_gigabytes(disk.free_bytes)} left.",
            _disk_evidence(disk),
            {"disk": disk.name},
        )


def judge_budget_spent(facts: AlertFacts, _: AlertLimits) -> Iterator[Observation]:
    use = facts.conditions.judge
    if use is None:
        return
    limits = [
        f"{use.tokens:,} of {use.max_tokens:,} tokens" if use.max_tokens is not None else "",
        f"${use.usd:,.2f} of ${use.max_usd:,.2f}" if use.max_usd is not None else "",
    ]
    yield _either(
        use.spent,
        "JudgeBudgetSpent",
        f"The judge's budget of a day is spent: {' and '.join(filter(None, limits))}.",
        "The judge's budget allows questions again.",
        {"tokens": use.tokens, "usd": round(use.usd, 6)},
    )


def reward_drift(facts: AlertFacts, _: AlertLimits) -> Iterator[Observation]:
    drift = facts.conditions.drift
    if drift is None or facts.rollout_under_way is None:
        return
    labels = {"model": drift.model_id}
    if facts.rollout_under_way:
        return
    if drift.significant:
        yield AlertSeen(
            "RewardDrift",
            f"{drift.model_id} earns {drift.mean:.3f} now and {drift.reference:.3f} at first, though no rollout is "
            f"under way: {drift.drop:.3f} less, {drift.limit:.3f} would be chance or small.",
            labels,
            {"mean": drift.mean, "reference": drift.reference, "limit": drift.limit},
        )
    else:
        yield AlertOver("RewardDrift", "The reward is within its limit, or another model answers.")


Rule = Callable[[AlertFacts, AlertLimits], Iterator[Observation]]
RULES: tuple[Rule, ...] = (
    training_failing,
    collection_errors,
    bus_unreachable,
    bus_may_lose,
    training_service_unreachable,
    gateway_unreachable,
    model_server_unreachable,
    disk_nearly_full,
    judge_budget_spent,
    reward_drift,
)


def _either(
    holds: bool,
    name: str,
    sentence: str,
    over: str,
    evidence: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Observation:
    if holds:
        return AlertSeen(name, sentence, labels or {}, evidence or {})
    return AlertOver(name, over, labels or {})


def _disk_evidence(disk: DiskSpace) -> dict[str, int]:
    return {"free_bytes": disk.free_bytes, "size_bytes": disk.size_bytes}


def _gigabytes(count: float) -> str:
    """A size, as people say it.

    >>> _gigabytes(9_500_000_000), _gigabytes(64_000_000)
    ('9.5 GB', '64 MB')
    """
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def _lasted(span: timedelta) -> str:
    """A time, as people say it.

    >>> _lasted(timedelta(seconds=42)), _lasted(timedelta(minutes=5)), _lasted(timedelta(hours=3))
    ('42 seconds', '5 minutes', '3 hours')
    """
    seconds = span.total_seconds()
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.0f} hours"
