"""How would a canary have gone with other steps and limits? What the journal has of it, led anew.

The journal has a canary where something about it changed. Between two entries:

| quantity                   | is taken to                                                                     |
|----------------------------|---------------------------------------------------------------------------------|
| the candidate's episodes   | come evenly, in proportion to the share that it has                             |
| its health                 | be that of the entry before, and to become healthy when enough is seen, where    |
|                            | too little seen was all that stood against it                                   |
| a failure                  | show when the odds are reached, which grow evenly in logarithms up to the entry  |
|                            | that has it; under the policy of its time that is when the journal has it        |
| a proof                    | come with the entry that has it                                                 |
| steps after the last entry | be taken at the usual pace, where nothing but time and samples is missing        |

After the last entry nothing else is known, and nothing else is made up: the end is `open`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import log

from upswing.contracts.backtest import ModelledEnd
from upswing.deploy.core.canary import UNDECIDED, Canary
from upswing.deploy.core.evidence import CanaryEvidence
from upswing.deploy.core.health import FailureCause, HealthStatus, HealthVerdict
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.ramp import CanaryStep
from upswing.deploy.core.sequential_test import FIRST

PROJECTED = "projected"
"""The reason of an end that lies behind the journal's last entry."""
_FAR = timedelta(days=3650)
"""Further than that no rollout is led."""


@dataclass(frozen=True, slots=True)
class CanaryReading:
    """What one policy makes of a journal entry."""

    verdict: HealthVerdict
    limits: RolloutLimits
    deadline: datetime
    enough: bool
    """As much is seen as the limits ask for."""
    progress: Mapping[str, float]
    """Cause → how far its test has come, in logarithms of odds; 1: it rejects."""


@dataclass(frozen=True, slots=True)
class CanaryEntry:
    """A canary at one moment of the journal, as both policies read it."""

    at: datetime
    episodes: int
    """Scored, of the candidate."""
    others: int
    """Of the baseline."""
    requests: int
    share: float
    difference: float | None
    then: CanaryReading
    now: CanaryReading


def read_canary(
    evidence: CanaryEvidence, limits: RolloutLimits, deadline: datetime, verdict: HealthVerdict
) -> CanaryReading:
    rewards, errors = evidence.rewards, evidence.errors
    enough = (
        min(rewards.candidates, rewards.baselines) >= limits.min_rewards
        and errors.candidate.requests >= limits.min_requests
    )
    above = min(errors.above_limit.wealth, errors.above_baseline.wealth)
    progress = {
        FailureCause.ERRORS.value: _progress(above, limits.error_chance),
        FailureCause.REWARD.value: _progress(rewards.worse.wealth, limits.reward_chance),
        FailureCause.COMPLAINTS.value: _progress(
            evidence.complaints.more.wealth, limits.complaint_chance
        ),
    }
    return CanaryReading(verdict, limits, deadline, enough, progress)


def _progress(wealth: float, chance: float) -> float:
    """How far this wealth is on its way to 1/chance.

    >>> _progress(1000.0, 0.001), round(_progress(10.0, 0.01), 3)
    (1.0, 0.5)
    """
    return log(max(wealth, FIRST)) / -log(chance)


def lead_canary(
    begin: Canary,
    entries: Sequence[CanaryEntry],
    steps: Sequence[CanaryStep],
    readings: Sequence[CanaryReading],
) -> ModelledEnd:
    """How it ends with these steps, read like this."""
    modelled = _ModelledCanary(begin, entries, steps, readings)
    for place in range(len(entries)):
        if (end := modelled.advance(place)) is not None:
            return end
    return modelled.project()


class _ModelledCanary:
    """A canary that is led through what the journal has."""

    def __init__(
        self,
        begin: Canary,
        entries: Sequence[CanaryEntry],
        steps: Sequence[CanaryStep],
        readings: Sequence[CanaryReading],
    ) -> None:
        self._entries, self._steps, self._readings = entries, steps, readings
        self._step, self._since = 0, begin.since
        self._sampled = self.episodes = float(begin.sampled)

    def advance(self, place: int) -> ModelledEnd | None:
        """From the entry before this one to this one; its end, if it comes."""
        entry, reading = self._entries[place], self._readings[place]
        fails = self._fails_at(place)
        if place == 0:
            self.episodes = float(entry.episodes)
        elif (end := self._between(place, fails or entry.at)) is not None:
            return end
        if fails is not None:
            cause = reading.verdict.cause
            return self._end("rolled_back", fails, cause.value if cause else "failing")
        if reading.verdict.health is HealthStatus.HEALTHY and self._due(0.0, entry.at) <= entry.at:
            if self._is_last and reading.verdict.proven:
                return self._end("promoted", entry.at)
            self._step_up(entry.at)
        if entry.at >= reading.deadline and not reading.verdict.too_few_users:
            return self._end("rolled_back", entry.at, UNDECIDED)
        return None

    def project(self) -> ModelledEnd:
        """After the last entry: promoted when the rest of the ramp is over, where only that is missing."""
        first, last, reading = self._entries[0], self._entries[-1], self._readings[-1]
        seconds = (last.at - first.at).total_seconds()
        came = last.episodes + last.others - first.episodes - first.others
        at, verdict = last.at, reading.verdict
        if not (verdict.health is HealthStatus.HEALTHY and verdict.proven and seconds and came > 0):
            return self._end("open", at)
        while True:
            pace = came / seconds * self._steps[self._step].share
            due = max(self._due(pace, at), at)
            if due > min(reading.deadline, last.at + _FAR):
                return self._end("open", last.at)
            self.episodes += pace * (due - at).total_seconds()
            at = due
            if self._is_last:
                return self._end("promoted", at, PROJECTED)
            self._step_up(at)

    def _end(self, ended: str, at: datetime, reason: str = "") -> ModelledEnd:
        match ended:
            case "promoted" | "rolled_back":
                return ModelledEnd(ended, at, round(self.episodes), reason)
            case _:
                return ModelledEnd("open", at, round(self.episodes))

    @property
    def _is_last(self) -> bool:
        return self._step == len(self._steps) - 1

    def _fails_at(self, place: int) -> datetime | None:
        """When it fails, if this entry has a failure."""
        reading, entry = self._readings[place], self._entries[place]
        if reading.verdict.health is not HealthStatus.FAILING:
            return None
        cause = reading.verdict.cause
        if place == 0 or cause is None or cause.value not in reading.progress:
            return entry.at
        before = self._entries[place - 1]
        part = _crossing(self._readings[place - 1], reading, cause.value)
        if entry.then.verdict.health is HealthStatus.FAILING:
            then = entry.then.verdict.cause
            same = then is not None and then.value in entry.then.progress
            known = _crossing(before.then, entry.then, then.value) if then and same else 1.0
            part = min(1.0, part / known) if known > 0 else 1.0
        return before.at + (entry.at - before.at) * part

    def _between(self, place: int, until: datetime) -> ModelledEnd | None:
        """What happens after the entry before, until then."""
        before, after = self._entries[place - 1], self._entries[place]
        reading, healthy_from = self._readings[place - 1], self._healthy_from(place)
        at, late = before.at, until if reading.verdict.too_few_users else reading.deadline
        stop = min(until, max(late, at))
        came = max(0, after.episodes - before.episodes)
        while at < stop:
            pace = self._pace(came, before, after)
            moment = max(self._due(pace, at), healthy_from, at)
            goes_on = moment < stop and (reading.verdict.proven or not self._is_last)
            then = moment if goes_on else stop
            self.episodes += pace * (then - at).total_seconds()
            at = then
            if goes_on and self._is_last:
                return self._end("promoted", at)
            if goes_on:
                self._step_up(at)
        return self._end("rolled_back", stop, UNDECIDED) if stop < until else None

    def _pace(self, came: int, before: CanaryEntry, after: CanaryEntry) -> float:
        """Episodes a second, at the share that it has."""
        seconds = (after.at - before.at).total_seconds()
        share = self._steps[self._step].share
        return came / seconds * (share / before.share if before.share > 0 else 1.0)

    def _due(self, pace: float, at: datetime) -> datetime:
        """When the step has lasted its time and seen its sample, at this pace."""
        step = self._steps[self._step]
        missing, lasts = step.sample - (self.episodes - self._sampled), self._since + step.dwell
        if missing <= 1e-6:
            return lasts
        if not pace * _FAR.total_seconds() > missing:
            return at + _FAR
        return max(lasts, at + timedelta(seconds=missing / pace))

    def _healthy_from(self, place: int) -> datetime:
        """When it counts as healthy between this entry and the one before."""
        before, after = self._entries[place - 1], self._entries[place]
        was, becomes = self._readings[place - 1], self._readings[place]
        if was.verdict.health is HealthStatus.HEALTHY:
            return before.at
        if was.enough or becomes.verdict.health is not HealthStatus.HEALTHY:
            return after.at + _FAR
        limits = becomes.limits
        parts = (
            _part(before.episodes, after.episodes, limits.min_rewards),
            _part(before.others, after.others, limits.min_rewards),
            _part(before.requests, after.requests, limits.min_requests),
        )
        return before.at + (after.at - before.at) * max(parts)

    def _step_up(self, at: datetime) -> None:
        if not self._is_last:
            self._step += 1
            self._since, self._sampled = at, self.episodes


def _crossing(before: CanaryReading, after: CanaryReading, cause: str) -> float:
    """Which part of the way from one reading to the next leads to odds that reject."""
    low, high = before.progress[cause], after.progress[cause]
    return min(1.0, max(0.0, (1 - low) / (high - low))) if high > low else 1.0


def _part(before: int, after: int, least: int) -> float:
    """Which part of the way leads to `least`.

    >>> _part(10, 30, 25), _part(30, 40, 25)
    (0.75, 0.0)
    """
    return min(1.0, max(0.0, (least - before) / (after - before))) if after > before else 0.0
