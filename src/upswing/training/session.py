"""How does a job run from its first to its last step, whatever happened to it before?

| part     | done once                   | after a crash                                  |
|----------|-----------------------------|------------------------------------------------|
| logprobs | of behaviour and reference  | read from `logprobs.safetensors`               |
| steps    | drawn from the seed         | from the newest checkpoint that is whole       |
| curves   | `steps.jsonl` grows         | cut back to the checkpoint's step              |
| the end  | `done.json`                 | told again: whoever asks gets the same model   |
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec
import torch
from torch import Tensor, nn

from upswing.adapters.bases import Base, resolve
from upswing.adapters.models import hidden_size, load, reference, set_threads, trainable
from upswing.train.credit import Signal, signal_of
from upswing.train.example import Example
from upswing.train.learner import Learner
from upswing.train.report import Began, Done, Saved, Stepped
from upswing.train.spec import JobSpec
from upswing.train.tracks import logprobs, off_policy_value, unsound
from upswing.training.channel import Channel, peak_bytes
from upswing.training.data import Material, Unlearnable, material
from upswing.training.keeping import Keeping
from upswing.training.logprobs import Logprobs, needs_reference, tracks_of
from upswing.training.rollouts import roll_out
from upswing.training.team import make_team


class Session:
    """One attempt at one job."""

    def __init__(self, folder: Path, spec: JobSpec, channel: Channel) -> None:
        self._folder = folder
        self._spec = spec
        self._recipe = spec.recipe
        self._channel = channel
        self._began = time.monotonic()
        self._holdout: tuple[Example, ...] = ()
        self._holdout_old: Sequence[Tensor] = ()

    def run(self) -> None:
        """To the final checkpoint, and tell of it."""
        done = self._folder / "done.json"
        if done.exists():
            self._channel.tell(msgspec.json.decode(done.read_bytes(), type=Done))
            return
        torch.manual_seed(self._recipe.seed)
        self._team = make_team(self._recipe)
        self._channel.doing = "loading the base"
        base = resolve(self._spec.base_model, Path(self._spec.cache))
        model, tokenizer = load(base, device=self._team.device)
        set_threads(model, self._spec.threads)
        self._channel.doing = "encoding"
        data = material(self._folder / "samples.jsonl", tokenizer, self._recipe, self._spec.drop)
        if not data.train:
            raise Unlearnable(f"No trajectory can be trained on: {_told(data.dropped)}.")
        start = Path(self._spec.start) if self._spec.start else None
        model = trainable(model, self._recipe, start, full=self._full(base))
        self._channel.doing = "looking at the data"
        signal, before = self._prepare(model, base, data)
        learner = Learner(
            model, data.train, signal, self._recipe, value_head=self._value_head(model, data.train),
            team=self._team, clock=time.monotonic,
        )  # fmt: skip
        keeping = Keeping(self._folder, self._spec, base, model, learner)
        first = keeping.restore()
        began = _beginning(learner, data, signal, first)
        self._channel.tell(began)
        self._train(model, learner, keeping, first)
        self._roll_out(model, tokenizer, keeping)
        self._finish(model, keeping, data, began, before)

    def _full(self, base: Base) -> bool:
        return base.full if self._recipe.full is None else self._recipe.full

    def _prepare(self, model: nn.Module, base: Base, data: Material) -> tuple[Signal, float | None]:
        """What there is to learn, and what the held-out tasks are worth before it is learned."""
        everything = (*data.train, *data.holdout)
        known = Logprobs(self._folder, self._spec, everything, writes=self._team.rank == 0)
        old = known.behaviour(model, base)
        ref = known.reference(model, reference) if needs_reference(self._recipe) else None
        count = len(data.train)
        tracks = tracks_of(data.train, old[:count], ref)
        if bad := unsound(data.train, tracks):
            raise Unlearnable(
                f"the recorded numbers of {len(bad)} trajectories cannot be true", bad
            )
        signal = signal_of(data.train, tracks, self._recipe)
        if not signal.clusters:
            raise Unlearnable(
                f"in none of {signal.groups} groups did one agent do better than another, so there is nothing to learn"
            )
        self._holdout, self._holdout_old = data.holdout, old[count:]
        return signal, self._measured(model)

    def _value_head(self, model: nn.Module, examples: Sequence[Example]) -> nn.Module | None:
        """PPO: starts by expecting the mean reward everywhere."""
        if self._recipe.algorithm != "ppo":
            return None
        head = nn.Linear(hidden_size(model), 1)
        nn.init.zeros_(head.weight)
        mean = sum(example.reward for example in examples) / len(examples)
        nn.init.constant_(head.bias, mean)
        return head.to(self._team.device)

    def _train(self, model: nn.Module, learner: Learner, keeping: Keeping, first: int) -> None:
        self._channel.doing = "training"
        model.train()
        for stepped in learner.run(first):
            self._channel.step = stepped.step
            self._channel.tell(stepped)
            keeping.note(stepped)
            if stepped.step % self._recipe.save_interval == 0:
                self._save(model, keeping, stepped)

    def _roll_out(self, model: nn.Module, tokenizer: object, keeping: Keeping) -> None:
        """Fresh episodes, where the recipe wants them; every round ends with a checkpoint."""
        self._channel.doing = "playing"
        last: Stepped | None = None
        for stepped in roll_out(
            model, tokenizer, self._recipe, self._folder, team=self._team, clock=time.monotonic,
            first_step=keeping.step,
        ):  # fmt: skip
            if last is not None and stepped.epoch != last.epoch:
                self._save(model, keeping, last)
            self._channel.step = stepped.step
            self._channel.tell(stepped)
            keeping.note(stepped)
            last = stepped

    def _save(self, model: nn.Module, keeping: Keeping, stepped: Stepped) -> None:
        measured = self._measured(model)
        path, best = keeping.save(stepped, measured)
        self._channel.tell(Saved(stepped.step, str(path), measured, best))

    def _finish(
        self, model: nn.Module, keeping: Keeping, data: Material, began: Began, before: float | None
    ) -> None:
        self._channel.doing = "writing the model"
        rewards = [example.reward for example in data.train]
        done = Done(
            step=keeping.step,
            final="", curves="", tensorboard="", card="",
            holdout_before=before,
            holdout_after=self._measured(model),
            peak_rss_bytes=peak_bytes(),
            seconds=time.monotonic() - self._began,
            samples=len(data.train),
            reward_mean=sum(rewards) / len(rewards),
        )  # fmt: skip
        self._channel.tell(keeping.finish(done, began))

    def _measured(self, model: nn.Module) -> float | None:
        """What the policy would earn on the held-out tasks, as far as logged data can tell."""
        if not self._holdout:
            return None
        model.eval()
        new = logprobs(model, self._holdout, micro_tokens=self._recipe.micro_tokens)
        model.train()
        found = off_policy_value([e.reward for e in self._holdout], new, self._holdout_old)
        return found.value if found else None


def _beginning(learner: Learner, data: Material, signal: Signal, first: int) -> Began:
    names = ("torch", "transformers", "peft", "accelerate")
    return Began(
        total_steps=len(learner.steps),
        total_epochs=learner.steps[-1].epoch + 1,
        first_step=first,
        examples=len(data.train),
        groups=signal.groups,
        flat_groups=signal.flat_groups,
        trained_tokens=data.trained_tokens,
        off_policy_tokens=data.off_policy_tokens,
        cut_trajectories=data.cut,
        dropped=data.dropped,
        versions={name: version(name) for name in names},
        pieced=data.pieced,
        doubted=data.doubted,
    )


def _told(dropped: dict[str, int]) -> str:
    told = "; ".join(f"{count} × {sentence.rstrip('.')}" for sentence, count in dropped.items())
    return told or "there is none"
