"""How does a job learn from episodes that it plays itself? Sample, update, sample with the new policy …

    curriculum ─▶ tasks ─▶ play with the policy as it is ─▶ groups ─▶ Learner, few passes ─▶ next round

Every round is on-policy: its tokens and logprobs are those that were drawn from the weights that the
round's update starts from. Tasks that are held out are not played: they measure the job, and the model
afterwards. The first round's tasks are chosen by what the log says of the policy. Episodes are played in this process and stored nowhere: they count in no
evidence, no degradation and no report but the job's own (`artifacts/rollouts.jsonl`: numbers, no text).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import torch
from torch import nn

from upswing.contracts.typed import from_json
from upswing.dataset.attempts import SUCCESS_SCORE
from upswing.dataset.split import is_held_out
from upswing.train.core.recipe import Recipe
from upswing.train.core.report import StepReport
from upswing.train.core.rollout_plan import RolloutSettings, tasks_in_next_round, turns_in_round
from upswing.train.learn.credit import LearningSignal, learning_signal
from upswing.train.learn.curriculum import TaskAttempts, choose_tasks
from upswing.train.learn.example import Example
from upswing.train.learn.example_tensors import ExampleTensors, recorded_logprobs, turn_index
from upswing.train.learn.learner import Learner, ProcessGroup
from upswing.worlds.episode import Episode
from upswing.worlds.horizon import Horizon
from upswing.worlds.known import make_world
from upswing.worlds.own import is_address
from upswing.worlds.remote_world import RemoteWorld
from upswing.worlds.sampler import SamplingPolicy, play_episodes
from upswing.worlds.world import World

_RELATIVE = frozenset({"grpo", "rloo", "reinforce"})
PURPOSE = "rollout"


class RolloutRound(msgspec.Struct, frozen=True):
    """What one round brought."""

    round: int
    turns: int
    """The horizon."""
    tasks: int
    episodes: int
    score: float
    success: float
    usable_groups: int
    """Groups whose attempts differ."""
    seconds: float
    purpose: str = PURPOSE
    last_step: int = 0
    """The job's step that ended it: weights of that step or later hold what it taught."""


@dataclass
class FreshRollouts:
    """The rounds of one job."""

    model: nn.Module
    tokenizer: Any
    recipe: Recipe
    plan: RolloutSettings
    world: World[Any, Any]
    process_group: ProcessGroup = field(default_factory=ProcessGroup)
    clock: Callable[[], float] = lambda: 0.0
    on_round: Callable[[RolloutRound], None] = lambda _: None
    """Hears of every round when it is over."""
    rounds: int = 0
    """Done so far, by this attempt or by one before it."""
    episodes: int = 0
    """Played so far."""
    task_attempts: Mapping[str, TaskAttempts] = field(default_factory=dict)
    """What the policy did with each task before, as far as it is known."""

    def __post_init__(self) -> None:
        held_out = self.recipe.holdout
        self._by_id = {
            task.task_id: task
            for task in self.world.training
            if not is_held_out(task.task_id, held_out)
        }
        self._task_attempts = dict(self.task_attempts)
        self._optimizer: dict[str, Any] | None = None
        self.tokens = 0

    def run(self, first_step: int = 0) -> Iterator[StepReport]:
        """Round after round, step after step, numbered from `first_step` on; a round is an epoch."""
        began, step = self.clock(), first_step
        recipe = _on_policy_recipe(self.recipe, self.plan.passes)
        for number in range(self.rounds, self.plan.rounds):
            count = tasks_in_next_round(self.plan, self.episodes)
            if not count or self._is_over(began):
                return
            at = self.clock()
            played = self._play_round(number, count)
            examples = [episode_example(episode, f"{PURPOSE}-{number}") for episode in played]
            for stepped in self._learn_from_examples(examples, recipe):
                step += 1
                yield msgspec.structs.replace(stepped, step=step, epoch=number + 1)
            self.rounds = number + 1
            turns = turns_in_round(self.plan, number, self.world.max_turns)
            brought = _summarise_round(number, turns, played, self.clock() - at)
            self.on_round(msgspec.structs.replace(brought, last_step=step))

    def _learn_from_examples(
        self, examples: Sequence[Example], recipe: Recipe
    ) -> Iterator[StepReport]:
        tracks = [sampled_tensors(example) for example in examples]
        signal = _one_episode_clusters(learning_signal(examples, tracks, recipe))
        if not signal.clusters:
            return
        learner = Learner(
            self.model, examples, signal, recipe, process_group=self.process_group, clock=self.clock
        )
        if self._optimizer is not None:
            learner.optimizer.load_state_dict(self._optimizer)
        self.model.train()
        for stepped in learner.run():
            yield msgspec.structs.replace(stepped, tokens=self.tokens + stepped.tokens)
        self.tokens += learner.tokens
        self._optimizer = learner.optimizer.state_dict()

    def _is_over(self, began: float) -> bool:
        """Processes that train together must agree, and their clocks do not: there only counts bound."""
        return self.process_group.size == 1 and self.clock() - began >= self.plan.minutes * 60

    def _play_round(self, number: int, count: int) -> list[Episode]:
        """The episodes of a round that say something."""
        plan = self.plan
        chosen = choose_tasks(
            self._task_attempts, list(self._by_id), count, f"{self.recipe.seed}/{number}"
        )
        policy = SamplingPolicy(PURPOSE, self.model, self.tokenizer, max_new_tokens=plan.max_tokens)
        played = play_episodes(
            Horizon(self.world, turns_in_round(plan, number, self.world.max_turns)),
            [self._by_id[task] for task in chosen],
            policy,
            group=plan.attempts,
            seed=self.recipe.seed * 100_003 + number,
        )
        self.episodes += len(played)
        sound = [episode for episode in played if not episode.outcome.fault]
        self._update_attempts(sound)
        return sound

    def _update_attempts(self, played: Sequence[Episode]) -> None:
        """The newest attempts tell what the policy can do now; older ones count half."""
        tried = Counter(episode.task.task_id for episode in played)
        solved = Counter(episode.task.task_id for episode in played if episode.outcome.success)
        for task, attempts in tried.items():
            old = self._task_attempts.get(task, TaskAttempts())
            self._task_attempts[task] = TaskAttempts(
                attempts + old.attempts // 2, solved[task] + old.successes // 2
            )


@contextmanager
def open_world(
    settings: RolloutSettings, registered: Mapping[str, str]
) -> Iterator[World[Any, Any]]:
    """The world that is played: one of ours, one that is registered by name, or the one at an address."""
    where = registered.get(settings.world, settings.world)
    if not is_address(where):
        yield make_world(where, settings.seed)
        return
    with RemoteWorld(where) as world:
        yield world


def run_rollouts(
    model: nn.Module,
    tokenizer: Any,
    recipe: Recipe,
    folder: Path,
    *,
    process_group: ProcessGroup,
    clock: Callable[[], float],
    first_step: int,
    worlds: Mapping[str, str] = MappingProxyType({}),
    logged: Sequence[Example] = (),
) -> Iterator[StepReport]:
    """The rounds of a job's recipe, those left of them; what they brought is kept in its folder.

    `worlds` are the registered ones, by name; `logged` is what the policy did before.
    """
    plan, path = recipe.rollouts, folder / "artifacts" / "rollouts.jsonl"
    if plan is None:
        return
    done = [each for each in _read_rounds(path) if each.last_step <= first_step]
    _rewrite_rounds(path, done)

    def note(played: RolloutRound) -> None:
        if process_group.rank == 0:
            path.parent.mkdir(exist_ok=True)
            with path.open("ab") as lines:
                lines.write(msgspec.json.encode(played) + b"\n")

    with open_world(plan, worlds) as world:
        rounds = FreshRollouts(
            model,
            tokenizer,
            recipe,
            plan,
            world,
            process_group=process_group,
            clock=clock,
            on_round=note,
            rounds=len(done),
            episodes=sum(each.episodes for each in done),
            task_attempts=attempts_by_task(logged),
        )
        yield from rounds.run(first_step)


def attempts_by_task(logged: Sequence[Example]) -> dict[str, TaskAttempts]:
    """How often each task was tried and solved, by the log."""
    tried = Counter(example.task for example in logged)
    solved = Counter(example.task for example in logged if example.reward >= SUCCESS_SCORE)
    return {task: TaskAttempts(count, solved[task]) for task, count in tried.items()}


def _rewrite_rounds(path: Path, done: Sequence[RolloutRound]) -> None:
    """Only what the weights hold that are gone on with: a round after them is played again."""
    if path.exists():
        path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in done))


def _read_rounds(path: Path) -> list[RolloutRound]:
    """Rounds that an attempt before this one has ended; a torn last line is none."""
    found: list[RolloutRound] = []
    with suppress(FileNotFoundError, msgspec.MsgspecError):
        for line in path.read_bytes().splitlines():
            found.append(from_json(line, RolloutRound))  # noqa: PERF401 - those before a torn one count
    return found


def episode_example(episode: Episode, window: str) -> Example:
    """An episode in tokens, exactly as it was sampled; attempts at a task in one window are a group."""
    steps = episode.steps
    sizes = [(len(step.prompt_ids), len(step.completion_ids)) for step in steps]
    return Example(
        trajectory_id=f"{window}/{episode.task.task_id}/{episode.member}",
        group=f"{window}/{episode.task.task_id}",
        task=episode.task.task_id,
        ids=episode.ids,
        trained=tuple(own for read, said in sizes for own in (*[False] * read, *[True] * said)),
        turns=tuple(turn for turn, size in enumerate(sizes) for _ in range(sum(size))),
        logps=tuple(
            logp
            for step, (read, _) in zip(steps, sizes, strict=True)
            for logp in (*[0.0] * read, *step.logprobs)
        ),
        exact=True,
        reward=episode.outcome.score,
        score_scale="verified",
        agent_id=f"{PURPOSE}-{episode.member}",
        behaviour=episode.policy,
    )


def sampled_tensors(example: Example) -> ExampleTensors:
    """What was sampled, with the logprobs that it was sampled with."""
    old = recorded_logprobs(example)
    return ExampleTensors(torch.empty(0) if old is None else old, turn_index(example))


def _one_episode_clusters(signal: LearningSignal) -> LearningSignal:
    """Every episode for itself: a step then sees many tasks once and not few tasks many times."""
    alone = tuple((member,) for cluster in signal.clusters for member in cluster)
    return replace(signal, clusters=alone)


def _on_policy_recipe(recipe: Recipe, passes: int) -> Recipe:
    """A few passes over what was just sampled, against the policy that sampled it."""
    algorithm = recipe.algorithm if recipe.algorithm in _RELATIVE else "grpo"
    return msgspec.structs.replace(
        recipe,
        algorithm=algorithm,
        epochs=passes,
        iterations=1,
        windows_per_iteration=None,
        kl_beta=0.0,
        schedule="constant",
        warmup=0.0,
    )


def _summarise_round(
    number: int, turns: int, played: Sequence[Episode], seconds: float
) -> RolloutRound:
    scores: dict[str, list[float]] = {}
    for episode in played:
        scores.setdefault(episode.task.task_id, []).append(episode.outcome.score)
    count = max(1, len(played))
    return RolloutRound(
        round=number + 1,
        turns=turns,
        tasks=len(scores),
        episodes=len(played),
        score=sum(episode.outcome.score for episode in played) / count,
        success=sum(episode.outcome.success for episode in played) / count,
        usable_groups=sum(max(some) > min(some) for some in scores.values()),
        seconds=seconds,
    )
