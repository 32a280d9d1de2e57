"""How does a policy get better from logged examples? One step at a time, and it says how it goes.

The learner owns no clock, no file and no process: it is given a model, examples and a recipe, and
yields a `Stepped` for every step. Whoever drives it saves checkpoints between steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from upswing.train.core.recipe import Recipe
from upswing.train.core.report import StepReport, TrainingError
from upswing.train.learn.credit import (
    LearningSignal,
    kto_weights,
    on_one_scale,
    ppo_targets,
    turn_returns,
)
from upswing.train.learn.example import Example
from upswing.train.learn.example_tensors import compute_logprobs, pad_rows
from upswing.train.learn.forward import score_pack
from upswing.train.learn.losses import loss_for
from upswing.train.learn.losses.dpo import dpo_loss
from upswing.train.learn.losses.kto import kl_reference, kto_loss
from upswing.train.learn.losses.terms import LossInputs, LossTerms, token_weights
from upswing.train.learn.packing import TokenPack, build_packs
from upswing.train.learn.schedule import TrainingStep, learning_rate, plan_steps
from upswing.train.learn.value import fit_value

_WHOLE_ANSWER_ALGORITHMS = frozenset({"dpo", "kto"})
"""Algorithms whose loss is one of whole answers, not of tokens."""


class Diverged(TrainingError):
    """Training went astray: not a number, too far from the behaviour policy, or collapsed."""

    failure_code = "CONVERGENCE"


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """The processes that train together; alone, nothing has to be exchanged."""

    rank: int = 0
    size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    sum_across: Callable[[Tensor], Tensor] = lambda tensor: tensor
    """The sum of a tensor over all processes."""
    backward: Callable[[Tensor], None] = torch.autograd.backward
    autocast: Callable[[], AbstractContextManager[Any]] = nullcontext
    prepare: Callable[[Optimizer], Optimizer] = lambda optimizer: optimizer
    clip_gradients: Callable[[Sequence[nn.Parameter], float], Tensor] = nn.utils.clip_grad_norm_
    """Shortens the gradient to this norm at most, and says what it was."""
    barrier: Callable[[], None] = lambda: None
    """Wait for the others."""


class Learner:
    """One job's training, from the step it is told to the last."""

    def __init__(
        self,
        model: nn.Module,
        examples: Sequence[Example],
        signal: LearningSignal,
        recipe: Recipe,
        *,
        value_head: nn.Module | None = None,
        process_group: ProcessGroup | None = None,
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._model = model
        self.value_head = value_head
        self._value_function = _detached_value_head(value_head) if value_head is not None else None
        self._examples = on_one_scale(examples) if recipe.algorithm == "ppo" else examples
        self._signal = signal
        self._tracks = list(signal.tracks)
        self._recipe = recipe
        self.process_group = process_group or ProcessGroup()
        self._clock = clock
        self._loss = loss_for(recipe) if recipe.algorithm not in _WHOLE_ANSWER_ALGORITHMS else None
        modules = [model, *([value_head] if value_head is not None else [])]
        sets = [[p for p in module.parameters() if p.requires_grad] for module in modules]
        self.parameters = [p for parameters in sets for p in parameters]
        self.optimizer = self.process_group.prepare(
            torch.optim.AdamW(
                [{"params": parameters} for parameters in sets],
                lr=recipe.learning_rate,
                weight_decay=recipe.weight_decay,
            )
        )
        self._value_rate_factor = (
            recipe.value_rate or 10 * recipe.learning_rate
        ) / recipe.learning_rate
        """The value head's rate, in the policy's."""
        self.explained_variance: float | None = None
        """PPO: share of the returns' variance that the fitted head explains on left-out tasks."""
        self.steps = plan_steps(signal.clusters, recipe)
        self.tokens = 0
        """Trained so far."""
        self._first_entropy: float | None = None
        everyone = [m for cluster in signal.clusters for m in cluster]
        self._kto_weights = kto_weights([examples[m].reward for m in everyone], recipe)

    def run(self, first: int = 0) -> Iterator[StepReport]:
        """Take the steps from `first` on."""
        epoch = -1
        if self.value_head is not None and not first:
            self._fit_value_head(self.value_head)
        for number, step in enumerate(self.steps[first:], start=first):
            began = self._clock()
            if step.epoch != epoch:
                epoch = step.epoch
                if self.value_head is not None:
                    self._update_value_targets(step.iteration)
            rate = learning_rate(self._recipe, number, len(self.steps))
            figures = self.take_step(step, rate)
            rewards = [self._examples[member].reward for member in step.members]
            mean = math.fsum(rewards) / len(rewards)
            variance = math.fsum((reward - mean) ** 2 for reward in rewards) / len(rewards)
            yield StepReport(
                step=number + 1,
                epoch=step.epoch + 1,
                loss=figures["loss"],
                reward_mean=mean,
                reward_std=math.sqrt(variance),
                entropy=figures.get("entropy", 0.0),
                kl=figures.get("kl", 0.0),
                clipped=figures.get("clipped", 0.0),
                grad_norm=figures["grad_norm"],
                learning_rate=rate,
                tokens=self.tokens,
                seconds=self._clock() - began,
            )

    def take_step(self, step: TrainingStep, learning_rate: float) -> dict[str, float]:
        """One optimizer step: the gradients of its passes add up, then the parameters move."""
        self.optimizer.zero_grad(set_to_none=True)
        figures = self._accumulate_gradients(step)
        self._sum_gradients()
        if not math.isfinite(figures["loss"]):
            raise Diverged("the loss is not a number")
        norm = self.process_group.clip_gradients(
            self.parameters, self._recipe.max_grad_norm or math.inf
        )
        if not math.isfinite(float(norm)):
            raise Diverged("the gradient is not a number")
        self._check_divergence(figures)
        for group, factor in zip(
            self.optimizer.param_groups, (1.0, self._value_rate_factor), strict=False
        ):
            group["lr"] = learning_rate * factor
        self.optimizer.step()
        self.tokens += sum(len(self._tracks[member].old_T) for member in step.members)
        return {**figures, "grad_norm": float(norm)}

    # ── gradients ────────────────────────────────────────────────────────────────────────────

    def _accumulate_gradients(self, step: TrainingStep) -> dict[str, float]:
        if self._recipe.algorithm == "dpo":
            work = self._pair_passes(step)
        elif self._recipe.algorithm == "kto":
            work = self._answer_passes(step)
        else:
            work = self._trajectory_passes(step)
        figures: dict[str, float] = {"loss": 0.0}
        for index, (pack, terms_of) in enumerate(work):
            if index % self.process_group.size != self.process_group.rank:
                continue
            with self.process_group.autocast():
                terms = terms_of(pack)
            self.process_group.backward(terms.loss)
            figures["loss"] += float(terms.loss.detach())
            for name, value in terms.stats.items():
                figures[name] = figures.get(name, 0.0) + value
        return self._sum_figures(figures)

    def _trajectory_passes(
        self, step: TrainingStep
    ) -> Iterator[tuple[TokenPack, Callable[[TokenPack], LossTerms]]]:
        members = step.members
        examples = [self._examples[member] for member in members]
        tracks = [self._tracks[member] for member in members]
        recipe = self._recipe
        decoupled = all(track.start_T is not None for track in tracks)
        width = max(len(track.old_T) for track in tracks)
        mask_BT = pad_rows([torch.ones(len(track.old_T)) for track in tracks], width)
        turns = max(track.turns for track in tracks)
        turn_mask_BK = pad_rows([torch.ones(track.turns) for track in tracks], turns)
        weights_BT = token_weights(mask_BT, recipe.reduce, max_tokens=recipe.max_tokens)
        shares_BT = token_weights(mask_BT, "token")
        turn_weights_BK = token_weights(turn_mask_BK, "token")

        def terms(pack: TokenPack) -> LossTerms:
            rows = list(pack.examples)
            mine = [tracks[row] for row in rows]
            wide = pack.mask_BT.shape[1]
            scored = score_pack(self._model, pack, entropies=True, value_head=self._value_function)
            put = self._to_device
            tokens = LossInputs(
                logps_BT=scored.logps_BT,
                old_BT=put(pad_rows([track.old_T for track in mine], wide)),
                mask_BT=pack.mask_BT,
                advantages_BT=put(
                    pad_rows([_require_tensor(track.advantages_T) for track in mine], wide)
                ),
                weights_BT=put(weights_BT[rows, :wide]),
                sequence_weights_B=put(torch.full((len(rows),), 1 / len(members))),
                start_BT=put(pad_rows([_require_tensor(track.start_T) for track in mine], wide))
                if decoupled
                else None,
                ref_BT=put(pad_rows([_require_tensor(track.ref_T) for track in mine], wide))
                if recipe.kl_beta
                else None,
                entropies_BT=scored.entropies_BT,
                shares_BT=put(shares_BT[rows, :wide]),
            )
            if scored.values_BK is not None:
                deep = scored.values_BK.shape[1]
                tokens = replace(
                    tokens,
                    values_BK=scored.values_BK,
                    old_values_BK=put(
                        pad_rows([_require_tensor(track.old_values_K) for track in mine], deep)
                    ),
                    returns_BK=put(
                        pad_rows([_require_tensor(track.returns_K) for track in mine], deep)
                    ),
                    turn_mask_BK=put(turn_mask_BK[rows, :deep]),
                    turn_weights_BK=put(turn_weights_BK[rows, :deep]),
                )
            assert self._loss is not None  # noqa: S101 - pairs go another way
            return self._loss(tokens)

        for pack in build_packs(examples, micro_tokens=recipe.micro_tokens):
            yield self._on_device_pack(pack), terms

    def _pair_passes(
        self, step: TrainingStep
    ) -> Iterator[tuple[TokenPack, Callable[[TokenPack], LossTerms]]]:
        """DPO: the two sides of a pair stand at 2i and 2i + 1, in the same pass."""
        examples = [self._examples[member] for member in step.members]
        tracks = [self._tracks[member] for member in step.members]
        together = [(2 * pair, 2 * pair + 1) for pair in range(len(examples) // 2)]
        weight = 1 / len(together)

        def terms(pack: TokenPack) -> LossTerms:
            scored = score_pack(self._model, pack, entropies=True)
            sums_B = (scored.logps_BT * pack.mask_BT).sum(1)
            lengths_B = pack.mask_BT.sum(1)
            row_of = {index: row for row, index in enumerate(pack.examples)}
            chosen = [row_of[index] for index in pack.examples if index % 2 == 0]
            rejected = [row_of[index + 1] for index in pack.examples if index % 2 == 0]
            ref_B = self._to_device(
                torch.stack([_require_tensor(tracks[index].ref_T).sum() for index in pack.examples])
            )
            dpo_terms = dpo_loss(
                sums_B[chosen],
                sums_B[rejected],
                ref_B[chosen],
                ref_B[rejected],
                self._to_device(torch.full((len(chosen),), weight)),
                beta=self._recipe.dpo_beta,
                sft_weight=self._recipe.sft_weight,
                chosen_mean_P=(sums_B / lengths_B.clamp(min=1))[chosen],
            )
            return _with_entropy(dpo_terms, scored.entropies_BT, pack.mask_BT, weight / 2)

        for pack in build_packs(
            examples, micro_tokens=self._recipe.micro_tokens, keep_together=together
        ):
            yield self._on_device_pack(pack), terms

    def _answer_passes(
        self, step: TrainingStep
    ) -> Iterator[tuple[TokenPack, Callable[[TokenPack], LossTerms]]]:
        """KTO: each answer alone, beside how far the policy has moved on answers to other prompts."""
        examples = [self._examples[member] for member in step.members]
        tracks = [self._tracks[member] for member in step.members]
        recipe, weight = self._recipe, 1 / len(examples)
        desirable, undesirable = self._kto_weights
        others = [track.other for track in tracks if track.other is not None]
        moved = compute_logprobs(
            self._model, others, micro_tokens=recipe.micro_tokens, to_device=self._on_device_pack
        )
        kl = kl_reference(
            torch.tensor([float(logps.sum()) for logps in moved]),
            torch.tensor([track.other_ref for track in tracks if track.other is not None]),
        )

        def terms(pack: TokenPack) -> LossTerms:
            scored = score_pack(self._model, pack, entropies=True)
            refs = [_require_tensor(tracks[index].ref_T).sum() for index in pack.examples]
            liked = [examples[index].reward >= recipe.success for index in pack.examples]
            kto_terms = kto_loss(
                (scored.logps_BT * pack.mask_BT).sum(1),
                self._to_device(torch.stack(refs)),
                self._to_device(torch.tensor(liked)),
                self._to_device(torch.full((len(refs),), weight)),
                kl=kl,
                beta=recipe.kto_beta,
                desirable_weight=desirable,
                undesirable_weight=undesirable,
            )
            return _with_entropy(kto_terms, scored.entropies_BT, pack.mask_BT, weight)

        for pack in build_packs(examples, micro_tokens=recipe.micro_tokens):
            yield self._on_device_pack(pack), terms

    def _on_device_pack(self, pack: TokenPack) -> TokenPack:
        return (
            pack.to(self.process_group.device) if self.process_group.device.type != "cpu" else pack
        )

    def _to_device(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.process_group.device)

    def _fit_value_head(self, head: nn.Module) -> None:
        """PPO: the head begins with what tasks are worth to the policy that is trained."""
        members = sorted({member for step in self.steps for member in step.members})
        examples = [self._examples[member] for member in members]
        tracks = [self._tracks[member] for member in members]
        states: list[Tensor] = [torch.empty(0)] * len(members)
        with torch.no_grad():
            for pack in build_packs(examples, micro_tokens=self._recipe.micro_tokens):
                found_BKH = score_pack(
                    self._model, self._on_device_pack(pack), states=True
                ).states_BKH
                for row, index in enumerate(pack.examples if found_BKH is not None else ()):
                    states[index] = (
                        _require_tensor(found_BKH)[row, : tracks[index].turns].float().cpu()
                    )
        returns = [turn_returns(e, t, self._recipe) for e, t in zip(examples, tracks, strict=True)]
        weights_H, bias, self.explained_variance = fit_value(
            torch.cat(states),
            torch.tensor([each for row in returns for each in row]),
            [e.task for e, row in zip(examples, returns, strict=True) for _ in row],
        )
        with torch.no_grad():
            weight, offset = head.parameters()
            weight.copy_(weights_H[None])
            offset.fill_(bias)

    def _update_value_targets(self, iteration: int) -> None:
        """PPO: what the value head expects now decides this epoch's advantages and returns."""
        members = sorted(
            {m for step in self.steps if step.iteration == iteration for m in step.members}
        )
        examples = [self._examples[member] for member in members]
        values: list[Tensor] = [torch.empty(0)] * len(members)
        with torch.no_grad():
            for pack in build_packs(examples, micro_tokens=self._recipe.micro_tokens):
                scored = score_pack(
                    self._model, self._on_device_pack(pack), value_head=self._value_function
                )
                assert scored.values_BK is not None  # noqa: S101 - we gave a value head
                for row, index in enumerate(pack.examples):
                    deep = self._tracks[members[index]].turns
                    values[index] = scored.values_BK[row, :deep].float().cpu()
        tracks = [self._tracks[member] for member in members]
        for member, track in zip(
            members, ppo_targets(examples, tracks, values, self._recipe), strict=True
        ):
            self._tracks[member] = track

    # ── together ─────────────────────────────────────────────────────────────────────────────

    def _sum_gradients(self) -> None:
        """The step's gradient is the sum over all processes, each of which saw some passes."""
        if self.process_group.size == 1:
            return
        for parameter in self.parameters:
            grad = parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
            parameter.grad = self.process_group.sum_across(grad)

    def _sum_figures(self, figures: dict[str, float]) -> dict[str, float]:
        if self.process_group.size == 1:
            return figures
        names = ("loss", "kl", "clipped", "entropy", "ref_kl", "value_loss", "importance")
        mine = torch.tensor(
            [figures.get(name, 0.0) for name in names], device=self.process_group.device
        )
        return dict(zip(names, self.process_group.sum_across(mine).tolist(), strict=True))

    # ── guards ───────────────────────────────────────────────────────────────────────────────

    def _check_divergence(self, figures: dict[str, float]) -> None:
        """Fails closed: a figure that is not a number passes no test."""
        recipe, entropy = self._recipe, figures.get("entropy")
        if not figures.get("kl", 0.0) <= recipe.kl_limit:
            raise Diverged(
                f"the policy is {figures['kl']:.3g} nats a token away from the one that acted"
            )
        if entropy is None:
            return
        if self._first_entropy is None:
            self._first_entropy = entropy
        floor = recipe.entropy_floor
        if self._first_entropy > 10 * floor and not entropy >= floor:
            raise Diverged(f"the policy has collapsed: its entropy is {entropy:.3g} nats a token")


def _detached_value_head(head: nn.Module) -> Callable[[Tensor], Tensor]:
    """The value head on what the policy sees, which it does not change.

    Its errors are many times larger than the policy's gains, and would decide what the layers that
    they share learn.
    """
    return lambda states: cast("Tensor", head(states.detach()))


def _require_tensor(tensor: Tensor | None) -> Tensor:
    if tensor is None:
        raise ValueError("A track lacks what this algorithm needs.")
    return tensor


def _with_entropy(
    terms: LossTerms, entropies_BT: Tensor | None, mask_BT: Tensor, weight: float
) -> LossTerms:
    """The figures of whole answers, with their mean entropy beside them."""
    if entropies_BT is None:
        return terms
    rows_B = (entropies_BT * mask_BT).sum(1) / mask_BT.sum(1).clamp(min=1)
    return LossTerms(terms.loss, {**terms.stats, "entropy": float(rows_B.detach().sum()) * weight})
