"""How do the agents ask the model? So it is asked in a validation, too.

| what is known                                              | the user's own tasks are done with   |
|------------------------------------------------------------|--------------------------------------|
| `[validate] temperature`                                   | that, and so is everything else      |
| trajectories of the current model                          | what most of the newest 500 have     |
| none of it, but of other models                            | what most of those have              |
| none at all                                                | temperature 1, and `top_p` 1         |

What gateways recorded is asked alone, where there is any: by another door anybody can name a model and a temperature. A
key that may not speak for many users has never more than its share. With them goes how long an answer may be, where the agents say so. A request that names no temperature is answered at 1, so a trajectory without one counts as 1.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from upswing.contracts.validation import RecordedTask
from upswing.principals import fair_newest, key_weights

MAX_TRAJECTORIES = 500
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


def observed_sampling(recorded: Sequence[RecordedTask], model: str) -> Sampling:
    """What most trajectories of this model have, or of any when it has none; the newest come first.

    >>> seen = [RecordedTask("v2", "t", 0.7), RecordedTask("v1", "t", 0.2), RecordedTask("v2", "t", 0.7, 0.9)]
    >>> observed_sampling(seen, "v2"), observed_sampling([], "v2")
    (Sampling(temperature=0.7, top_p=1.0, max_tokens=None), Sampling(temperature=1.0, top_p=1.0, max_tokens=None))
    """
    recorded = [each for each in recorded if each.gateway] or recorded
    own = [each for each in recorded if each.model == model] or list(recorded)
    fair = fair_newest(own[::-1], lambda each: each.key_id, MAX_TRAJECTORIES)[::-1]
    counts = Counter(each.key_id for each in fair)
    weights = key_weights(counts)
    found: dict[Sampling, float] = defaultdict(float)
    for each in fair:
        how = Sampling(
            1.0 if each.temperature is None else each.temperature,
            1.0 if each.top_p is None else each.top_p,
            each.max_tokens,
        )
        found[how] += weights[each.key_id] / counts[each.key_id]
    return max(found, key=lambda each: found[each], default=Sampling())
