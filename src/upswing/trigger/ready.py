"""Is there something to learn from, and which algorithm fits it?

| there is                                                      | algorithm                         |
|---------------------------------------------------------------|-----------------------------------|
| a configured algorithm, and what it needs                     | that one                          |
| 32 groups or more in which somebody did better than another   | grpo: attempts are compared       |
| fewer; successes are rarer than 1 in 20, but 20 or more       | rft: imitates them                |
| fewer; 100 single attempts or more with different outcomes    | reinforce, each beside its domain |
| fewer; 20 thumbs up and 20 down or more                       | kto: learns from thumbs           |
| fewer; 20 confirmed successes or more                         | rft                               |
| anything else                                                 | none: it waits, and says for what |

Production rarely repeats a task, so single attempts have to do where groups are few. What nobody
can learn from starts no job, however much of it there is.
"""

from __future__ import annotations

from dataclasses import dataclass

from upswing.contracts.training import Algorithm
from upswing.dataset.groups import ENOUGH_GROUPS, MIN_AGENTS, MIN_ATTEMPTS, Learnable

COMPARING = frozenset({"grpo", "rloo", "dpo"})
"""Algorithms that compare the attempts of a group; the others learn from single trajectories."""
_SINGLES, _THUMBS, _SUCCESSES, _RARE = 100, 20, 20, 0.05


@dataclass(frozen=True, slots=True)
class Minimums:
    """What the config asks for."""

    trajectories: int = 100
    groups: int = ENOUGH_GROUPS
    """Groups with a difference in them that make comparing worthwhile."""
    agents: int = MIN_AGENTS
    attempts: int = MIN_ATTEMPTS


@dataclass(frozen=True, slots=True)
class Readiness:
    """The answer, and what is missing."""

    ready: bool
    reason: str
    algorithm: Algorithm | None = None
    """What fits; None when nothing does."""
    why: str = ""
    """Why this algorithm."""


def readiness(
    there: Learnable, minimums: Minimums, configured: Algorithm | None = None
) -> Readiness:
    """Whether there is enough, and for which algorithm.

    >>> readiness(Learnable(trajectories=250, groups=40, usable=33), Minimums()).algorithm
    'grpo'
    >>> readiness(Learnable(trajectories=40), Minimums()).reason
    '40 of 100 trajectories; 0 of 32 groups of attempts in which one did better than another; 0 of 100 single attempts with a stated outcome.'
    """
    missing = []
    if not there.trajectories >= minimums.trajectories:
        missing.append(f"{there.trajectories} of {minimums.trajectories} trajectories")
    algorithm, why = pick(there, minimums, configured)
    if algorithm is None:
        missing.append(_lacking(there, minimums, configured))
    if missing:
        return Readiness(False, "; ".join(missing) + ".", algorithm, why)
    return Readiness(True, "Ready to train!", algorithm, why)


def pick(
    there: Learnable, minimums: Minimums, configured: Algorithm | None = None
) -> tuple[Algorithm | None, str]:
    """The table."""
    if configured is not None:
        enough = there.usable >= 1 if configured in COMPARING else there.told >= 1
        return (configured, "as configured") if enough else (None, "")
    one = there.usable == 1
    groups = f"{there.usable} group{'' if one else 's'} of attempts {'has' if one else 'have'} a difference in {'it' if one else 'them'}"
    if there.usable >= minimums.groups:
        return "grpo", groups
    few = f"only {groups}, less than {minimums.groups}"
    rate = there.successes / there.told if there.told else 0.0
    if there.successes >= _SUCCESSES and rate < _RARE:
        return "rft", f"{few}, and {there.successes} successes of {there.told} are rare"
    if there.told >= _SINGLES and there.varied:
        return "reinforce", f"{few}, but {there.told} single attempts have a stated outcome"
    if min(there.thumbs_up, there.thumbs_down) >= _THUMBS:
        return "kto", f"{few}, but users gave {there.thumbs_up} thumbs up, {there.thumbs_down} down"
    if there.successes >= _SUCCESSES:
        return "rft", f"{few}, but {there.successes} successes are confirmed"
    return None, ""


def _lacking(there: Learnable, minimums: Minimums, configured: Algorithm | None) -> str:
    """What there is not enough of, and what becomes of what there is."""
    if configured is not None and configured not in COMPARING:
        return f"no trajectory has a stated outcome, which {configured} learns from"
    wanted = minimums.groups if configured is None else 1
    found = [
        f"{there.usable} of {_groups(wanted)} of attempts in which one did better than another"
    ]
    if there.flat:
        found.append(f"{_groups(there.flat)} flat: all attempts went alike")
    if there.identical:
        found.append(
            f"{_groups(there.identical)} with the same answer again and again: "
            "are agents asking at temperature 0? `explore` in [gateway] tries others"
        )
    if there.unscored:
        found.append(f"{_groups(there.unscored)} of which nobody says how well they went")
    if configured is None:
        found.append(f"{there.told} of {_SINGLES} single attempts with a stated outcome")
    return "; ".join(found)


def _groups(count: int) -> str:
    return f"{count} group" if count == 1 else f"{count} groups"
