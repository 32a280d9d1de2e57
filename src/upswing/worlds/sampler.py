"""How does a model act in a world? The simplest sampler: one batch of replies per turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Generic, TypeVar

from upswing.worlds.chat import Chat
from upswing.worlds.episode import Episode, Step
from upswing.worlds.generate import Drawing, Drawn, generate
from upswing.worlds.world import UNFINISHED, Observation, Task, World

T = TypeVar("T", bound=Task)
S = TypeVar("S")


@dataclass(frozen=True)
class Policy:
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

    def ends(self) -> frozenset[int]:
        """The tokens that end a reply, by the word of model and tokenizer."""
        told = self.model.generation_config.eos_token_id
        listed = told if isinstance(told, list) else [told]
        return frozenset(
            token for token in (*listed, self.tokenizer.eos_token_id) if token is not None
        )


@dataclass
class _Seat(Generic[T, S]):
    """One episode while it is played."""

    task: T
    member: int
    state: S
    steps: list[Step] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(id_ for step in self.steps for id_ in (*step.prompt_ids, *step.completion_ids))


def play(
    world: World[T, S],
    tasks: Sequence[T],
    policy: Policy,
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
    seats = [_Seat(task, member, world.reset(task)) for task in tasks for member in range(group)]
    for turn in range(world.max_turns):
        going = [seat for seat in seats if world.outcome(seat.state) is None]
        if going:
            _turn(world, going, policy, chat, None if greedy else f"{seed}/{turn}")
    return [_episode(world, seat, policy, greedy) for seat in seats]


def success(
    world: World[T, S], tasks: Sequence[T], policy: Policy, *, greedy: bool = True, seed: int = 0
) -> float:
    """The share of the tasks that the policy does."""
    played = play(world, tasks, policy, greedy=greedy, seed=seed)
    return sum(episode.outcome.success for episode in played) / len(played)


def _turn(
    world: World[T, S], seats: list[_Seat[T, S]], policy: Policy, chat: Chat, chance: str | None
) -> None:
    seen = [world.observe(seat.state) for seat in seats]
    asked = [_ask(chat, seat, what, policy) for seat, what in zip(seats, seen, strict=True)]
    chances = chance and [_chance(chance, seat) for seat in seats]
    how = Drawing(policy.ends(), policy.max_new_tokens, policy.temperature, policy.batch)
    whole = [(*seat.ids, *ids) for seat, ids in zip(seats, asked, strict=True)]
    drawn = generate(policy.model, whole, chances or None, how)
    for seat, what, ids, said in zip(seats, seen, asked, drawn, strict=True):
        reply = _text(policy, said)
        seat.steps.append(Step(what, reply, ids, said.ids, said.logprobs))
        seat.state = world.step(seat.state, reply)


def _ask(chat: Chat, seat: _Seat[T, S], seen: Observation, policy: Policy) -> tuple[int, ...]:
    seat.texts.append(seen.text)
    if not seat.steps:
        return chat.opening(seat.task.instructions, seen.text)
    last = seat.steps[-1].completion_ids[-1]
    ended = last in policy.ends()
    return chat.following(seat.task.instructions, seat.texts, last if ended else None)


def _chance(chance: str, seat: _Seat[T, S]) -> Random:
    return Random(f"{chance}/{seat.task.task_id}/{seat.member}")  # noqa: S311 - not a secret


def _text(policy: Policy, said: Drawn) -> str:
    ids = said.ids[:-1] if said.ended else said.ids
    text: str = policy.tokenizer.decode(ids, skip_special_tokens=True)
    return text.strip()


def _episode(world: World[T, S], seat: _Seat[T, S], policy: Policy, greedy: bool) -> Episode:
    return Episode(
        world=world.name,
        task=seat.task,
        policy=policy.name,
        member=seat.member,
        temperature=0.0 if greedy else policy.temperature,
        steps=tuple(seat.steps),
        outcome=world.outcome(seat.state) or UNFINISHED,
    )
