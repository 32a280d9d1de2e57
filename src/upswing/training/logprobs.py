"""What did the policy that acted, and the reference, say of every trained token?

Recorded logprobs are taken as they are. The others are computed once, before the first step, and
kept in the job's folder: a child that goes on after a crash reads them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor, nn, zeros

from upswing.adapters.bases import Base
from upswing.adapters.models import load, trainable
from upswing.train.example import Example
from upswing.train.recipe import Recipe
from upswing.train.spec import JobSpec
from upswing.train.tracks import Track, logprobs, recorded, turn_index


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

    def behaviour(self, model: nn.Module, base: Base) -> list[Tensor]:
        """Of the policies that acted: recorded, else by their checkpoint, else by where we start."""
        found = [recorded(example) for example in self._examples]
        missing: dict[str, list[int]] = {}
        for index, known in enumerate(found):
            if known is None:
                name = self._examples[index].behaviour
                here = name if name in self._spec.behaviours and name != self._spec.parent else ""
                missing.setdefault(here, []).append(index)
        for name, indices in missing.items():
            given = [self._examples[index] for index in indices]
            acted = self._once(f"old.{name}", given, partial(self._policy, name, model, base))
            for index, logps in zip(indices, acted, strict=True):
                found[index] = logps
        return [logps for logps in found if logps is not None]

    def start(self, model: nn.Module) -> list[Tensor]:
        """Of the policy that training starts from."""
        return self._once("start", self._examples, lambda: model)

    def reference(
        self, model: nn.Module, off: Callable[[nn.Module], AbstractContextManager[None]]
    ) -> list[Tensor]:
        """Of the base without its adapter."""
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


def tracks_of(
    examples: Sequence[Example], old: Sequence[Tensor], ref: Sequence[Tensor] | None
) -> list[Track]:
    """The tracks of these examples, without advantages yet."""
    return [
        Track(old[index], turn_index(example), ref[index] if ref is not None else None)
        for index, example in enumerate(examples)
    ]


def needs_reference(recipe: Recipe) -> bool:
    return recipe.kl_beta > 0 or recipe.algorithm == "dpo"


def _mark(spec: JobSpec, examples: Sequence[Example]) -> str:
    """What the numbers depend on: the data in tokens, and where training starts."""
    digest = hashlib.sha256(repr((spec.snapshot, spec.start, spec.base_model)).encode())
    for example in examples:
        digest.update(repr((example.trajectory_id, len(example.ids))).encode())
    return digest.hexdigest()[:16]
