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

from upswing.adapters.bases import Base
from upswing.adapters.models import load, trainable
from upswing.train.example import Example
from upswing.train.pairs import mismatched
from upswing.train.recipe import Recipe
from upswing.train.spec import JobSpec
from upswing.train.tracks import Mismatch, Track, logprobs, mismatch_of, recorded, turn_index


class Logprobs:
    """Computes, and remembers in a file."""

    def __init__(
        self, folder: Path, spec: JobSpec, examples: Sequence[Example], *, writes: bool = True
    ) -> None:
        self._writes = writes
        """Of several processes that train together, one writes."""
        self._path = folder / "logprobs.safetensors"
        self._spec = spec
        self._examples = examples
        self._mark = _mark(spec, examples)
        self._known = load_file(self._path) if self._path.exists() else {}
        if f"mark.{self._mark}" not in self._known:
            self._known = {}

    def tracks(
        self,
        model: nn.Module,
        base: Base,
        off: Callable[[nn.Module], AbstractContextManager[None]],
    ) -> list[Track]:
        """The tracks of all examples, without advantages yet."""
        recipe = self._spec.recipe
        old, start, ref = self.behaviour(model, base), self.start(model), None
        if needs_reference(recipe):
            ref = start if recipe.reference == "start" else self.reference(model, base, off)
        found = [
            Track(old[i], turn_index(example), ref[i] if ref else None, start_T=start[i])
            for i, example in enumerate(self._examples)
        ]
        return self._with_others(found, model, off) if recipe.algorithm == "kto" else found

    def mismatch(self, model: nn.Module) -> Mismatch | None:
        """What the engine that served and this one say of the same policy's tokens."""
        name = self._spec.parent or self._spec.base_model
        cold = self._cold(model)
        told = [
            (logps, cold[index])
            for index, example in enumerate(self._examples)
            if example.behaviour == name and (logps := recorded(example)) is not None
        ]
        return mismatch_of([a for a, _ in told], [b for _, b in told])

    def behaviour(self, model: nn.Module, base: Base) -> list[Tensor]:
        """Of the policies that acted: recorded, else by their checkpoint, else by where we start."""
        found = self._recorded(model)
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
            acted = self._once(f"old.{name}", given, partial(self._policy, name, model, base))
            for index, logps in zip(indices, acted, strict=True):
                found[index] = logps
        return [logps for logps in found if logps is not None]

    def _recorded(self, model: nn.Module) -> list[Tensor | None]:
        """What was recorded, at the temperature that sampled."""
        found = [recorded(example) for example in self._examples]
        heats = [example.temperature for example in self._examples]
        if all(heat == 1 for heat, logps in zip(heats, found, strict=True) if logps is not None):
            return found
        start, cold = self.start(model), self._cold(model)
        return [
            logps
            if logps is None or heat == 1
            else (start[i] + (logps - cold[i]) / heat).clamp(max=0.0)
            for i, (logps, heat) in enumerate(zip(found, heats, strict=True))
        ]

    def _cold(self, model: nn.Module) -> list[Tensor]:
        """Of the start, at temperature 1."""
        if all(example.temperature == 1 for example in self._examples):
            return self.start(model)
        plain = [replace(example, temperature=1.0) for example in self._examples]
        return self._once("cold", plain, lambda: model)

    def _with_others(
        self,
        tracks: Sequence[Track],
        model: nn.Module,
        off: Callable[[nn.Module], AbstractContextManager[None]],
    ) -> list[Track]:
        """KTO: with each prompt and somebody else's answer, and what the reference says of it."""
        others = mismatched(self._examples, self._spec.recipe.max_tokens)
        known = [each for each in others if each is not None]
        if self._spec.recipe.reference == "base":
            with off(model):
                found = iter(self._once("other", known, lambda: model))
        else:
            found = iter(self._once("other", known, lambda: model))
        return [
            track
            if other is None
            else replace(track, other=other, other_ref=float(next(found).sum()))
            for track, other in zip(tracks, others, strict=True)
        ]

    def start(self, model: nn.Module) -> list[Tensor]:
        """Of the policy that training starts from."""
        return self._once("start", self._examples, lambda: model)

    def reference(
        self,
        model: nn.Module,
        base: Base,
        off: Callable[[nn.Module], AbstractContextManager[None]],
    ) -> list[Tensor]:
        """Of the base: without its adapter, or loaded once more where all its weights are trained."""
        if self._spec.start and not hasattr(model, "disable_adapter"):
            return self._once("ref", self._examples, partial(_loaded, base, model))
        with off(model):
            return self._once("ref", self._examples, lambda: model)

    def _policy(self, name: str, model: nn.Module, base: Base) -> nn.Module:
        if not name:
            return model
        other, _ = load(base, device=next(model.parameters()).device)
        acting: nn.Module = trainable(other, self._spec.recipe, Path(self._spec.behaviours[name]))
        return acting.eval()

    def _once(
        self, name: str, examples: Sequence[Example], policy: Callable[[], nn.Module]
    ) -> list[Tensor]:
        keys = [f"{name}.{index}" for index in range(len(examples))]
        if not all(key in self._known for key in keys):
            found = logprobs(policy(), examples, micro_tokens=self._spec.recipe.micro_tokens)
            self._known |= {key: logps.contiguous() for key, logps in zip(keys, found, strict=True)}
            if self._writes:
                self._save()
        return [self._known[key] for key in keys]

    def _save(self) -> None:
        fresh = self._path.with_suffix(".new")
        save_file({**self._known, f"mark.{self._mark}": zeros(1)}, fresh)
        fresh.replace(self._path)


def _loaded(base: Base, like: nn.Module) -> nn.Module:
    """The base as it is on the disk, where the other model is."""
    model, _ = load(base, device=next(like.parameters()).device)
    found: nn.Module = model.eval()
    return found


def needs_reference(recipe: Recipe) -> bool:
    return recipe.kl_beta > 0 or recipe.algorithm in {"dpo", "kto"}


def _mark(spec: JobSpec, examples: Sequence[Example]) -> str:
    """What the numbers depend on: the data in tokens, and where training starts."""
    digest = hashlib.sha256(
        repr((spec.snapshot, spec.start, spec.base_model, spec.recipe.reference)).encode()
    )
    for example in examples:
        digest.update(repr((example.trajectory_id, len(example.ids), example.temperature)).encode())
    return digest.hexdigest()[:16]
