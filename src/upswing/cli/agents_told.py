"""What came of the work of test agents, for a person and for a program?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from upswing.wording import counted
from upswing.worlds.crowd_service import Counts
from upswing.worlds.errands import Played, means


@dataclass
class Told:
    """What came of it."""

    counts: Counts
    played: list[Played] = field(default_factory=list)
    rounds: int = 0
    outcomes: int = 0
    """Windows of which the loop was told what really happened."""
    seconds: float = 0.0

    @property
    def answered(self) -> bool:
        return any(each.turns for each in self.played)

    def tree(self) -> dict[str, Any]:
        """In JSON's types."""
        sizes = {model: sum(p.model == model and not p.fault for p in self.played) for model in self.scores}  # fmt: skip
        models = {m: {"episodes": sizes[m], "score": round(s, 4)} for m, s in self.scores.items()}
        return {
            "rounds": self.rounds, "seconds": round(self.seconds, 1), "models": models,
            "outcomes": self.outcomes, **asdict(self.counts),
        }  # fmt: skip

    @property
    def scores(self) -> dict[str, float]:
        return means(self.played)

    def lines(self) -> Iterator[str]:
        """For a person."""
        counts = self.counts
        played, rounds = counted(counts.episodes, "episode"), counted(self.rounds, "round")
        yield f"{played} in {rounds} and {counted(round(self.seconds), 'second')}."
        for model, told in self.tree()["models"].items():
            yield f"  {model}: mean score {told['score']:.2f} over {counted(told['episodes'], 'episode')}"
        said = counted(counts.feedback, "episode")
        yield f"Users said something of {said}, of {counts.late} of them late."
        if counts.faults:
            why = ", ".join(f"{word}: {n}" for word, n in sorted(counts.troubles.items()))
            were = "was" if counts.faults == 1 else "were"
            yield f"{counts.faults} {were} spoiled by faults{f' ({why})' if why else ''}."
        if counts.unrecorded or counts.unsaid:
            lost = counted(counts.unrecorded, "episode")
            yield f"Not kept: {lost}, {counted(counts.unsaid, 'word')} of users."


def line_of(window: str, played: Sequence[Played]) -> str:
    """A round in one line."""
    faults = sum(each.fault for each in played)
    scores = ", ".join(f"{model} {score:.2f}" for model, score in means(played).items())
    spoiled = f"; {faults} spoiled by faults" if faults else ""
    return f"{window}  {counted(len(played), 'episode')}, mean score: {scores or 'none'}{spoiled}"
