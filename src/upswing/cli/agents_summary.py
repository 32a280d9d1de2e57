"""What came of the work of test agents, for a person and for a program?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from upswing.errors import count_phrase
from upswing.worlds.agent_episodes import EpisodeResult, mean_score_by_model
from upswing.worlds.agent_pool import AgentCounts


@dataclass
class SpawnSummary:
    """What came of it."""

    counts: AgentCounts
    results: list[EpisodeResult] = field(default_factory=list)
    rounds: int = 0
    outcomes: int = 0
    """Windows whose true outcome the loop has."""
    seconds: float = 0.0

    @property
    def answered(self) -> bool:
        return any(each.turns for each in self.results)

    def to_json(self) -> dict[str, Any]:
        """In JSON's types."""
        sizes = {
            model: sum(p.model == model and not p.fault for p in self.results)
            for model in self.scores
        }
        models = {m: {"episodes": sizes[m], "score": round(s, 4)} for m, s in self.scores.items()}
        return {
            "rounds": self.rounds,
            "seconds": round(self.seconds, 1),
            "models": models,
            "outcomes": self.outcomes,
            **asdict(self.counts),
        }

    @property
    def scores(self) -> dict[str, float]:
        return mean_score_by_model(self.results)

    def lines(self) -> Iterator[str]:
        """For a person."""
        counts = self.counts
        played, rounds = (
            count_phrase(counts.episodes, "episode"),
            count_phrase(self.rounds, "round"),
        )
        yield f"{played} in {rounds} and {count_phrase(round(self.seconds), 'second')}."
        for model, stats in self.to_json()["models"].items():
            yield f"  {model}: mean score {stats['score']:.2f} over {count_phrase(stats['episodes'], 'episode')}"
        feedback = count_phrase(counts.feedback, "episode")
        yield f"Users said something of {feedback}, of {counts.late} of them late."
        if counts.faults:
            why = ", ".join(f"{reason}: {n}" for reason, n in sorted(counts.troubles.items()))
            were = "was" if counts.faults == 1 else "were"
            yield f"{counts.faults} {were} spoiled by faults{f' ({why})' if why else ''}."
        if counts.unrecorded or counts.unsaid:
            lost = count_phrase(counts.unrecorded, "episode")
            yield f"Not kept: {lost}, {count_phrase(counts.unsaid, 'word')} of users."


def round_line(window: str, results: Sequence[EpisodeResult]) -> str:
    """A round in one line."""
    faults = sum(each.fault for each in results)
    scores = ", ".join(
        f"{model} {score:.2f}" for model, score in mean_score_by_model(results).items()
    )
    spoiled = f"; {faults} spoiled by faults" if faults else ""
    return f"{window}  {count_phrase(len(results), 'episode')}, mean score: {scores or 'none'}{spoiled}"
