"""Would other rules have trained at another time, and how often?

Each journalled decision is made again from its inputs under the changed rules: that is exact. When a job would
have begun between two journal entries, and how many there would have been, is modelled:

| known from the journal                          | modelled                                          |
|-------------------------------------------------|---------------------------------------------------|
| how many trajectories were new at each entry     | they came evenly in between                       |
| when a job or its rollout was seen to run        | every job takes as long as jobs did (the median), |
|                                                 | and none begins while another runs                |
| what there was to learn from, where it was asked | the next entry's answer holds where nobody asked  |
| what a person asked for, how the model earned    | looked at where the journal has it                |

The past is modelled the same way under its own rules, and the two are compared: the same rules give no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from upswing.contracts.backtest import PolicyReplay, ReplayedDecision, TrainingEffect
from upswing.contracts.typed import from_json
from upswing.dataset.groups import Learnable
from upswing.records import Decision
from upswing.trigger.core.cron import parse_cron
from upswing.trigger.core.decide import (
    TrainNow,
    TriggerDecision,
    WaitReason,
    decide_training,
    due_slot,
)
from upswing.trigger.core.inputs import ActiveJob, TriggerInputs, TriggerRules
from upswing.trigger.core.policy import parse_schedule

REPLAYED = frozenset(
    {
        "trigger.threshold",
        "trigger.schedule",
        "trigger.drop",
        "trigger.min_sample",
        "trigger.pause_minutes",
        "train.min_trajectories",
        "train.min_groups",
        "train.algorithm",
    }
)
"""Knobs of the config that a journalled decision to train depends on."""
_USUAL_CYCLE = timedelta(hours=1)
"""A job and its rollout, where nobody knows of one that ended."""
_MOST_EVENTS = 5_000
"""Moments that one model of the past looks at: a schedule may come every minute."""
_WAITS = frozenset(each.value for each in WaitReason)
ChangeRules = Callable[[TriggerRules], TriggerRules]


def rules_under(rules: TriggerRules, knobs: Mapping[str, Any]) -> TriggerRules:
    """These rules with what the changed policy names; the rest stays as it was."""
    changes: dict[str, Any] = {
        name: knobs[f"trigger.{name}"]
        for name in ("threshold", "drop", "min_sample")
        if f"trigger.{name}" in knobs
    }
    if "trigger.schedule" in knobs:
        changes["schedule"] = parse_schedule(None, knobs["trigger.schedule"])
    if "trigger.pause_minutes" in knobs:
        changes["pause"] = timedelta(minutes=knobs["trigger.pause_minutes"])
    if "train.algorithm" in knobs:
        changes["algorithm"] = knobs["train.algorithm"]
    minimums = {
        name: knobs[f"train.min_{name}"]
        for name in ("trajectories", "groups")
        if f"train.min_{name}" in knobs
    }
    if minimums:
        changes["minimums"] = replace(rules.minimums, **minimums)
    return replace(rules, **changes)


@dataclass(frozen=True, slots=True)
class ModelledJob:
    """A job that would have been asked for."""

    at: datetime
    reason: str


class TriggerBacktest:
    """Takes the journal in its order."""

    def __init__(self, knobs: Mapping[str, Any], cycles: Sequence[timedelta] = ()) -> None:
        """`cycles`: how long jobs and their rollouts took."""
        self._knobs, self._cycles = knobs, cycles
        self._entries: list[tuple[TriggerInputs, str]] = []

    def replay(self, decision: Decision) -> PolicyReplay:
        """One decision under both rules."""
        seen = from_json(decision.inputs, TriggerInputs)
        then = decide_training(seen)
        changed = rules_under(seen.rules, self._knobs)
        now = then if changed == seen.rules else decide_training(replace(seen, rules=changed))
        self._entries.append((seen, _kind(then)))
        as_journalled = _kind(then) == decision.kind
        return PolicyReplay("", _replayed(then), _replayed(now), as_journalled)

    def effect(self) -> TrainingEffect | None:
        """How many jobs, and when the first; None: the journal has no such decision, or the rules are the same."""
        changed = any(rules_under(e.rules, self._knobs) != e.rules for e, _ in self._entries)
        if not self._entries or not changed:
            return None
        cycle = usual_cycle(self._entries, self._cycles)
        then = model_jobs(self._entries, lambda rules: rules, cycle)
        now = model_jobs(self._entries, lambda rules: rules_under(rules, self._knobs), cycle)
        journalled = sum(kind not in _WAITS for _, kind in self._entries)
        first_then, first_now = (jobs[0].at if jobs else None for jobs in (then, now))
        sentence = _sentence(journalled, then, now)
        return TrainingEffect(
            journalled, len(then), len(now), first_then, first_now, sentence=sentence
        )


def model_jobs(
    entries: Sequence[tuple[TriggerInputs, str]], change: ChangeRules, cycle: timedelta
) -> list[ModelledJob]:
    """When rules would have asked for a job, as the table says; no two of them within a `cycle`."""
    past = _Past(entries, change, cycle)
    for place in range(len(entries)):
        past.advance(place)
    return past.jobs


class _Past:
    """The past as one policy would have led it."""

    def __init__(
        self,
        entries: Sequence[tuple[TriggerInputs, str]],
        change: ChangeRules,
        cycle: timedelta,
    ) -> None:
        self._inputs = [inputs for inputs, _ in entries]
        self._arrived = _arrivals(entries)
        self._pools = _known_pools(self._inputs)
        self._cycle, self._change = cycle, change
        self._taken = 0.0
        """Arrivals that a job has covered."""
        self._busy_until: datetime | None = None
        self._slot = self._inputs[0].last_slot if entries else None
        self._events = 0
        self.jobs: list[ModelledJob] = []

    def advance(self, place: int) -> None:
        """What happens after the entry before this one, up to this one."""
        end = self._inputs[place].now
        at = self._inputs[place - 1].now if place else end
        while (moment := self._next_change_time(at, place)) is not None and moment < end:
            at = moment
            self._decide_at(place, at, journalled=False)
        self._decide_at(place, end, journalled=True)

    def _decide_at(self, place: int, at: datetime, *, journalled: bool) -> None:
        self._events += 1
        inputs = self._situation(place, at, journalled=journalled)
        choice = decide_training(inputs)
        self._slot = due_slot(inputs) or self._slot
        if isinstance(choice, TrainNow):
            self.jobs.append(ModelledJob(at, choice.reason))
            self._taken = self._count(at, place)
            self._busy_until = at + self._cycle

    def _situation(self, place: int, at: datetime, *, journalled: bool) -> TriggerInputs:
        seen = self._inputs[place if journalled else place - 1]
        busy = self._busy_until is not None and at < self._busy_until
        return replace(
            seen,
            now=at,
            rules=self._change(seen.rules),
            deployed=seen.deployed if journalled and not busy else None,
            manual=seen.manual if journalled and not busy else (),
            new=int(self._count(at, place) - self._taken + 1e-6),
            last_slot=self._slot,
            active=(ActiveJob("modelled", "", seen.newest_seq),) if busy else (),
            pool=self._pools[place],
            pending=None,
        )

    def _next_change_time(self, at: datetime, place: int) -> datetime | None:
        """When something may change next: the threshold is reached, the schedule comes, a job has ended."""
        if self._events >= _MOST_EVENTS or place == 0:
            return None
        rules = self._change(self._inputs[place].rules)
        wanted = [self._taken + times * rules.threshold for times in (1, 2)]
        found = [self._time_of_count(count, place) for count in wanted]
        found.append(self._busy_until)
        if rules.schedule is not None:
            found.append(parse_cron(rules.schedule).next(at))
        return min((each for each in found if each is not None and each > at), default=None)

    def _count(self, at: datetime, place: int) -> float:
        """How many have arrived by then."""
        upto = self._arrived[place]
        begin, end = self._inputs[max(0, place - 1)].now, self._inputs[place].now
        if not begin < end or at >= end:
            return upto
        before = self._arrived[max(0, place - 1)]
        return before + (upto - before) * ((at - begin) / (end - begin))

    def _time_of_count(self, count: float, place: int) -> datetime | None:
        """When so many have arrived; None: not between these two entries."""
        before, upto = self._arrived[place - 1], self._arrived[place]
        if not before < count <= upto:
            return None
        begin, end = self._inputs[place - 1].now, self._inputs[place].now
        moment = begin + (end - begin) * ((count - before) / (upto - before))
        return moment + timedelta(microseconds=1)  # by then it has come, however it is rounded


def _arrivals(entries: Sequence[tuple[TriggerInputs, str]]) -> list[float]:
    """How many trajectories had come at each entry, counted on through all jobs."""
    counts: list[float] = []
    for place, (inputs, _) in enumerate(entries):
        if not place:
            counts.append(float(inputs.new))
            continue
        before, kind = entries[place - 1]
        trained = kind not in _WAITS
        counts.append(counts[-1] + max(0, inputs.new - (0 if trained else before.new)))
    return counts


def _known_pools(inputs: Sequence[TriggerInputs]) -> list[Learnable | None]:
    """What there was to learn from at each entry; where nobody asked, as the next that did says, else the last."""
    found: list[Learnable | None] = [each.pool for each in inputs]
    for place in reversed(range(len(found) - 1)):
        found[place] = found[place] or found[place + 1]
    for place in range(1, len(found)):
        found[place] = found[place] or found[place - 1]
    return found


def usual_cycle(
    entries: Sequence[tuple[TriggerInputs, str]], known: Sequence[timedelta] = ()
) -> timedelta:
    """How long a job and its rollout keep the trigger waiting.

    The median of those that are `known`; but at least as long as the journal saw one run, and no longer than until it
    saw none.
    """
    expected = _median([each for each in known if each > timedelta()] or [_USUAL_CYCLE])
    lengths: list[timedelta] = []
    begun: datetime | None = None
    least = timedelta()
    for inputs, kind in entries:
        if begun is not None and inputs.now > begun:
            if inputs.active or inputs.pending is not None:
                least = inputs.now - begun
            else:
                lengths.append(min(max(expected, least), inputs.now - begun))
                begun = None
        if kind not in _WAITS:
            begun, least = inputs.now, timedelta()
    if begun is not None:
        lengths.append(max(expected, least))
    return _median(lengths) if lengths else expected


def _median(lengths: Sequence[timedelta]) -> timedelta:
    return timedelta(seconds=median(each.total_seconds() for each in lengths))


def _kind(choice: TriggerDecision) -> str:
    return choice.reason if isinstance(choice, TrainNow) else choice.kind.value


def _replayed(choice: TriggerDecision) -> ReplayedDecision:
    if isinstance(choice, TrainNow):
        algorithm = f" with {choice.algorithm}" if choice.algorithm else ""
        return ReplayedDecision("train", f"{choice.reason}{algorithm}", choice.sentence)
    return ReplayedDecision("wait", choice.kind.value, choice.sentence)


def _sentence(journalled: int, then: Sequence[ModelledJob], now: Sequence[ModelledJob]) -> str:
    more = len(now) - len(then)
    many = f"{abs(more)} training job{'' if abs(more) == 1 else 's'}"
    change = f"{many} {'more' if more > 0 else 'fewer'}" if more else "as many training jobs"
    said = f"{change} ({len(now)} instead of {len(then)}, modelled; the journal has {journalled})"
    if then and now and then[0].at != now[0].at:
        hours = (now[0].at - then[0].at) / timedelta(hours=1)
        said += f"; the first {abs(hours):.1f} h {'later' if hours > 0 else 'earlier'}"
    return f"{said[0].upper()}{said[1:]}."
