"""What does a job learn from? Samples from the folder, in tokens, with their logprobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from upswing.contracts.typed import json_decoder
from upswing.dataset.sample import Sample
from upswing.train.core.recipe import Recipe
from upswing.train.core.report import TrainingError
from upswing.train.learn.encode import encode_samples
from upswing.train.learn.example import EncodedSamples, Example


class UnusableData(TrainingError):
    """There is nothing to learn from this data, or something in it is wrong."""

    failure_code = "DATA"

    def __init__(self, sentence: str, bad_trajectories: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.bad_trajectories = bad_trajectories


@dataclass(frozen=True, slots=True)
class TrainingExamples:
    """What is trained on, and what is only measured."""

    train: tuple[Example, ...]
    holdout: tuple[Example, ...]
    dropped: dict[str, int]
    masked: int
    pieced: int = 0
    doubted: dict[str, int] = field(default_factory=dict)

    @property
    def trained_tokens(self) -> int:
        return sum(sum(example.trained) for example in self.train)

    @property
    def policy_versions(self) -> dict[str, float]:
        """Model that acted → its share of the trained tokens."""
        counts: Counter[str] = Counter()
        for example in self.train:
            counts[example.behaviour or "unknown"] += sum(example.trained)
        whole = max(1, counts.total())
        return {name: round(count / whole, 4) for name, count in counts.most_common()}

    def off_policy_tokens(self, policy: str) -> int:
        """Trained tokens that another policy than this one produced, or nobody recorded exactly."""
        return sum(
            sum(example.trained)
            for example in self.train
            if not example.exact or example.behaviour != policy
        )


def load_examples(
    path: Path, tokenizer: object, recipe: Recipe, excluded_ids: Collection[str]
) -> TrainingExamples:
    """The samples of a file, encoded; `UnusableData` when it is not what was written."""
    read = json_decoder(Sample)
    try:
        with path.open("rb") as lines:
            samples = [read.decode(line) for line in lines]
    except msgspec.MsgspecError as error:
        raise UnusableData(f"samples.jsonl is damaged: {error}") from None
    skip = frozenset(excluded_ids)
    held = {sample.trajectory_id for sample in samples if sample.held_out}
    encoded: EncodedSamples = encode_samples(
        [sample for sample in samples if sample.trajectory_id not in skip], tokenizer, recipe
    )
    return TrainingExamples(
        tuple(example for example in encoded.examples if example.trajectory_id not in held),
        tuple(each for each in encoded.examples if each.trajectory_id in held and not each.masked),
        dict(Counter(encoded.dropped.values())),
        encoded.masked,
        encoded.pieced,
        encoded.doubted,
    )
