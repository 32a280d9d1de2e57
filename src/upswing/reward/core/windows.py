"""Which attempts are compared with each other, and is there something to learn from them?

What makes a group, and who scores it, is told in `upswing.dataset.groups` and
`upswing.dataset.scoring`; training selects with the same functions. A trajectory that broke because
the infrastructure did is kept and counted, and does not make a group larger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from upswing.contracts.steps import finite_number_or_none, object_or_wrapped
from upswing.contracts.steps import first_present_field as part
from upswing.dataset.groups import (
    MIN_AGENTS,
    MIN_ATTEMPTS,
    AttemptGroup,
    compare_group,
    split_into_groups,
)
from upswing.dataset.scoring import ScoreSource, spread
from upswing.errors import count_phrase
from upswing.records import ScoredMember

_PNL = ("pnl", "finalPnL", "totalPnL", "profit")
_BALANCE = ("finalBalance", "balance")
_INITIAL = ("initialBalance", "startingBalance", "startBalance")


MOST = 20
"""Groups that a person is shown, unless all are asked for."""
Member = ScoredMember
"""One trajectory of a group, as far as comparing needs it."""


@dataclass(frozen=True, slots=True)
class EnvironmentNumbers:
    """What the world says the agent ended with."""

    pnl: float | None
    balance: float | None


@dataclass(frozen=True, slots=True)
class NumberRange:
    """Lowest, mean and highest of some numbers."""

    low: float
    mean: float
    high: float


@dataclass(frozen=True, slots=True)
class WindowReport:
    """One group, and whether it can be trained on."""

    window_id: str
    scenario_id: str
    members: tuple[Member, ...]
    """Every trajectory, best score first; those with an infrastructure fault come last."""
    agents: int
    """Different agents with a trajectory that counts."""
    infra_errors: int
    rewards: NumberRange | None
    pnl: NumberRange | None
    ready: bool
    """Whether it can be trained on: large enough, scored, and with a difference in it."""
    sentence: str
    scored_by: str | None = None
    """Whose word counts: `verified`, `judge`, `reported` or `feedback`; None: nobody's."""
    attempts: int = 0
    """Trajectories that count."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """What decides, from 0 to 1, by trajectory: what `scored_by` says of it."""

    @property
    def difference(self) -> float:
        """How much the scores differ."""
        return spread(self.scores.values())


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether there is enough to train on, by the loop's own rule or by a number that was asked for."""

    ready: bool
    sentence: str


def environment_numbers(body: Mapping[str, Any]) -> EnvironmentNumbers:
    """Balance and P&L of a trajectory; without a P&L it is balance minus initial balance.

    >>> environment_numbers({"metadata": {"environment": {"balance": 1200, "initial_balance": 1000}}})
    EnvironmentNumbers(pnl=200, balance=1200)
    """
    world = object_or_wrapped(object_or_wrapped(body.get("metadata")).get("environment"))
    balance = _first_number(world, _BALANCE)
    pnl, initial = _first_number(world, _PNL), _first_number(world, _INITIAL)
    if pnl is None and balance is not None and initial is not None:
        pnl = balance - initial
    return EnvironmentNumbers(pnl, balance)


def report_windows(
    members: Iterable[Member], min_agents: int = MIN_AGENTS, min_attempts: int = MIN_ATTEMPTS
) -> list[WindowReport]:
    """One report per group, newest window first."""
    groups = [
        _report_group(key, tuple(each), min_agents, min_attempts)
        for key, each in split_into_groups(members)
    ]
    return sorted(groups, key=lambda group: (group.window_id, group.scenario_id), reverse=True)


def window_readiness(reports: Sequence[WindowReport], min_windows: int) -> Readiness:
    """Whether so many groups can be trained on, whatever else the loop asks for."""
    ready = sum(each.ready for each in reports)
    if ready >= min_windows:
        return Readiness(True, f"{count_phrase(ready, 'group')} can be trained on.")
    if not reports:
        return Readiness(False, "No groups found: nothing has been recorded yet.")
    if ready:
        return Readiness(
            False,
            f"{count_phrase(ready, 'group')} ready, {count_phrase(min_windows, 'group')} needed.",
        )
    nearest = max(reports, key=lambda each: (each.attempts, each.window_id))
    return Readiness(
        False, f"No group is ready; nearest is {_window_label(nearest)}: {nearest.sentence}"
    )


def render_windows(
    reports: Sequence[WindowReport], state: Readiness, *, limit: int | None = MOST
) -> list[str]:
    """The reports for a person, line by line: a summary, then the most telling groups, as far as asked for."""
    ready = sum(each.ready for each in reports)
    lines = [
        f"✅ READY FOR TRAINING! {state.sentence}"
        if state.ready
        else f"Not ready: {state.sentence}",
        f"Groups that can be trained on: {ready}",
        *_not_ready_lines(reports),
    ]
    ordered = sorted(reports, key=lambda each: (not each.ready, -each.difference, -each.attempts))
    shown = ordered[:limit]
    for each in shown:
        lines += ["", f"{_window_label(each)}: {each.sentence}", *_member_lines(each)]
    if rest := ordered[len(shown) :]:
        more = "group" if not shown else "more group"
        hint = "`--rows` shows the most telling, `--all` all" if not shown else "`--all` shows them"
        usable = sum(each.ready for each in rest)
        lines += [
            "",
            f"{count_phrase(len(rest), more)}, of which {usable} can be trained on: {hint}.",
        ]
    return lines


def _not_ready_lines(reports: Sequence[WindowReport]) -> list[str]:
    """Why the others cannot, the most frequent reason first."""
    why = Counter(each.sentence for each in reports if not each.ready)
    lines = [
        f"  {count_phrase(number, 'group')}: {sentence}" for sentence, number in why.most_common(3)
    ]
    rest = sum(why.values()) - sum(number for _, number in why.most_common(3))
    return [*lines, *([f"  {count_phrase(rest, 'group')}: for other reasons"] if rest else [])]


def windows_json(reports: Sequence[WindowReport], state: Readiness) -> dict[str, Any]:
    """The reports for a machine."""
    return {
        "windows": [asdict(each) for each in reports],
        "readyWindows": sum(each.ready for each in reports),
        "readiness": asdict(state),
    }


def _report_group(
    key: str, members: tuple[Member, ...], min_agents: int, min_attempts: int
) -> WindowReport:
    sound = [each for each in members if not each.infra_error]
    group = (
        compare_group(key, sound, min_agents=min_agents, min_attempts=min_attempts)
        if sound
        else None
    )
    rewards = _range_of([each.reward for each in sound])
    scores = dict(group.scored.scores) if group and group.scored else {}
    newest = max(members, key=lambda each: each.seq)
    return WindowReport(
        newest.window_id,
        newest.scenario_id if newest.continuous else key,
        members=tuple(sorted(members, key=lambda each: _rank_key(each, scores))),
        agents=group.agents if group else 0,
        infra_errors=len(members) - len(sound),
        rewards=rewards,
        pnl=_range_of([each.pnl for each in sound]),
        ready=group is not None and group.usable,
        sentence=_group_sentence(group, members, min_agents, min_attempts),
        scored_by=str(group.scored.source) if group and group.scored else None,
        attempts=len(sound),
        scores=scores,
    )


def _group_sentence(
    group: AttemptGroup | None, members: Sequence[Member], min_agents: int, min_attempts: int
) -> str:
    continuous = members[0].continuous
    have, least, thing = (
        (group.agents if group else 0, min_agents, "agent")
        if continuous
        else (group.size if group else 0, min_attempts, "attempt")
    )
    parts = [count_phrase(have, thing) + ("" if have >= least else f" of {least} needed")]
    if group is not None and group.enough:
        parts.append(_scoring_text(group))
    unscored = sum(each.reward is None and not each.infra_error for each in members)
    if unscored:
        parts.append(f"{unscored} not scored yet")
    broken = sum(each.infra_error for each in members)
    if broken:
        parts.append(f"{broken} left out because the infrastructure failed")
    return "; ".join(parts) + "."


def _scoring_text(group: AttemptGroup) -> str:
    if group.scored is None:
        return "nobody says how well they went, so there is nothing to compare"
    if group.scored.flat:
        alike = "all gave the same answer" if group.identical else "nobody did better than another"
        return f"scored by {_SOURCE_LABELS[group.scored.source]}: {alike}, so there is nothing to learn"
    scores = group.scored.scores.values()
    return (
        f"scored by {_SOURCE_LABELS[group.scored.source]}, {min(scores):.2f} to {max(scores):.2f}"
    )


_SOURCE_LABELS = {
    ScoreSource.VERIFIED: "verified outcomes",
    ScoreSource.JUDGE: "the judge",
    ScoreSource.REPORTED: "what the agents themselves report",
    ScoreSource.FEEDBACK: "users' feedback",
}


_SCORER_LABELS: dict[str, str] = {
    ScoreSource.REPORTED: "reported by the agent itself",
    ScoreSource.FEEDBACK: "users' feedback",
}
"""Beside one attempt; the others are called by their name."""


def _member_lines(window: WindowReport) -> list[str]:
    width = max(len(each.agent_id) for each in window.members)
    best = window.members[0].trajectory_id if window.ready else None
    return [
        f"  {each.agent_id:<{width}}  {_member_score_text(each, window)}"
        + ("" if each.pnl is None else f"  P&L {_format_money(each.pnl)}")
        + ("  infrastructure fault" if each.infra_error else "")
        + ("  best" if each.trajectory_id == best else "")
        for each in window.members
    ]


def _member_score_text(member: Member, window: WindowReport) -> str:
    """What decides, and who says it; the total reward is for people and decides nothing."""
    score = window.scores.get(member.trajectory_id)
    if score is None:
        return "nobody says how it went"
    return f"{_SCORER_LABELS.get(window.scored_by or '', window.scored_by)} {score:.2f}"


def _rank_key(member: Member, scores: Mapping[str, float]) -> tuple[bool, float, float, str]:
    worst = float("-inf")
    score = scores.get(member.trajectory_id, worst)
    pnl = worst if member.pnl is None else member.pnl
    return member.infra_error, -score, -pnl, member.trajectory_id


def _range_of(numbers: Iterable[float | None]) -> NumberRange | None:
    known = [each for each in numbers if each is not None]
    return NumberRange(min(known), sum(known) / len(known), max(known)) if known else None


def _first_number(world: Mapping[str, Any], names: Sequence[str]) -> float | None:
    return next(
        (n for name in names if (n := finite_number_or_none(part(world, name))) is not None), None
    )


def _window_label(window: WindowReport) -> str:
    if not window.members[0].continuous:
        return window.scenario_id
    same = window.scenario_id == window.window_id
    return window.window_id if same else f"{window.window_id} / {window.scenario_id}"


def _format_money(amount: float) -> str:
    return f"{'-' if amount < 0 else '+'}${abs(amount):,.2f}"
