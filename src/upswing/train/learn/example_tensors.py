"""What does each example bring to every step it takes part in? Computed once, before the first.

A *track* holds one example's numbers over its trained tokens: what the behaviour policy, the start
and the reference said of them, and the advantage that each carries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from upswing.train.learn.example import Example
from upswing.train.learn.forward import score_pack
from upswing.train.learn.packing import TokenPack, build_packs


@dataclass(frozen=True, slots=True)
class ExampleTensors:
    """One example, over its trained tokens."""

    old_T: Tensor
    """Of the policy that acted."""
    turn_T: Tensor
    """Which of its turns (counted from 0 among those that have trained tokens) a token is in."""
    ref_T: Tensor | None = None
    advantages_T: Tensor | None = None
    returns_K: Tensor | None = None
    """PPO: what each turn's value should have been."""
    old_values_K: Tensor | None = None
    start_T: Tensor | None = None
    """Of the policy that training starts from; None: what acted counts as the start."""
    other: Example | None = None
    """KTO: this prompt with somebody else's answer."""
    other_ref: float = 0.0
    """What the reference says of that answer, summed over its trained tokens."""

    @property
    def turns(self) -> int:
        return int(self.turn_T[-1]) + 1 if len(self.turn_T) else 0

    def with_advantages(self, advantages: Sequence[float]) -> ExampleTensors:
        """The same, with one advantage for each turn."""
        by_turn = torch.tensor(list(advantages), dtype=torch.float32)
        return replace(self, advantages_T=by_turn[self.turn_T])


def turn_index(example: Example) -> Tensor:
    """The turn of each trained token, counted among turns that have any.

    >>> turn_index(Example("t", "g", "k", (1, 2, 3, 4), (False, True, False, True), (0, 0, 2, 2), None, False, 1.0))
    tensor([0, 1])
    """
    turns = [turn for turn, trained in zip(example.turns, example.trained, strict=True) if trained]
    order = {turn: index for index, turn in enumerate(dict.fromkeys(turns))}
    return torch.tensor([order[turn] for turn in turns], dtype=torch.long)


def recorded_logprobs(example: Example) -> Tensor | None:
    """The recorded logprobs of the trained tokens, at temperature 1, where there are some."""
    if example.logps is None:
        return None
    pairs = zip(example.logps, example.trained, strict=True)
    return torch.tensor([logp for logp, trained in pairs if trained], dtype=torch.float32)


_MIN_LOGPROB = -100.0
"""A logprob below this was never sampled: nothing is less likely than e^-100."""


def implausible_examples(
    examples: Sequence[Example], tensors: Sequence[ExampleTensors]
) -> list[str]:
    """The trajectories whose numbers cannot be: training on them would poison the others."""
    return [
        example.trajectory_id
        for example, track in zip(examples, tensors, strict=True)
        if not math.isfinite(example.reward)
        or not all(math.isfinite(each) for each in example.turn_rewards or ())
        or not bool((track.old_T > _MIN_LOGPROB).all() and (track.old_T < 1e-3).all())
    ]


@torch.no_grad()
def compute_logprobs(
    model: nn.Module,
    examples: Sequence[Example],
    *,
    micro_tokens: int,
    to_device: Callable[[TokenPack], TokenPack] = lambda pack: pack,
    after_pass: Callable[[], None] = lambda: None,
) -> list[Tensor]:
    """What `model` says of every example's trained tokens."""
    found: list[Tensor] = [torch.empty(0)] * len(examples)
    for pack in build_packs(examples, micro_tokens=micro_tokens):
        logps_BT = score_pack(model, to_device(pack)).logps_BT.float().cpu()
        for row, index in enumerate(pack.examples):
            found[index] = logps_BT[row][pack.mask_BT[row].cpu() > 0]
        after_pass()
    return found


def pad_rows(rows: Sequence[Tensor], width: int, fill: float = 0.0) -> Tensor:
    """Rows of different lengths, filled up to `width`."""
    grid = torch.full((len(rows), width), fill)
    for index, row in enumerate(rows):
        grid[index, : len(row)] = row
    return grid


@dataclass(frozen=True, slots=True)
class ImportanceStats:
    """How much of the recorded tokens counts, after the correction for what acted."""

    mean: float = 1.0
    truncated: float = 0.0
    """Share of the tokens whose weight was cut."""
    effective: float = 1.0
    """Share of the tokens that the weighted ones are worth."""


def importance_stats(tensors: Sequence[ExampleTensors], cap: float) -> ImportanceStats:
    """The importance weights of all tokens that have a start.

    >>> track = ExampleTensors(torch.tensor([-1.0, -1.0]), torch.tensor([0, 0]), start_T=torch.tensor([-1.0, 1.0]))
    >>> importance_stats([track], 3.0)
    ImportanceStats(mean=2.0, truncated=0.5, effective=0.8)
    """
    known = [(t.start_T - t.old_T).exp() for t in tensors if t.start_T is not None]
    raw = torch.cat(known).double() if known else torch.empty(0)
    if not len(raw):
        return ImportanceStats()
    kept = raw.clamp(max=cap)
    effective = kept.sum().square() / kept.square().sum() / len(kept)
    return ImportanceStats(
        mean=float(kept.mean()),
        truncated=float((raw > cap).double().mean()),
        effective=round(float(effective), 9),
    )


@dataclass(frozen=True, slots=True)
class EngineMismatch:
    """How far two engines disagree about what the same policy said."""

    kl: float
    """Nats per token, of the engine that served from the one that trains."""
    logp: float
    """Mean absolute difference of a token's logprob."""
    tokens: int


def engine_mismatch(
    served_logprobs: Sequence[Tensor], trainer_logprobs: Sequence[Tensor]
) -> EngineMismatch | None:
    """The disagreement on tokens that the start itself produced; None where there are none.

    >>> engine_mismatch([torch.tensor([-1.0, -1.0])], [torch.tensor([-1.0, -1.5])])
    EngineMismatch(kl=0.05327, logp=0.25, tokens=2)
    """
    if not any(len(each) for each in served_logprobs):
        return None
    apart = torch.cat(
        [b - a for a, b in zip(served_logprobs, trainer_logprobs, strict=True)]
    ).double()
    kl = (apart.exp() - apart - 1).mean()
    return EngineMismatch(float(f"{kl:.4g}"), float(f"{apart.abs().mean():.4g}"), len(apart))


@dataclass(frozen=True, slots=True)
class ValueEstimate:
    """What a policy would have earned on logged examples."""

    value: float
    effective: float
    """The share of the examples that the estimate really rests on."""


def off_policy_value(
    rewards: Sequence[float],
    new_logprobs: Sequence[Tensor],
    old_logprobs: Sequence[Tensor],
    max_weight: float = 10.0,
) -> ValueEstimate | None:
    """The mean reward, each example weighted by how much likelier the policy makes it.

    Self-normalised, truncated importance sampling: an honest estimate near the behaviour policy,
    and none at all when less than a twentieth of the examples carries it, or the policy says what is no
    number.

    >>> off_policy_value([1.0, 0.0], [torch.tensor([-0.1]), torch.tensor([-2.0])],
    ...                  [torch.tensor([-0.7]), torch.tensor([-0.7])]).value > 0.8
    True
    >>> off_policy_value([1.0], [torch.tensor([math.nan])], [torch.tensor([-0.7])]) is None
    True
    """
    if not rewards:
        return None
    apart = [float((a - b).sum()) for a, b in zip(new_logprobs, old_logprobs, strict=True)]
    if any(map(math.isnan, apart)):
        return None
    ratios = [min(max_weight, math.exp(min(50.0, each))) for each in apart]
    total = math.fsum(ratios)
    if not total > 0:
        return None
    effective = total * total / math.fsum(ratio * ratio for ratio in ratios) / len(ratios)
    if not effective >= 0.05:
        return None
    value = math.fsum(r * w for r, w in zip(rewards, ratios, strict=True)) / total
    return ValueEstimate(value, effective)
