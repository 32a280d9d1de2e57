"""How does a job run from its first to its last step, whatever happened to it before?

| part     | done once                   | after a crash                                  |
|----------|-----------------------------|------------------------------------------------|
| logprobs | of behaviour and reference  | read from `logprobs.safetensors`               |
| steps    | drawn from the seed         | from the newest checkpoint that is whole       |
| curves   | `steps.jsonl` grows         | cut back to the checkpoint's step              |
| how far  | `evaluations.jsonl` grows   | the same; a job that had stopped stays stopped |
| the end  | `done.json`                 | told again: whoever asks gets the same model   |
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec
import torch
from torch import nn

from upswing.adapters.bases import Base, resolve
from upswing.adapters.models import hidden_size, load, reference, set_threads, trainable
from upswing.contracts.typed import from_json
from upswing.dataset.select import IMITATING
from upswing.train.credit import Signal, nothing_to_learn, signal_of
from upswing.train.evaluation import Stop, advice, chosen, kl_budget, stop_of, unmoved
from upswing.train.example import Example
from upswing.train.learner import Learner
from upswing.train.recipe import Recipe
from upswing.train.report import Began, Done, Saved, Stepped
from upswing.train.spec import JobSpec
from upswing.train.tracks import Mismatch, Track, unsound, weights_of
from upswing.training.channel import Channel, peak_bytes
from upswing.training.data import Material, Unlearnable, material
from upswing.training.evaluating import Evaluator, Logged, Playable
from upswing.training.keeping import Keeping
from upswing.training.logprobs import Logprobs
from upswing.training.playing import playable
from upswing.training.rollouts import roll_out
from upswing.training.team import make_team


class Session:
    """One attempt at one job."""

    def __init__(
        self, folder: Path, spec: JobSpec, channel: Channel, *, play: Playable | None = None
    ) -> None:
        self._folder = folder
        self._spec = spec
        self._recipe = spec.recipe
        self._channel = channel
        self._play = play
        """Plays held-out tasks with the policy as it is; none: as `playing` finds them."""
        self._began = time.monotonic()
        self._mismatch: Mismatch | None = None

    def run(self) -> None:
        """To the final checkpoint, and tell of it."""
        done = self._folder / "done.json"
        if (ended := _read_done(done)) is not None:
            self._channel.tell(ended)
            return
        torch.manual_seed(self._recipe.seed)
        self._team = make_team(self._recipe)
        self._channel.doing = "loading the base"
        base = resolve(self._spec.base_model, Path(self._spec.cache))
        model, tokenizer = load(base, device=self._team.device)
        set_threads(model, self._spec.threads, beside=self._spec.beside)
        self._channel.doing = "encoding"
        data = material(self._folder / "samples.jsonl", tokenizer, self._recipe, self._spec.drop)
        if not data.train:
            raise Unlearnable(f"No trajectory can be trained on: {_told(data.dropped)}.")
        start = Path(self._spec.start) if self._spec.start else None
        model = trainable(model, self._recipe, start, full=self._full(base))
        self._channel.doing = "looking at the data"
        signal, self._evaluator = self._prepare(model, tokenizer, base, data)
        # Fresh rounds start from themselves: how far they lead away together is no fault.
        fresh = self._recipe.rollouts is not None
        self._budget = (
            math.inf if fresh else kl_budget(self._recipe, self._evaluator.tokens_per_reply)
        )
        learner = Learner(
            model, data.train, signal, self._recipe, value_head=self._value_head(model, data.train),
            team=self._team, clock=time.monotonic,
        )  # fmt: skip
        keeping = Keeping(self._folder, self._spec, base, model, learner)
        first = keeping.restore()
        began = _weighed(
            _beginning(learner, data, signal, first, self._spec.parent or self._spec.base_model),
            signal,
            self._recipe,
            self._mismatch,
        )
        self._channel.tell(began)
        stopped = self._train(model, learner, keeping, first)
        self._roll_out(model, tokenizer, keeping, data)
        self._finish(model, keeping, data, began, stopped)

    def _full(self, base: Base) -> bool:
        return base.full if self._recipe.full is None else self._recipe.full

    def _prepare(
        self, model: nn.Module, tokenizer: object, base: Base, data: Material
    ) -> tuple[Signal, Evaluator]:
        """What there is to learn, and what the policy is before it is learned."""
        everything = (*data.train, *data.holdout)
        known = Logprobs(self._folder, self._spec, everything, writes=self._team.rank == 0)
        count = len(data.train)
        everyone = known.tracks(model, base, reference)
        tracks = everyone[:count]
        self._mismatch = known.mismatch(model)
        if bad := unsound(data.train, tracks):
            raise Unlearnable(
                f"the recorded numbers of {len(bad)} trajectories cannot be true", bad
            )
        signal = signal_of(data.train, tracks, self._recipe)
        if sentence := nothing_to_learn(signal, self._recipe):
            long = f"{data.masked} of {count} trajectories are longer than `max_tokens`"
            raise Unlearnable(f"{sentence}; {long}" if data.masked else sentence)
        play = self._play or playable(
            data.holdout, tokenizer, self._spec.worlds, seed=self._recipe.seed
        )
        evaluator = Evaluator(
            model, tokenizer,
            _logged(data.train, tracks), _logged(data.holdout, everyone[count:]),
            micro_tokens=self._recipe.micro_tokens, playable=play,
        )  # fmt: skip
        return signal, evaluator

    def _value_head(self, model: nn.Module, examples: Sequence[Example]) -> nn.Module | None:
        """PPO: starts by expecting the mean reward everywhere."""
        if self._recipe.algorithm != "ppo":
            return None
        head = nn.Linear(hidden_size(model), 1)
        nn.init.zeros_(head.weight)
        mean = sum(example.reward for example in examples) / len(examples)
        nn.init.constant_(head.bias, mean)
        return head.to(self._team.device)

    def _train(
        self, model: nn.Module, learner: Learner, keeping: Keeping, first: int
    ) -> Stop | None:
        """Step by step, until the last or until an evaluation says that it is enough."""
        self._channel.doing = "training"
        if not keeping.evaluations:
            keeping.evaluated(self._evaluator.start)
        if stopped := stop_of(keeping.evaluations, self._budget):
            return stopped
        total = len(learner.steps)
        due = {round(total * share / self._recipe.evaluations) for share in range(1, self._recipe.evaluations + 1)}  # fmt: skip
        model.train()
        for stepped in learner.run(first):
            self._channel.step = stepped.step
            self._channel.tell(stepped)
            keeping.note(stepped)
            if stepped.step in due:
                self._evaluate(model, keeping, stepped)
                if stopped := self._agreed(stop_of(keeping.evaluations, self._budget)):
                    return stopped
            elif stepped.step % self._recipe.save_interval == 0:
                self._save(keeping, stepped, None, best=False)
        return None

    def _roll_out(
        self, model: nn.Module, tokenizer: object, keeping: Keeping, data: Material
    ) -> None:
        """Fresh episodes, where the recipe wants them; every round ends with an evaluation."""
        self._channel.doing = "playing"
        start = self._spec.parent or self._spec.base_model
        last: Stepped | None = None
        for stepped in roll_out(
            model, tokenizer, self._recipe, self._folder, team=self._team, clock=time.monotonic,
            first_step=keeping.step, worlds=self._spec.worlds,
            logged=[each for each in data.train if each.behaviour == start],
        ):  # fmt: skip
            if last is not None and stepped.epoch != last.epoch:
                self._evaluate(model, keeping, last)
            self._channel.step = stepped.step
            self._channel.tell(stepped)
            keeping.note(stepped)
            last = stepped
        if last is not None:
            self._evaluate(model, keeping, last)

    def _evaluate(self, model: nn.Module, keeping: Keeping, stepped: Stepped) -> None:
        """Measure, and keep a checkpoint of what was measured."""
        evaluation = self._evaluator.evaluate(model, stepped.step)
        keeping.evaluated(evaluation)
        best = chosen(keeping.evaluations, self._budget).step == stepped.step
        self._save(keeping, stepped, evaluation.value, best=best)

    def _agreed(self, stop: Stop | None) -> Stop | None:
        """Of several processes that train together, the first decides."""
        if self._team.size == 1:
            return stop
        mine = _STOPS.index(stop) if self._team.rank == 0 else 0
        return _STOPS[int(self._team.total(torch.tensor(float(mine), device=self._team.device)))]

    def _save(
        self, keeping: Keeping, stepped: Stepped, measured: float | None, *, best: bool
    ) -> None:
        path = keeping.save(stepped, measured, best=best)
        self._channel.tell(Saved(stepped.step, str(path), measured, best))

    def _finish(
        self, model: nn.Module, keeping: Keeping, data: Material, began: Began, stopped: Stop | None
    ) -> None:
        """The best of what was evaluated ships, and says how far it is from where it began."""
        self._channel.doing = "writing the model"
        evaluator, last_step = self._evaluator, keeping.step
        best = chosen(keeping.evaluations, self._budget)
        if best.step != last_step and not keeping.take_best(best.step):
            best = evaluator.evaluate(model, last_step)
        changed = evaluator.changed_answers(model)
        no_change = unmoved(best.kl, changed)
        rewards = [example.reward for example in data.train]
        # What was selected because it succeeded says nothing about how well a model does.
        imitates = self._recipe.algorithm in IMITATING
        told = best.source == "fresh" or not imitates
        done = Done(
            step=keeping.step,
            final="", curves="", tensorboard="", card="",
            holdout_before=evaluator.start.value if told else None,
            holdout_after=best.value if told else None,
            peak_rss_bytes=peak_bytes(),
            seconds=time.monotonic() - self._began,
            samples=len(data.train),
            reward_mean=sum(rewards) / len(rewards),
            stopped=stopped or "",
            last_step=last_step,
            kl=best.kl,
            kl_budget=self._budget,
            changed_answers=changed,
            diversity=(evaluator.start.diversity, best.diversity),
            train_before=None if imitates else evaluator.start_reward,
            train_after=None if imitates else evaluator.train_reward(model),
            measured_by=best.source,
            effective=best.effective,
            no_change=no_change,
            advice=advice(
                self._recipe, usable_groups=began.groups - began.flat_groups, steps=last_step
            ) if no_change else "",
        )  # fmt: skip
        self._channel.tell(keeping.finish(done, began))


_STOPS: tuple[Stop | None, ...] = (None, "kl_budget", "diversity", "no_gain")


def _read_done(path: Path) -> Done | None:
    """What a job said that ended before; one that cannot be read goes on from its last checkpoint."""
    try:
        return from_json(path.read_bytes(), Done)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _logged(examples: Sequence[Example], tracks: Sequence[Track]) -> Logged:
    """Episodes to measure with; an over-long one has no tokens."""
    pairs = zip(examples, tracks, strict=True)
    whole = [(example, track) for example, track in pairs if not example.masked]
    return Logged(
        [example for example, _ in whole],
        [track.old_T for _, track in whole],
        [track.old_T if track.start_T is None else track.start_T for _, track in whole],
    )


def _beginning(learner: Learner, data: Material, signal: Signal, first: int, policy: str) -> Began:
    names = ("torch", "transformers", "peft", "accelerate")
    return Began(
        total_steps=len(learner.steps),
        total_epochs=learner.steps[-1].epoch + 1,
        first_step=first,
        examples=len(data.train),
        groups=signal.groups,
        flat_groups=signal.flat_groups,
        trained_tokens=data.trained_tokens,
        off_policy_tokens=data.off_policy_tokens(policy),
        masked_trajectories=data.masked,
        dropped=data.dropped,
        versions={name: version(name) for name in names},
        pieced=data.pieced,
        doubted=data.doubted,
        policy_versions=data.policy_versions,
    )


def _weighed(began: Began, signal: Signal, recipe: Recipe, mismatch: Mismatch | None) -> Began:
    """The same, with what is known of the policy that acted."""
    trained = {member for cluster in signal.clusters for member in cluster}
    weights = weights_of([signal.tracks[member] for member in trained], recipe.importance_cap)
    return msgspec.structs.replace(
        began,
        reference=recipe.reference,
        importance_mean=weights.mean,
        importance_truncated=weights.truncated,
        effective_sample=weights.effective,
        mismatch_kl=mismatch.kl if mismatch else None,
        mismatch_logp=mismatch.logp if mismatch else None,
    )


def _told(dropped: dict[str, int]) -> str:
    told = "; ".join(f"{count} × {sentence.rstrip('.')}" for sentence, count in dropped.items())
    return told or "there is none"
