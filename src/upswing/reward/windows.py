"""Which attempts are compared with each other, and is there something to learn from them?

What makes a group, and who scores it, is told in `upswing.dataset.groups` and
`upswing.dataset.scoring`; training selects with the same functions. A trajectory that broke because
the infrastructure did is kept and counted, and does not make a group larger.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from upswing.contracts.steps import field, number, tree
from upswing.dataset.groups import MIN_AGENTS, MIN_ATTEMPTS, Group, compared, gathered
from upswing.dataset.scoring import Source
from upswing.ports import ScoredMember

_PNL = ("pnl", "finalPnL", "totalPnL", "profit")
_BALANCE = ("finalBalance", "balance")
_INITIAL = ("initialBalance", "startingBalance", "startBalance")


Member = ScoredMember
"""One trajectory of a group, as far as comparing needs it."""


@dataclass(frozen=True, slots=True)
class EnvironmentNumbers:
    """What the world says the agent ended with."""

    pnl: float | None
    balance: float | None


@dataclass(frozen=True, slots=True)
class Spread:
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
    """Every trajectory, best reward first; those with an infrastructure fault come last."""
    agents: int
    """Different agents with a trajectory that counts."""
    infra_errors: int
    rewards: Spread | None
    pnl: Spread | None
    ready: bool
    """Whether it can be trained on: large enough, scored, and with a difference in it."""
    sentence: str
    scored_by: str | None = None
    """Whose word counts: `verified`, `judge`, `reported` or `feedback`; None: nobody's."""
    attempts: int = 0
    """Trajectories that count."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether there is anything to train on."""

    ready: bool
    sentence: str


def environment_numbers(body: Mapping[str, Any]) -> EnvironmentNumbers:
    """Balance and P&L of a trajectory; without a P&L it is balance minus initial balance.

    >>> environment_numbers({"metadata": {"environment": {"balance": 1200, "initial_balance": 1000}}})
    EnvironmentNumbers(pnl=200, balance=1200)
    """
    world = tree(tree(body.get("metadata")).get("environment"))
    balance = _first(world, _BALANCE)
    pnl, initial = _first(world, _PNL), _first(world, _INITIAL)
    if pnl is None and balance is not None and initial is not None:
        pnl = balance - initial
    return EnvironmentNumbers(pnl, balance)


def report(
    members: Iterable[Member], min_agents: int = MIN_AGENTS, min_attempts: int = MIN_ATTEMPTS
) -> list[WindowReport]:
    """One report per group, newest window first."""
    groups = [
        _report(key, tuple(each), min_agents, min_attempts) for key, each in gathered(members)
    ]
    return sorted(groups, key=lambda group: (group.window_id, group.scenario_id), reverse=True)


def readiness(reports: Sequence[WindowReport], min_windows: int = 1) -> Readiness:
    """Whether enough groups are ready, and if not, what is missing."""
    ready = sum(each.ready for each in reports)
    if ready >= min_windows:
        return Readiness(True, f"Ready to train: {_count(ready, 'group')} can be trained on.")
    if not reports:
        return Readiness(False, "No groups found: nothing has been recorded yet.")
    if ready:
        return Readiness(
            False, f"{_count(ready, 'group')} ready, {_count(min_windows, 'group')} needed."
        )
    nearest = max(reports, key=lambda each: (each.attempts, each.window_id))
    return Readiness(False, f"No group is ready; nearest is {_name(nearest)}: {nearest.sentence}")


def render(reports: Sequence[WindowReport], min_windows: int = 1) -> list[str]:
    """The reports for a person, line by line."""
    lines: list[str] = []
    for each in reports:
        lines += [f"{_name(each)}: {each.sentence}", *_member_lines(each), ""]
    state = readiness(reports, min_windows)
    lines.append(f"Groups that can be trained on: {sum(each.ready for each in reports)}")
    lines.append("✅ READY FOR TRAINING!" if state.ready else f"Not ready: {state.sentence}")
    return lines


def to_json(reports: Sequence[WindowReport], min_windows: int = 1) -> dict[str, Any]:
    """The reports for a machine."""
    return {
        "windows": [asdict(each) for each in reports],
        "readyWindows": sum(each.ready for each in reports),
        "readiness": asdict(readiness(reports, min_windows)),
    }


def _report(
    key: str, members: tuple[Member, ...], min_agents: int, min_attempts: int
) -> WindowReport:
    sound = [each for each in members if not each.infra_error]
    group = (
        compared(key, sound, min_agents=min_agents, min_attempts=min_attempts) if sound else None
    )
    rewards = _spread([each.reward for each in sound])
    newest = max(members, key=lambda each: each.seq)
    return WindowReport(
        newest.window_id,
        newest.scenario_id if newest.continuous else key,
        members=tuple(sorted(members, key=_best_first)),
        agents=group.agents if group else 0,
        infra_errors=len(members) - len(sound),
        rewards=rewards,
        pnl=_spread([each.pnl for each in sound]),
        ready=group is not None and group.usable,
        sentence=_sentence(group, members, rewards, min_agents, min_attempts),
        scored_by=str(group.scored.source) if group and group.scored else None,
        attempts=len(sound),
    )


def _sentence(
    group: Group | None, members: Sequence[Member], rewards: Spread | None, min_agents: int, min_attempts: int
) -> str:  # fmt: skip
    continuous = members[0].continuous
    have, least, thing = (
        (group.agents if group else 0, min_agents, "agent")
        if continuous
        else (group.size if group else 0, min_attempts, "attempt")
    )
    parts = [_count(have, thing) + ("" if have >= least else f" of {least} needed")]
    if rewards:
        parts.append(f"rewards {rewards.low:.2f} to {rewards.high:.2f}, mean {rewards.mean:.2f}")
    if group is not None and group.enough:
        parts.append(_scored(group))
    unscored = sum(each.reward is None and not each.infra_error for each in members)
    if unscored:
        parts.append(f"{unscored} not scored yet")
    broken = sum(each.infra_error for each in members)
    if broken:
        parts.append(f"{broken} left out because the infrastructure failed")
    return "; ".join(parts) + "."


def _scored(group: Group) -> str:
    if group.scored is None:
        return "nobody says how well they went, so there is nothing to compare"
    if group.scored.flat:
        alike = "all gave the same answer" if group.identical else "nobody did better than another"
        return f"scored by {_SAID[group.scored.source]}: {alike}, so there is nothing to learn"
    return f"scored by {_SAID[group.scored.source]}"


_SAID = {
    Source.VERIFIED: "verified outcomes",
    Source.JUDGE: "the judge",
    Source.REPORTED: "reported outcomes",
    Source.FEEDBACK: "users' feedback",
}


def _member_lines(window: WindowReport) -> list[str]:
    width = max(len(each.agent_id) for each in window.members)
    best = window.members[0].trajectory_id if window.agents > 1 else None
    return [
        f"  {each.agent_id:<{width}}  reward {_reward(each)}  P&L {_money(each.pnl)}"
        + ("  infrastructure fault" if each.infra_error else "")
        + ("  best" if each.trajectory_id == best and each.reward is not None else "")
        for each in window.members
    ]


def _best_first(member: Member) -> tuple[bool, float, float, str]:
    reward = float("-inf") if member.reward is None else member.reward
    pnl = float("-inf") if member.pnl is None else member.pnl
    return member.infra_error, -reward, -pnl, member.trajectory_id


def _spread(numbers: Iterable[float | None]) -> Spread | None:
    told = [each for each in numbers if each is not None]
    return Spread(min(told), sum(told) / len(told), max(told)) if told else None


def _first(world: Mapping[str, Any], names: Sequence[str]) -> float | None:
    return next((n for name in names if (n := number(field(world, name))) is not None), None)


def _name(window: WindowReport) -> str:
    if not window.members[0].continuous:
        return window.scenario_id
    same = window.scenario_id == window.window_id
    return window.window_id if same else f"{window.window_id} / {window.scenario_id}"


def _reward(member: Member) -> str:
    return "   –" if member.reward is None else f"{member.reward:.2f}"


def _money(amount: float | None) -> str:
    return "–" if amount is None else f"{'-' if amount < 0 else '+'}${abs(amount):,.2f}"


def _count(number_of: int, thing: str) -> str:
    return f"{number_of} {thing}" + ("" if number_of == 1 else "s")
