"""What did the policy that acted, and the reference, say of every trained token?

| of                  | comes from                                                               |
|---------------------|--------------------------------------------------------------------------|
| the policy that acted | the record, else its checkpoint, else the start                        |
| the start           | the model as the job begins                                              |
| the reference       | the start, or the base without its adapter (`reference` of the recipe)   |

All are of the distribution at the temperature that sampled. Servers record logprobs at temperature 1
whatever was sampled with, so a record at another temperature is moved: the start's logprob at that
temperature, and the difference of record and start, divided by it. Where the start itself acted,
that is exact.

What is computed is computed once, before the first step, and kept in the job's folder: a child that
goes on after a crash reads it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor, nn, zeros

from upswing.train.bases.catalog import BaseModel
from upswing.train.bases.loading import load_base, make_trainable
from upswing.train.core.recipe import Recipe
from upswing.train.core.spec import JobSpec
from upswing.train.learn.example import Example
from upswing.train.learn.example_tensors import (
    EngineMismatch,
    ExampleTensors,
    compute_logprobs,
    engine_mismatch,
    recorded_logprobs,
    turn_index,
)
from upswing.train.learn.pairs import mismatched_answers


class LogprobCache:
    """Computes, and remembers in a file."""

    def __init__(
        self, folder: Path, spec: JobSpec, examples: Sequence[Example], *, writes: bool = True
    ) -> None:
        self._writes = writes
        """Of several processes that train together, one writes."""
        self._path = folder / "logprobs.safetensors"
        self._spec = spec
        self._examples = examples
        self._cache_key = _cache_digest(spec, examples)
        self._cache = load_file(self._path) if self._path.exists() else {}
        if f"mark.{self._cache_key}" not in self._cache:
            self._cache = {}

    def build_tensors(
        self,
        model: nn.Module,
        base: BaseModel,
        without_adapter: Callable[[nn.Module], AbstractContextManager[None]],
    ) -> list[ExampleTensors]:
        """The tracks of all examples, without advantages yet."""
        recipe = self._spec.recipe
        old, start, ref = self.behaviour(model, base), self.start(model), None
        if needs_reference(recipe):
            ref = (
                start
                if recipe.reference == "start"
                else self.reference(model, base, without_adapter)
            )
        found = [
            ExampleTensors(old[i], turn_index(example), ref[i] if ref else None, start_T=start[i])
            for i, example in enumerate(self._examples)
        ]
        return (
            self._with_mismatched_answers(found, model, without_adapter)
            if recipe.algorithm == "kto"
            else found
        )

    def mismatch(self, model: nn.Module) -> EngineMismatch | None:
        """What the engine that served and this one say of the same policy's tokens."""
        name = self._spec.parent or self._spec.base_model
        cold = self._start_at_temperature_1(model)
        both = [
            (logps, cold[index])
            for index, example in enumerate(self._examples)
            if example.behaviour == name and (logps := recorded_logprobs(example)) is not None
        ]
        return engine_mismatch([a for a, _ in both], [b for _, b in both])

    def behaviour(self, model: nn.Module, base: BaseModel) -> list[Tensor]:
        """Of the policies that acted: recorded, else by their checkpoint, else by where we start."""
        found = self._recorded_logprobs(model)
        missing: dict[str, list[int]] = {}
        for index, known in enumerate(found):
            if known is None:
                name = self._examples[index].behaviour
                here = name if name in self._spec.behaviours and name != self._spec.parent else ""
                missing.setdefault(here, []).append(index)
        start = self.start(model) if "" in missing else []
        for index in missing.pop("", []):
            found[index] = start[index]
        for name, indices in missing.items():
            given = [self._examples[index] for index in indices]
            acted = self._cached_logprobs(
                f"old.{name}", given, partial(self._load_behaviour, name, model, base)
            )
            for index, logps in zip(indices, acted, strict=True):
                found[index] = logps
        return [logps for logps in found if logps is not None]

    def _recorded_logprobs(self, model: nn.Module) -> list[Tensor | None]:
        """What was recorded, at the temperature that sampled."""
        found = [recorded_logprobs(example) for example in self._examples]
        heats = [example.temperature for example in self._examples]
        if all(heat == 1 for heat, logps in zip(heats, found, strict=True) if logps is not None):
            return found
        start, cold = self.start(model), self._start_at_temperature_1(model)
        return [
            logps
            if logps is None or heat == 1
            else (start[i] + (logps - cold[i]) / heat).clamp(max=0.0)
            for i, (logps, heat) in enumerate(zip(found, heats, strict=True))
        ]

    def _start_at_temperature_1(self, model: nn.Module) -> list[Tensor]:
        """Of the start, at temperature 1."""
        if all(example.temperature == 1 for example in self._examples):
            return self.start(model)
        plain = [replace(example, temperature=1.0) for example in self._examples]
        return self._cached_logprobs("cold", plain, lambda: model)

    def _with_mismatched_answers(
        self,
        tensors: Sequence[ExampleTensors],
        model: nn.Module,
        without_adapter: Callable[[nn.Module], AbstractContextManager[None]],
    ) -> list[ExampleTensors]:
        """KTO: with each prompt and somebody else's answer, and what the reference says of it."""
        others = mismatched_answers(self._examples, self._spec.recipe.max_tokens)
        known = [each for each in others if each is not None]
        if self._spec.recipe.reference == "base":
            with without_adapter(model):
                found = iter(self._cached_logprobs("other", known, lambda: model))
        else:
            found = iter(self._cached_logprobs("other", known, lambda: model))
        return [
            track
            if other is None
            else replace(track, other=other, other_ref=float(next(found).sum()))
            for track, other in zip(tensors, others, strict=True)
        ]

    def start(self, model: nn.Module) -> list[Tensor]:
        """Of the policy that training starts from."""
        return self._cached_logprobs("start", self._examples, lambda: model)

    def reference(
        self,
        model: nn.Module,
        base: BaseModel,
        without_adapter: Callable[[nn.Module], AbstractContextManager[None]],
    ) -> list[Tensor]:
        """Of the base: without its adapter, or loaded once more where all its weights are trained."""
        if self._spec.start and not hasattr(model, "disable_adapter"):
            return self._cached_logprobs("ref", self._examples, partial(_load_base, base, model))
        with without_adapter(model):
            return self._cached_logprobs("ref", self._examples, lambda: model)

    def _load_behaviour(self, name: str, model: nn.Module, base: BaseModel) -> nn.Module:
        if not name:
            return model
        other, _ = load_base(base, device=next(model.parameters()).device)
        acting: nn.Module = make_trainable(
            other, self._spec.recipe, Path(self._spec.behaviours[name])
        )
        return acting.eval()

    def _cached_logprobs(
        self, name: str, examples: Sequence[Example], policy: Callable[[], nn.Module]
    ) -> list[Tensor]:
        keys = [f"{name}.{index}" for index in range(len(examples))]
        if not all(key in self._cache for key in keys):
            found = compute_logprobs(
                policy(), examples, micro_tokens=self._spec.recipe.micro_tokens
            )
            self._cache |= {key: logps.contiguous() for key, logps in zip(keys, found, strict=True)}
            if self._writes:
                self._save_cache()
        return [self._cache[key] for key in keys]

    def _save_cache(self) -> None:
        fresh = self._path.with_suffix(".new")
        save_file({**self._cache, f"mark.{self._cache_key}": zeros(1)}, fresh)
        fresh.replace(self._path)


def _load_base(base: BaseModel, like: nn.Module) -> nn.Module:
    """The base as it is on the disk, where the other model is."""
    model, _ = load_base(base, device=next(like.parameters()).device)
    found: nn.Module = model.eval()
    return found


def needs_reference(recipe: Recipe) -> bool:
    return recipe.kl_beta > 0 or recipe.algorithm in {"dpo", "kto"}


def _cache_digest(spec: JobSpec, examples: Sequence[Example]) -> str:
    """What the numbers depend on: the data in tokens, and where training starts."""
    digest = hashlib.sha256(
        repr((spec.snapshot, spec.start, spec.base_model, spec.recipe.reference)).encode()
    )
    for example in examples:
        digest.update(repr((example.trajectory_id, len(example.ids), example.temperature)).encode())
    return digest.hexdigest()[:16]
