"""Do as many episodes of each model come back as chance gave it? A sample ratio mismatch says that they do not.

What is lost before it is scored says nothing, and what is lost may be what is bad: episodes that grew too long, that
another model had to finish, that nobody closed. Each reward is one episode, drawn with a known share. Where
fewer come back than were drawn, by as much as matters and by more than chance, the means compare what is left.
"""

from __future__ import annotations

from math import sqrt

from msgspec import Struct

_MATTERS = 0.1
"""Share of a model's episodes that may be lost."""
_DEVIATIONS = 4.0
"""Standard deviations beyond which a shortage is not chance; it is looked at often, and only waited for."""


class SampleRatio(Struct):
    """It changes in place, like the evidence that it belongs to."""

    episodes: int = 0
    candidate: int = 0
    drawn: float = 0.0
    """Of the candidate, as the shares let expect."""
    variance: float = 0.0

    def observe(self, *, candidate: bool, share: float) -> None:
        """Take an episode that was the candidate's with this probability."""
        self.episodes += 1
        self.candidate += candidate
        self.drawn += share
        self.variance += share * (1 - share)

    def mismatch(self) -> tuple[str, int, int] | None:
        """Whose episodes are missing, how many came, and how many would have, had none been lost beside the other's.

        >>> ratio = SampleRatio()
        >>> for number in range(1900):
        ...     ratio.observe(candidate=number % 19 == 0, share=0.1)
        >>> ratio.mismatch()
        ('candidate', 100, 200)
        """
        others, expected = self.episodes - self.candidate, self.episodes - self.drawn
        if abs(self.drawn - self.candidate) <= _DEVIATIONS * sqrt(self.variance):
            return None
        if self.candidate * expected < (1 - _MATTERS) * others * self.drawn:
            return "candidate", self.candidate, round(others * self.drawn / expected)
        if others * self.drawn < (1 - _MATTERS) * self.candidate * expected:
            return "baseline", others, round(self.candidate * expected / self.drawn)
        return None
