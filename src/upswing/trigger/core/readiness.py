"""Is there something to learn from, and which algorithm fits it?

| there is                                                      | algorithm                         |
|---------------------------------------------------------------|-----------------------------------|
| a configured algorithm, and what it needs                     | that one                          |
| 32 groups or more in which somebody did better than another   | grpo: attempts are compared       |
| fewer; successes are rarer than 1 in 20, but 20 or more       | rft: imitates them                |
| fewer; 100 single attempts or more that can be told apart     | reinforce, each beside its group, |
|                                                               | or its domain                     |
| fewer; 20 thumbs up and 20 down or more                       | kto: learns from thumbs           |
| fewer; 20 confirmed successes or more that are news           | rft                               |
| anything else                                                 | none: it waits, and says for what |

Production rarely repeats a task, so single attempts have to do where groups are few. What nobody
can learn from starts no job, however much of it there is: whether an attempt teaches anything is
counted as the job itself would find it (`upswing.dataset.attempts`).

Where the threshold finds half of the groups or more, it waits for the others until twice as much has come.

A configured algorithm begins with the first group or attempt that teaches it something; an algorithm
that a person asks for needs as much as the table says, or the person insists.
"""

from __future__ import annotations

from dataclasses import dataclass

from upswing.contracts.training import Algorithm
from upswing.dataset.groups import ENOUGH_GROUPS, MIN_AGENTS, MIN_ATTEMPTS, Learnable

COMPARING = frozenset({"grpo", "rloo", "dpo"})
"""Algorithms that compare the attempts of a group; the others learn from single trajectories."""
_SINGLES, _THUMBS, _SUCCESSES, _RARE = 100, 20, 20, 0.05
_THINGS = {
    **dict.fromkeys(COMPARING, "groups of attempts in which one did better than another"),
    "reinforce": "single attempts that can be told apart",
    "ppo": "attempts with different outcomes",
    "kto": "good attempts, and as many bad ones",
    "rft": "confirmed successes that are news to the policy",
    "sft": "confirmed successes that are news to the policy",
}


@dataclass(frozen=True, slots=True)
class DataMinimums:
    """What the config asks for."""

    trajectories: int = 100
    groups: int = ENOUGH_GROUPS
    """Groups with a difference in them that make comparing worthwhile."""
    agents: int = MIN_AGENTS
    attempts: int = MIN_ATTEMPTS


@dataclass(frozen=True, slots=True)
class TrainingReadiness:
    """The answer, and what is missing."""

    ready: bool
    reason: str
    algorithm: Algorithm | None = None
    """What fits; None when nothing does."""
    why: str = ""
    """Why this algorithm."""


def training_readiness(
    there: Learnable,
    minimums: DataMinimums,
    configured: Algorithm | None = None,
    *,
    requested: Algorithm | None = None,
) -> TrainingReadiness:
    """Whether there is enough for the algorithm that is `asked` for, else `configured`, else that fits.

    >>> training_readiness(Learnable(trajectories=250, groups=40, usable=33), DataMinimums()).algorithm
    'grpo'
    >>> training_readiness(Learnable(trajectories=40, with_outcome=40, good=9), DataMinimums()).reason
    '40 of 100 trajectories; 0 of 32 groups of attempts in which one did better than another; 0 of 100 single attempts that can be told apart.'
    """
    missing = []
    if not there.trajectories >= minimums.trajectories:
        missing.append(f"{there.trajectories} of {minimums.trajectories} trajectories")
    if requested is not None and requested != configured:
        least = _min_needed(requested, minimums)
        algorithm, why = (
            (requested, "as asked") if there.usable_by(requested) >= least else (None, "")
        )
        lacking = {requested: least}
    else:
        algorithm, why = pick_algorithm(there, minimums, configured)
        usual: dict[Algorithm, int] = {"grpo": minimums.groups, "reinforce": _SINGLES}
        lacking = usual if configured is None else {configured: 1}
    if algorithm is None:
        found = [
            _progress_text(there.usable_by(name), least, name) for name, least in lacking.items()
        ]
        missing += [*found, *there.reasons()]
    if missing:
        return TrainingReadiness(False, "; ".join(missing) + ".", algorithm, why)
    return TrainingReadiness(True, "Ready to train!", algorithm, why)


def pick_algorithm(
    there: Learnable, minimums: DataMinimums, configured: Algorithm | None = None
) -> tuple[Algorithm | None, str]:
    """The table."""
    if configured is not None:
        return (configured, "as configured") if there.usable_by(configured) else (None, "")
    one = there.usable == 1
    groups = f"{there.usable} group{'' if one else 's'} of attempts {'has' if one else 'have'} a difference in {'it' if one else 'them'}"
    if there.usable >= minimums.groups:
        return "grpo", groups
    few = f"only {groups}, less than {minimums.groups}"
    rate = there.successes / there.with_outcome if there.with_outcome else 0.0
    if there.imitable >= _SUCCESSES and rate < _RARE:
        return "rft", f"{few}, and {there.successes} successes of {there.with_outcome} are rare"
    if there.singles >= _SINGLES:
        return "reinforce", f"{few}, but {there.singles} single attempts can be told apart"
    if min(there.thumbs_up, there.thumbs_down) >= _THUMBS:
        return "kto", f"{few}, but users gave {there.thumbs_up} thumbs up, {there.thumbs_down} down"
    if there.imitable >= _SUCCESSES:
        return "rft", f"{few}, but {there.imitable} confirmed successes are news to the policy"
    return None, ""


def _min_needed(algorithm: Algorithm, minimums: DataMinimums) -> int:
    """How much an algorithm needs that nobody configured."""
    if algorithm in COMPARING:
        return minimums.groups
    usual = _SINGLES if algorithm in {"reinforce", "ppo"} else _SUCCESSES
    return min(usual, minimums.trajectories)


def _progress_text(there: int, least: int, algorithm: Algorithm) -> str:
    """So many of so many.

    >>> _progress_text(0, 1, "grpo"), _progress_text(7, 20, "rft")
    ('0 of 1 group of attempts in which one did better than another', '7 of 20 confirmed successes that are news to the policy')
    """
    thing = _THINGS[algorithm]
    return f"{there} of {least} {thing.replace('groups', 'group') if least == 1 else thing}"
