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

from upswing.contracts.typed import from_json
from upswing.dataset.select import IMITATING
from upswing.train.bases.catalog import BaseModel, resolve_base
from upswing.train.bases.loading import (
    hidden_size,
    load_base,
    make_trainable,
    set_threads,
    without_adapter,
)
from upswing.train.child.channel import ReportChannel, peak_bytes
from upswing.train.child.data import TrainingExamples, UnusableData, load_examples
from upswing.train.child.evaluation import Evaluator, LoggedEpisodes, PlayHeldOut
from upswing.train.child.held_out_player import held_out_player
from upswing.train.child.logprobs import LogprobCache
from upswing.train.child.outputs import JobOutputs
from upswing.train.child.process_group import make_process_group
from upswing.train.child.rollouts import run_rollouts
from upswing.train.core.recipe import Recipe
from upswing.train.core.report import CheckpointSaved, StepReport, TrainingDone, TrainingStarted
from upswing.train.core.spec import JobSpec
from upswing.train.learn.credit import LearningSignal, learning_signal, no_signal_reason
from upswing.train.learn.evaluation import (
    StopReason,
    best_evaluation,
    early_stop,
    is_unchanged,
    kl_budget,
    no_change_advice,
)
from upswing.train.learn.example import Example
from upswing.train.learn.example_tensors import (
    EngineMismatch,
    ExampleTensors,
    implausible_examples,
    importance_stats,
)
from upswing.train.learn.learner import Learner


class TrainingSession:
    """One attempt at one job."""

    def __init__(
        self,
        folder: Path,
        spec: JobSpec,
        channel: ReportChannel,
        *,
        play: PlayHeldOut | None = None,
    ) -> None:
        self._folder = folder
        self._spec = spec
        self._recipe = spec.recipe
        self._channel = channel
        self._play = play
        """Plays held-out tasks with the policy as it is; none: as `playing` finds them."""
        self._started_at = time.monotonic()
        self._mismatch: EngineMismatch | None = None

    def run(self) -> None:
        """To the final checkpoint, and tell of it."""
        done = self._folder / "done.json"
        if (ended := _read_done(done)) is not None:
            self._channel.send(ended)
            return
        torch.manual_seed(self._recipe.seed)
        self._process_group = make_process_group(self._recipe)
        self._channel.activity = "loading the base"
        base = resolve_base(self._spec.base_model, Path(self._spec.cache))
        model, tokenizer = load_base(base, device=self._process_group.device)
        set_threads(model, self._spec.threads, shares_cores=self._spec.shares_cores)
        self._channel.activity = "encoding"
        data = load_examples(
            self._folder / "samples.jsonl", tokenizer, self._recipe, self._spec.drop
        )
        if not data.train:
            raise UnusableData(f"No trajectory can be trained on: {_dropped_text(data.dropped)}.")
        start = Path(self._spec.start) if self._spec.start else None
        model = make_trainable(model, self._recipe, start, full=self._trains_all_weights(base))
        self._channel.activity = "looking at the data"
        signal, self._evaluator = self._prepare_signal(model, tokenizer, base, data)
        # Fresh rounds start from themselves: how far they lead away together is no fault.
        fresh = self._recipe.rollouts is not None
        self._budget = (
            math.inf if fresh else kl_budget(self._recipe, self._evaluator.tokens_per_reply)
        )
        learner = Learner(
            model,
            data.train,
            signal,
            self._recipe,
            value_head=self._value_head(model, data.train),
            process_group=self._process_group,
            clock=time.monotonic,
        )
        outputs = JobOutputs(self._folder, self._spec, base, model, learner)
        first = outputs.restore()
        began = _with_importance(
            _started_report(
                learner, data, signal, first, self._spec.parent or self._spec.base_model
            ),
            signal,
            self._recipe,
            self._mismatch,
        )
        self._channel.send(began)
        stopped = self._train(model, learner, outputs, first)
        self._run_rollouts(model, tokenizer, outputs, data)
        self._finish(model, outputs, data, began, stopped)

    def _trains_all_weights(self, base: BaseModel) -> bool:
        return base.full if self._recipe.full is None else self._recipe.full

    def _prepare_signal(
        self, model: nn.Module, tokenizer: object, base: BaseModel, data: TrainingExamples
    ) -> tuple[LearningSignal, Evaluator]:
        """What there is to learn, and what the policy is before it is learned."""
        everything = (*data.train, *data.holdout)
        known = LogprobCache(
            self._folder, self._spec, everything, writes=self._process_group.rank == 0
        )
        count = len(data.train)
        everyone = known.build_tensors(model, base, without_adapter)
        tracks = everyone[:count]
        self._mismatch = known.mismatch(model)
        if bad := implausible_examples(data.train, tracks):
            raise UnusableData(
                f"the recorded numbers of {len(bad)} trajectories cannot be true", bad
            )
        signal = learning_signal(data.train, tracks, self._recipe)
        if sentence := no_signal_reason(signal, self._recipe):
            long = f"{data.masked} of {count} trajectories are longer than `max_tokens`"
            raise UnusableData(f"{sentence}; {long}" if data.masked else sentence)
        play = self._play or held_out_player(
            data.holdout, tokenizer, self._spec.worlds, seed=self._recipe.seed
        )
        evaluator = Evaluator(
            model,
            tokenizer,
            _logged_episodes(data.train, tracks),
            _logged_episodes(data.holdout, everyone[count:]),
            micro_tokens=self._recipe.micro_tokens,
            play_held_out=play,
        )
        return signal, evaluator

    def _value_head(self, model: nn.Module, examples: Sequence[Example]) -> nn.Module | None:
        """PPO: starts by expecting the mean reward everywhere."""
        if self._recipe.algorithm != "ppo":
            return None
        head = nn.Linear(hidden_size(model), 1)
        nn.init.zeros_(head.weight)
        mean = sum(example.reward for example in examples) / len(examples)
        nn.init.constant_(head.bias, mean)
        return head.to(self._process_group.device)

    def _train(
        self, model: nn.Module, learner: Learner, outputs: JobOutputs, first: int
    ) -> StopReason | None:
        """Step by step, until the last or until an evaluation says that it is enough."""
        self._channel.activity = "training"
        if not outputs.evaluations:
            outputs.record_evaluation(self._evaluator.start)
        if stopped := early_stop(outputs.evaluations, self._budget):
            return stopped
        total = len(learner.steps)
        due = {
            round(total * share / self._recipe.evaluations)
            for share in range(1, self._recipe.evaluations + 1)
        }
        model.train()
        for stepped in learner.run(first):
            self._channel.step = stepped.step
            self._channel.send(stepped)
            outputs.record_step(stepped)
            if stepped.step in due:
                self._evaluate(model, outputs, stepped)
                if stopped := self._agree_on_stop(early_stop(outputs.evaluations, self._budget)):
                    return stopped
            elif stepped.step % self._recipe.save_interval == 0:
                self._save_checkpoint(outputs, stepped, None, best=False)
        return None

    def _run_rollouts(
        self, model: nn.Module, tokenizer: object, outputs: JobOutputs, data: TrainingExamples
    ) -> None:
        """Fresh episodes, where the recipe wants them; every round ends with an evaluation."""
        self._channel.activity = "playing"
        start = self._spec.parent or self._spec.base_model
        last: StepReport | None = None
        for stepped in run_rollouts(
            model,
            tokenizer,
            self._recipe,
            self._folder,
            process_group=self._process_group,
            clock=time.monotonic,
            first_step=outputs.step,
            worlds=self._spec.worlds,
            logged=[each for each in data.train if each.behaviour == start],
        ):
            if last is not None and stepped.epoch != last.epoch:
                self._evaluate(model, outputs, last)
            self._channel.step = stepped.step
            self._channel.send(stepped)
            outputs.record_step(stepped)
            last = stepped
        if last is not None:
            self._evaluate(model, outputs, last)

    def _evaluate(self, model: nn.Module, outputs: JobOutputs, stepped: StepReport) -> None:
        """Measure, and keep a checkpoint of what was measured."""
        evaluation = self._evaluator.evaluate(model, stepped.step)
        outputs.record_evaluation(evaluation)
        best = best_evaluation(outputs.evaluations, self._budget).step == stepped.step
        self._save_checkpoint(outputs, stepped, evaluation.value, best=best)

    def _agree_on_stop(self, stop: StopReason | None) -> StopReason | None:
        """Of several processes that train together, the first decides."""
        if self._process_group.size == 1:
            return stop
        mine = _STOP_CODES.index(stop) if self._process_group.rank == 0 else 0
        return _STOP_CODES[
            int(
                self._process_group.sum_across(
                    torch.tensor(float(mine), device=self._process_group.device)
                )
            )
        ]

    def _save_checkpoint(
        self, outputs: JobOutputs, stepped: StepReport, holdout_value: float | None, *, best: bool
    ) -> None:
        path = outputs.save(stepped, holdout_value, best=best)
        self._channel.send(CheckpointSaved(stepped.step, str(path), holdout_value, best))

    def _finish(
        self,
        model: nn.Module,
        outputs: JobOutputs,
        data: TrainingExamples,
        began: TrainingStarted,
        stopped: StopReason | None,
    ) -> None:
        """The best of what was evaluated ships, and says how far it is from where it began."""
        self._channel.activity = "writing the model"
        evaluator, last_step = self._evaluator, outputs.step
        best = best_evaluation(outputs.evaluations, self._budget)
        if best.step != last_step and not outputs.load_best(best.step):
            best = evaluator.evaluate(model, last_step)
        changed = evaluator.changed_answers(model)
        no_change = is_unchanged(best.kl, changed)
        rewards = [example.reward for example in data.train]
        # What was selected because it succeeded says nothing about how well a model does.
        imitates = self._recipe.algorithm in IMITATING
        comparable = best.source == "fresh" or not imitates
        done = TrainingDone(
            step=outputs.step,
            final="",
            curves="",
            tensorboard="",
            card="",
            holdout_before=evaluator.start.value if comparable else None,
            holdout_after=best.value if comparable else None,
            peak_rss_bytes=peak_bytes(),
            seconds=time.monotonic() - self._started_at,
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
            advice=no_change_advice(
                self._recipe, usable_groups=began.groups - began.flat_groups, steps=last_step
            )
            if no_change
            else "",
        )
        self._channel.send(outputs.finish(done, began))


_STOP_CODES: tuple[StopReason | None, ...] = (None, "kl_budget", "diversity", "no_gain")


def _read_done(path: Path) -> TrainingDone | None:
    """What a job said that ended before; one that cannot be read goes on from its last checkpoint."""
    try:
        return from_json(path.read_bytes(), TrainingDone)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _logged_episodes(
    examples: Sequence[Example], tensors: Sequence[ExampleTensors]
) -> LoggedEpisodes:
    """Episodes to measure with; an over-long one has no tokens."""
    pairs = zip(examples, tensors, strict=True)
    whole = [(example, track) for example, track in pairs if not example.masked]
    return LoggedEpisodes(
        [example for example, _ in whole],
        [track.old_T for _, track in whole],
        [track.old_T if track.start_T is None else track.start_T for _, track in whole],
    )


def _started_report(
    learner: Learner, data: TrainingExamples, signal: LearningSignal, first: int, policy: str
) -> TrainingStarted:
    names = ("torch", "transformers", "peft", "accelerate")
    return TrainingStarted(
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


def _with_importance(
    began: TrainingStarted, signal: LearningSignal, recipe: Recipe, mismatch: EngineMismatch | None
) -> TrainingStarted:
    """The same, with what is known of the policy that acted."""
    trained = {member for cluster in signal.clusters for member in cluster}
    weights = importance_stats([signal.tracks[member] for member in trained], recipe.importance_cap)
    return msgspec.structs.replace(
        began,
        reference=recipe.reference,
        importance_mean=weights.mean,
        importance_truncated=weights.truncated,
        effective_sample=weights.effective,
        mismatch_kl=mismatch.kl if mismatch else None,
        mismatch_logp=mismatch.logp if mismatch else None,
    )


def _dropped_text(dropped: dict[str, int]) -> str:
    reasons = "; ".join(f"{count} × {sentence.rstrip('.')}" for sentence, count in dropped.items())
    return reasons or "there is none"
