"""How does a model act in a world? The simplest sampler: one batch of replies per turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Generic, TypeVar

from upswing.worlds.chat import Chat
from upswing.worlds.episode import Episode, EpisodeStep
from upswing.worlds.generate import GenerationParams, SampledCompletion, generate_completions
from upswing.worlds.world import UNFINISHED, Task, World, WorldObservation

T = TypeVar("T", bound=Task)
S = TypeVar("S")


@dataclass(frozen=True)
class SamplingPolicy:
    """A model that acts: any causal language model with a tokenizer that has a chat template."""

    name: str
    model: Any
    tokenizer: Any
    max_new_tokens: int = 8
    """Of one reply; a longer one is cut."""
    temperature: float = 1.0
    """Only at 1 are the recorded logprobs those of the distribution that was sampled from."""
    batch: int = 256
    """Replies that are written at once."""

    def end_tokens(self) -> frozenset[int]:
        """The tokens that end a reply, as model and tokenizer name them."""
        eos = self.model.generation_config.eos_token_id
        listed = eos if isinstance(eos, list) else [eos]
        return frozenset(
            token for token in (*listed, self.tokenizer.eos_token_id) if token is not None
        )


@dataclass
class _OpenEpisode(Generic[T, S]):
    """One episode while it is played."""

    task: T
    member: int
    state: S
    steps: list[EpisodeStep] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(id_ for step in self.steps for id_ in (*step.prompt_ids, *step.completion_ids))


def play_episodes(
    world: World[T, S],
    tasks: Sequence[T],
    policy: SamplingPolicy,
    *,
    group: int = 1,
    seed: int = 0,
    greedy: bool = False,
) -> list[Episode]:
    """`group` episodes of every task, task by task.

    What an episode says depends on the seed, its task and its place in the group, and not on the
    other episodes.
    """
    chat = Chat(policy.tokenizer)
    episodes = [
        _OpenEpisode(task, member, world.reset(task)) for task in tasks for member in range(group)
    ]
    for turn in range(world.max_turns):
        unfinished = [episode for episode in episodes if world.outcome(episode.state) is None]
        if unfinished:
            _play_turn(world, unfinished, policy, chat, None if greedy else f"{seed}/{turn}")
    return [_finished_episode(world, episode, policy, greedy) for episode in episodes]


def success_rate(
    world: World[T, S],
    tasks: Sequence[T],
    policy: SamplingPolicy,
    *,
    greedy: bool = True,
    seed: int = 0,
) -> float:
    """The share of the tasks that the policy does."""
    played = play_episodes(world, tasks, policy, greedy=greedy, seed=seed)
    return sum(episode.outcome.success for episode in played) / len(played)


def _play_turn(
    world: World[T, S],
    episodes: list[_OpenEpisode[T, S]],
    policy: SamplingPolicy,
    chat: Chat,
    chance: str | None,
) -> None:
    seen = [world.observe(episode.state) for episode in episodes]
    prompts = [
        _new_prompt_ids(chat, episode, what, policy)
        for episode, what in zip(episodes, seen, strict=True)
    ]
    chances = chance and [_episode_random(chance, episode) for episode in episodes]
    params = GenerationParams(
        policy.end_tokens(), policy.max_new_tokens, policy.temperature, policy.batch
    )
    whole = [(*episode.ids, *ids) for episode, ids in zip(episodes, prompts, strict=True)]
    completions = generate_completions(policy.model, whole, chances or None, params)
    for episode, what, ids, completion in zip(episodes, seen, prompts, completions, strict=True):
        reply = _decode_reply(policy, completion)
        episode.steps.append(EpisodeStep(what, reply, ids, completion.ids, completion.logprobs))
        episode.state = world.step(episode.state, reply)


def _new_prompt_ids(
    chat: Chat, episode: _OpenEpisode[T, S], seen: WorldObservation, policy: SamplingPolicy
) -> tuple[int, ...]:
    episode.texts.append(seen.text)
    if not episode.steps:
        return chat.first_prompt(episode.task.instructions, seen.text)
    last = episode.steps[-1].completion_ids[-1]
    ended = last in policy.end_tokens()
    return chat.next_prompt(episode.task.instructions, episode.texts, last if ended else None)


def _episode_random(chance: str, episode: _OpenEpisode[T, S]) -> Random:
    return Random(f"{chance}/{episode.task.task_id}/{episode.member}")  # noqa: S311 - not a secret


def _decode_reply(policy: SamplingPolicy, completion: SampledCompletion) -> str:
    ids = completion.ids[:-1] if completion.ended else completion.ids
    text: str = policy.tokenizer.decode(ids, skip_special_tokens=True)
    return text.strip()


def _finished_episode(
    world: World[T, S], episode: _OpenEpisode[T, S], policy: SamplingPolicy, greedy: bool
) -> Episode:
    return Episode(
        world=world.name,
        task=episode.task,
        policy=policy.name,
        member=episode.member,
        temperature=0.0 if greedy else policy.temperature,
        steps=tuple(episode.steps),
        outcome=world.outcome(episode.state) or UNFINISHED,
    )
