"""A try failed: how long is the pause before the next one? Doubled with each failure in a row, up to a limit."""

from __future__ import annotations

import math
from dataclasses import dataclass

_MAX_DOUBLINGS = 62


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses between the tries of one retry loop. Whoever retries counts its failures in a row."""

    first: float
    """Seconds after the first failure."""
    longest: float = math.inf
    """Seconds, at most."""

    def __post_init__(self) -> None:
        if not 0 <= self.first <= self.longest:
            raise ValueError(f"{self.first:g} s is no first pause of at most {self.longest:g} s.")

    def seconds(self, failures: int) -> float:
        """The pause after so many failures in a row; none without a failure.

        >>> [Backoff(0.5, 5.0).seconds(failures) for failures in (0, 1, 2, 3, 4, 5, 10_000)]
        [0.0, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
        """
        if failures <= 0:
            return 0.0
        return min(self.longest, self.first * 2.0 ** min(failures - 1, _MAX_DOUBLINGS))
