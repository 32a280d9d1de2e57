"""How do the agents ask the model? So it is asked in a validation, too.

| what is known                                              | the user's own tasks are done with   |
|------------------------------------------------------------|--------------------------------------|
| `[validate] temperature`                                   | that, and so is everything else      |
| trajectories of the current model                          | what most of the newest 500 have     |
| none of it, but of other models                            | what most of those have              |
| none at all                                                | temperature 1, and `top_p` 1         |

With them goes how long an answer may be, where the agents say so. A request that names no temperature is answered at 1, so a trajectory without one counts as 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from upswing.contracts.validation import Recorded

NEWEST = 500
"""Trajectories that are asked how they were sampled."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How an answer is drawn."""

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int | None = None
    """Of an answer; None: nobody knows."""

    @property
    def greedy(self) -> bool:
        """Whether a second answer would be the same again."""
        return self.temperature == 0


GREEDY = Sampling(0.0)


def usual_sampling(newest: Sequence[Recorded], model: str) -> Sampling:
    """What most trajectories of this model have, or of any when it has none; the newest come first.

    >>> seen = [Recorded("v2", "t", 0.7), Recorded("v1", "t", 0.2), Recorded("v2", "t", 0.7, 0.9)]
    >>> usual_sampling(seen, "v2"), usual_sampling([], "v2")
    (Sampling(temperature=0.7, top_p=1.0, max_tokens=None), Sampling(temperature=1.0, top_p=1.0, max_tokens=None))
    """
    own = [each for each in newest if each.model == model] or list(newest)
    found = Counter(
        Sampling(
            1.0 if each.temperature is None else each.temperature,
            1.0 if each.top_p is None else each.top_p,
            each.max_tokens,
        )
        for each in own[:NEWEST]
    )
    return max(found, key=lambda each: found[each], default=Sampling())
