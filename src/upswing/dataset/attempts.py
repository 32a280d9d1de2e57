"""From which single attempts does an algorithm learn something? What the job finds, before there is one.

| algorithm  | an attempt teaches something when                                                         |
|------------|-------------------------------------------------------------------------------------------|
| reinforce  | others of its group did better or worse; where it stands alone, others of its domain that |
|            | stand alone did; in both, only those that the same source scores                          |
| rft, sft   | it succeeded, and the policy that is trained does not do so anyway: another attempt at    |
|            | the same failed, or it stands alone and something of its domain failed, or another model  |
|            | made it; or somebody showed what would have been right                                    |

Groups, which the other algorithms compare, are told in `upswing.dataset.groups`. A policy that always
says the same learns nothing from hearing it once more, whether that was right or wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass

from upswing.dataset.scoring import MIN_SPREAD, spread

SUCCESS_SCORE = 0.5
"""Score from which an attempt counts as a success."""


@dataclass(frozen=True, slots=True)
class ScoredAttempt:
    """A single attempt of which somebody says how well it went."""

    trajectory_id: str
    group: str
    """The same task by the same policy, or the same window and scenario."""
    domain: str
    task: str
    model: str
    """Who acted."""
    score: float
    scale: str = ""
    """Whose score it is: only those of one scale are compared."""

    @property
    def success(self) -> bool:
        return self.score >= SUCCESS_SCORE


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """How many tasks were always solved, sometimes or never."""

    always: int = 0
    sometimes: int = 0
    never: int = 0

    @property
    def sentence(self) -> str:
        """For a person; empty when no task is known.

        >>> TaskCounts(40, 3, 130).sentence
        'Of 173 tasks 40 are always solved, 3 sometimes and 130 never.'
        """
        whole = self.always + self.sometimes + self.never
        if not whole:
            return ""
        if whole == 1:
            return f"The one task is {'always' if self.always else 'sometimes' if self.sometimes else 'never'} solved."
        return (
            f"Of {whole} tasks {self.always} are always solved, {self.sometimes} sometimes and "
            f"{self.never} never."
        )


def count_tasks(attempts: Iterable[ScoredAttempt]) -> TaskCounts:
    """How often each task was solved."""
    kinds = [{each.success for each in tries} for tries in _group_by(attempts, lambda e: e.task)]
    return TaskCounts(
        sum(kind == {True} for kind in kinds),
        sum(len(kind) > 1 for kind in kinds),
        sum(kind == {False} for kind in kinds),
    )


def count_comparable(attempts: Sequence[ScoredAttempt]) -> int:
    """Attempts that reinforce learns from."""
    together, alone = _comparison_sets(attempts)
    return sum(len(circle) for circle in (*together, *alone) if _scores_differ(circle))


def count_imitable(
    attempts: Sequence[ScoredAttempt],
    own_policies: Collection[str] | None = None,
    demonstrated_ids: Collection[str] = (),
) -> int:
    """Successes that imitating learns from; `own_policies` are the policies that are trained, None: all are.

    Those that are `demonstrated_ids` are not counted: there it is imitated what somebody showed to be right.
    """
    together, alone = _comparison_sets(attempts)
    return sum(
        each.success
        and each.trajectory_id not in demonstrated_ids
        and ((own_policies is not None and each.model not in own_policies) or failed)
        for circle in (*together, *alone)
        for failed in [not all(other.success for other in circle)]
        for each in circle
    )


def _comparison_sets(
    attempts: Sequence[ScoredAttempt],
) -> tuple[list[list[ScoredAttempt]], list[list[ScoredAttempt]]]:
    """Who is compared with whom, on one scale: groups, and by domain those that stand alone in theirs."""
    groups = _group_by(attempts, lambda each: (each.group, each.scale))
    lonely = [members[0] for members in groups if len(members) == 1]
    return [members for members in groups if len(members) > 1], _group_by(
        lonely, lambda each: (each.domain, each.scale)
    )


def _group_by(
    attempts: Iterable[ScoredAttempt], key: Callable[[ScoredAttempt], Hashable]
) -> list[list[ScoredAttempt]]:
    found: dict[Hashable, list[ScoredAttempt]] = {}
    for each in attempts:
        found.setdefault(key(each), []).append(each)
    return list(found.values())


def _scores_differ(attempts: Sequence[ScoredAttempt]) -> bool:
    return spread(each.score for each in attempts) >= MIN_SPREAD
