"""What was seen, and what is open: which alerts begin, go on, and are over?

             seen                       acknowledged by a person
    (none) ────────▶ firing ───────────────────────────▶ acknowledged
                        │                                     │
                        └──────────── over ──▶ resolved ◀─────┘

| what is seen                                   | no open alert of that cause | an open one                    |
|------------------------------------------------|-----------------------------|--------------------------------|
| it holds, or happened                          | it begins                   | it goes on, and counts         |
| a condition does not hold                      | nothing                     | over, once that has lasted     |
| nothing is said of a condition                 | nothing                     | it stays; over after the quiet |
|                                                |                             | time, when nobody sees it more |
| nothing of something that happened             | nothing                     | over after the quiet time      |

A cause is a kind and its labels; it has one open alert at most, whoever sees it how often.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from upswing.contracts.codec import canonical
from upswing.contracts.notices import AlertState, Severity
from upswing.monitor.core.alert_catalog import CATALOG


@dataclass(frozen=True, slots=True)
class AlertSeen:
    """Something that a person should know of holds, or has happened."""

    name: str
    summary: str
    labels: Mapping[str, str] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)
    times: int = 1

    @property
    def cause(self) -> str:
        return cause_of(self.name, self.labels)


@dataclass(frozen=True, slots=True)
class AlertOver:
    """It does not hold any more."""

    name: str
    why: str
    labels: Mapping[str, str] | None = None
    """None: whichever cause of this name is open."""
    before: datetime | None = None
    """Only what began before then."""


Observation = AlertSeen | AlertOver


@dataclass(frozen=True, slots=True)
class OpenAlert:
    """What deciding needs of an alert that is not resolved."""

    alert_id: str
    name: str
    cause: str
    state: AlertState
    began: datetime
    seen: datetime
    """When it was last seen to hold, or to happen."""


@dataclass(frozen=True, slots=True)
class BeginAlert:
    """A new alert fires."""

    seen: AlertSeen
    severity: Severity


@dataclass(frozen=True, slots=True)
class ContinueAlert:
    """It was seen again: it counts, and nobody is told."""

    alert_id: str
    seen: AlertSeen


@dataclass(frozen=True, slots=True)
class ResolveAlert:
    """It is over."""

    alert_id: str
    why: str


AlertChange = BeginAlert | ContinueAlert | ResolveAlert


def cause_of(name: str, labels: Mapping[str, str]) -> str:
    """The same kind with the same labels is the same cause.

    >>> cause_of("A", {"x": "1", "y": "2"}) == cause_of("A", {"y": "2", "x": "1"})
    True
    """
    return sha256(canonical([name, dict(labels)])).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Settling:
    """How long it takes until an alert counts as over."""

    clear: timedelta = timedelta(minutes=1)
    """A condition has to be away for so long, so that one that flickers is one alert."""
    quiet: timedelta = timedelta(hours=24)
    """What happened is over when it did not happen again for so long."""


def decide_changes(
    known: Sequence[OpenAlert],
    observed: Iterable[Observation],
    cleared_since: dict[str, datetime],
    now: datetime,
    settling: Settling,
) -> list[AlertChange]:
    """What becomes of the alerts; `cleared_since` remembers, by cause, since when a condition is away."""
    observed = list(observed)
    seen = _merge_seen(each for each in observed if isinstance(each, AlertSeen))
    by_cause = {each.cause: each for each in known}
    changes: list[AlertChange] = []
    for cause, each in seen.items():
        cleared_since.pop(cause, None)
        if (there := by_cause.get(cause)) is not None:
            changes.append(ContinueAlert(there.alert_id, each))
        else:
            changes.append(BeginAlert(each, CATALOG[each.name].severity))
    over = [each for each in observed if isinstance(each, AlertOver)]
    for alert in known:
        if alert.cause not in seen and (
            why := _why_over(alert, over, cleared_since, now, settling)
        ):
            cleared_since.pop(alert.cause, None)
            changes.append(ResolveAlert(alert.alert_id, why))
    return changes


def _merge_seen(seen: Iterable[AlertSeen]) -> dict[str, AlertSeen]:
    """One for each cause: the newest sentence, and how often all of them were seen."""
    merged: dict[str, AlertSeen] = {}
    for each in seen:
        before = merged.get(each.cause)
        times = each.times + (before.times if before else 0)
        merged[each.cause] = AlertSeen(each.name, each.summary, each.labels, each.evidence, times)
    return merged


def _why_over(
    alert: OpenAlert,
    over: Sequence[AlertOver],
    cleared_since: dict[str, datetime],
    now: datetime,
    settling: Settling,
) -> str:
    """Why it is over; empty: it is not."""
    said = next((each for each in over if _ends(each, alert)), None)
    kind = CATALOG.get(alert.name)
    if said is None:
        cleared_since.pop(alert.cause, None)
        hours = settling.quiet.total_seconds() / 3600
        is_quiet = now - alert.seen >= settling.quiet
        return f"It was not seen again for {hours:g} hours." if is_quiet else ""
    if kind is None or not kind.lasting:
        return said.why
    since = cleared_since.setdefault(alert.cause, now)
    return said.why if now - since >= settling.clear else ""


def _ends(over: AlertOver, alert: OpenAlert) -> bool:
    same = over.name == alert.name and (
        over.labels is None or cause_of(over.name, over.labels) == alert.cause
    )
    return same and (over.before is None or alert.began < over.before)
