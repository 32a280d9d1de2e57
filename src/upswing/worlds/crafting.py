"""A workbench: what has to be got and made first? Episodes of several steps, like TextCraft's.

    answer buy merge fetch run find or fix
    please make a hammer by friday. i am calm. you have nothing     ─▶ buy
    you have iron. make a hammer                                    ─▶ fetch
    you have iron coal. make a hammer                               ─▶ merge
    you have steel. make a hammer                                   ─▶ find
    you have steel wood. make a hammer                              ─▶ fix

Every thing has a word that gets or makes it. A thing is made if what it is made of is at hand, and
uses that up. The tables are in no prompt (`get wood` and `make hammer` are understood as well):

| raw    | word   |
|--------|--------|
| cotton | open   |
| wood   | find   |
| iron   | buy    |
| coal   | fetch  |
| sand   | search |

| thing  | word   | made of         | steps |
|--------|--------|-----------------|-------|
| rope   | repair | cotton          | 2     |
| paper  | write  | wood            | 2     |
| steel  | merge  | iron, coal      | 3     |
| glass  | run    | sand, coal      | 3     |
| book   | read   | paper, rope     | 5     |
| hammer | fix    | steel, wood     | 5     |
| lamp   | start  | glass, rope     | 6     |
| knife  | test   | steel, rope     | 6     |

An agent has two replies more than a thing takes steps. Who makes it has a score of 1; who does not
has half of the share of its steps that were taken.

| policy                     | score | success |
|----------------------------|-------|---------|
| at random among the offers | 0.40  | 0.22    |
| the tables                 | 1.00  | 1.00    |
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from upswing.worlds.world import Task, WorldObservation, WorldOutcome

RECIPES: dict[str, tuple[str, ...]] = {
    "rope": ("cotton",),
    "paper": ("wood",),
    "steel": ("iron", "coal"),
    "glass": ("sand", "coal"),
    "book": ("paper", "rope"),
    "hammer": ("steel", "wood"),
    "lamp": ("glass", "rope"),
    "knife": ("steel", "rope"),
}
"""A thing, and what it is made of."""
WORDS = {
    "cotton": "open",
    "wood": "find",
    "iron": "buy",
    "coal": "fetch",
    "sand": "search",
    "rope": "repair",
    "paper": "write",
    "steel": "merge",
    "glass": "run",
    "book": "read",
    "hammer": "fix",
    "lamp": "start",
    "knife": "test",
}
"""What gets or makes a thing."""
RAW = tuple(thing for thing in WORDS if thing not in RECIPES)
_THINGS = {word: thing for thing, word in WORDS.items()}
SLACK = 2
"""Replies beyond the steps that a thing takes."""
_DISTRACTORS = 1
"""Words that an agent may choose from beside those that it needs; none where it needs six."""
_PARTIAL = 0.5
"""Of the share of the steps, where the thing was not made."""
_GREETINGS = ("hello", "hi", "please", "sorry", "well", "listen")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MOODS = ("angry", "upset", "worried", "calm", "happy", "patient")
_ASKED = "{0} make a {thing} by {1}. i am {2}"
_VERBS = ("get ", "make ", "craft ")


def crafting_steps_for(thing: str) -> tuple[str, ...]:
    """What has to be got and made, in an order that works, the thing itself last.

    >>> crafting_steps_for("hammer")
    ('iron', 'coal', 'steel', 'wood', 'hammer')
    """
    parts = (step for part in RECIPES.get(thing, ()) for step in crafting_steps_for(part))
    return (*parts, thing)


@dataclass(frozen=True, slots=True)
class Order(Task):
    """One thing that somebody wants."""

    thing: str
    text: str


@dataclass(frozen=True, slots=True)
class CraftingState:
    """An order, and what was done about it so far."""

    order: Order
    at_hand: tuple[str, ...] = ()
    taken: frozenset[str] = frozenset()
    """Steps of the order that were taken."""
    replies: int = 0
    refused: bool = False
    """Whether the last reply could not be done."""

    @property
    def made(self) -> bool:
        return self.order.thing in self.at_hand


@dataclass(frozen=True)
class Crafting:
    """The same seed makes the same orders.

    >>> crafting = Crafting(seed=1)
    >>> order = next(order for order in crafting.training if order.thing == "steel")
    >>> state = crafting.reset(order)
    >>> for step in ("buy", "merge", "get coal", "merge"):
    ...     state = crafting.step(state, step)
    >>> crafting.outcome(state).sentence
    'The steel is made.'
    """

    seed: int = 0
    sizes: tuple[int, int] = (1152, 176)
    """How many orders there are to learn from, and to measure with."""
    tests: int = 320
    """How many orders there are that neither training nor validation sees."""

    @property
    def name(self) -> str:
        return "crafting"

    @property
    def max_turns(self) -> int:
        return max(len(crafting_steps_for(thing)) for thing in RECIPES) + SLACK

    @cached_property
    def training(self) -> tuple[Order, ...]:
        return self._draw_orders[self.sizes[1] : sum(self.sizes)]

    @cached_property
    def held_out(self) -> tuple[Order, ...]:
        return self._draw_orders[: self.sizes[1]]

    @cached_property
    def test(self) -> tuple[Order, ...]:
        return self._draw_orders[sum(self.sizes) :]

    @cached_property
    def _draw_orders(self) -> tuple[Order, ...]:
        count = sum(self.sizes) + self.tests
        return tuple(
            Order(f"crafting-{self.seed}-{number:04d}", *order)
            for number, order in enumerate(islice(_draw_orders_of_seed(self.seed), count))
        )

    def reset(self, task: Order) -> CraftingState:
        return CraftingState(task)

    def observe(self, state: CraftingState) -> WorldObservation:
        if self.outcome(state) is not None:
            return WorldObservation(_outcome_sentence(state), "system_message")
        have = f"you have {' '.join(state.at_hand) or 'nothing'}"
        if not state.replies:
            return WorldObservation(f"{state.order.text}. {have}")
        cannot = "not possible yet. " if state.refused else ""
        return WorldObservation(f"{cannot}{have}. make a {state.order.thing}", "tool_result")

    def step(self, state: CraftingState, reply: str) -> CraftingState:
        if self.outcome(state) is not None:
            return state
        thing = _thing_in_reply(reply)
        state = replace(state, replies=state.replies + 1, refused=False)
        parts = () if thing in RAW else RECIPES.get(thing)
        if parts is None or not set(parts) <= set(state.at_hand):
            return replace(state, refused=True)
        left = [item for item in state.at_hand if item not in parts]
        kept = left if thing in left else [*left, thing]
        taken = state.taken | ({thing} & set(crafting_steps_for(state.order.thing)))
        return replace(state, at_hand=tuple(kept), taken=taken)

    def progress(self, state: CraftingState) -> float:
        """What an episode is worth that ends here."""
        steps = crafting_steps_for(state.order.thing)
        return 1.0 if state.made else _PARTIAL * len(state.taken) / len(steps)

    def outcome(self, state: CraftingState) -> WorldOutcome | None:
        if not state.made and state.replies < len(crafting_steps_for(state.order.thing)) + SLACK:
            return None
        return WorldOutcome(state.made, self.progress(state), _outcome_sentence(state))


def _thing_in_reply(reply: str) -> str:
    """What a reply is about: by its word, or by its name behind a verb."""
    text = " ".join(reply.lower().strip(" .!\n").split())
    for verb in _VERBS:
        text = text.removeprefix(verb)
    text = text.removeprefix("a ")
    return _THINGS.get(text, text)


def _outcome_sentence(state: CraftingState) -> str:
    thing = state.order.thing
    return f"The {thing} is made." if state.made else f"There is no time left for the {thing}."


def _draw_orders_of_seed(seed: int) -> Iterator[tuple[str, str, str]]:
    """(instructions, thing, text), every thing once before any comes again; no two read alike."""
    chance = random.Random(f"crafting/{seed}")  # noqa: S311 - a script, not a secret
    things = list(RECIPES)
    seen: set[tuple[str, str]] = set()
    while True:
        chance.shuffle(things)
        for thing in things:
            while (order := _draw_order_text(chance, thing)) in seen:
                pass
            seen.add(order)
            yield order[0], thing, order[1]


def _draw_order_text(chance: random.Random, thing: str) -> tuple[str, str]:
    needed = crafting_steps_for(thing)
    others = [thing for thing in WORDS if thing not in needed]
    offered = [*needed, *chance.sample(others, _DISTRACTORS if len(needed) < 6 else 0)]
    offered = [WORDS[thing] for thing in offered]
    chance.shuffle(offered)
    noise = [chance.choice(words) for words in (_GREETINGS, _DAYS, _MOODS)]
    return (
        f"answer {' '.join(offered[:-1])} or {offered[-1]}",
        _ASKED.format(*noise, thing=thing),
    )
