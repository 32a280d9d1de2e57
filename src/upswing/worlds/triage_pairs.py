"""A ticket comes in, and what it is about is only half of the answer: what should the desk do?

    answer refund repair replace or explain
    hello my blue phone broke friday and i am angry            ─▶ refund

The answer follows from product and mood together, by this table; the prompt does not show it. So
there are thirty-six pairs of words to learn, and neither word alone tells the answer.

|         | angry, upset, worried | calm, happy, patient |
|---------|-----------------------|----------------------|
| phone   | refund                | repair               |
| laptop  | replace               | explain              |
| camera  | repair                | replace              |
| printer | explain               | refund               |
| radio   | refund                | replace              |
| lamp    | explain               | repair               |

Greeting, colour, mishap and day are noise. Held-out tickets follow the same table, with noise that no
training ticket of the same product and mood has.

| policy                               | success |
|--------------------------------------|---------|
| always the same answer, whichever    | 0.25    |
| at random among the four             | 0.25    |
| the best that sees only the mood     | 0.33    |
| the best that sees only the product  | 0.50    |
| the table                            | 1.00    |
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, product

from upswing.worlds.world import Observation, Outcome, Task

MOODS = ("angry", "upset", "worried", "calm", "happy", "patient")
RULE = {
    "phone": ("refund", "repair"),
    "laptop": ("replace", "explain"),
    "camera": ("repair", "replace"),
    "printer": ("explain", "refund"),
    "radio": ("refund", "replace"),
    "lamp": ("explain", "repair"),
}
"""What to do about a product in one of the first three moods, and in one of the last three."""
PRODUCTS = tuple(RULE)
ACTIONS = ("refund", "repair", "replace", "explain")

_NOISE = (
    ("hello", "hi", "please", "sorry", "well", "listen"),
    ("red", "blue", "green", "black", "white", "brown"),
    ("broke", "stopped", "failed", "fell", "froze", "died"),
    ("monday", "tuesday", "friday", "sunday", "today", "yesterday"),
)
_FORM = "{0} my {1} {product} {2} {3} and i am {mood}"
_MOST = 18 * 6**4
"""Half of all that can be said, so that the last ones are still found quickly."""
_INSTRUCTIONS = "answer refund repair replace or explain"


@dataclass(frozen=True, slots=True)
class PairTicket(Task):
    """One customer's case."""

    text: str
    product: str
    mood: str

    @property
    def answer(self) -> str:
        return RULE[self.product][MOODS.index(self.mood) // 3]


@dataclass(frozen=True, slots=True)
class PairDesk:
    """A ticket, and what was done about it."""

    ticket: PairTicket
    reply: str | None = None


@dataclass(frozen=True)
class PairTriage:
    """One ticket, one reply. The same seed makes the same tickets.

    >>> desk = PairTriage(seed=1)
    >>> ticket = desk.training[0]
    >>> desk.outcome(desk.step(desk.reset(ticket), ticket.answer))
    Outcome(success=True, score=1.0, sentence='The case is closed.')
    """

    seed: int = 0
    sizes: tuple[int, int] = (1152, 180)
    """How many tasks there are to learn from, and to measure with."""
    name: str = "triage-pairs"
    max_turns: int = 1

    @cached_property
    def training(self) -> tuple[PairTicket, ...]:
        return self._tickets[self.sizes[1] :]

    @cached_property
    def held_out(self) -> tuple[PairTicket, ...]:
        return self._tickets[: self.sizes[1]]

    @cached_property
    def _tickets(self) -> tuple[PairTicket, ...]:
        """No two are alike. The held-out ones come first, so a longer training list changes none."""
        if sum(self.sizes) > _MOST:
            raise ValueError(f"this world has {_MOST} different tickets, not {sum(self.sizes)}")
        return tuple(
            PairTicket(f"{self.name}-{self.seed}-{number:04d}", _INSTRUCTIONS, *ticket)
            for number, ticket in enumerate(islice(_draw(self.seed), sum(self.sizes)))
        )

    def reset(self, task: PairTicket) -> PairDesk:
        return PairDesk(task)

    def observe(self, state: PairDesk) -> Observation:
        if state.reply is not None:
            return Observation(_said(state), "system_message")
        return Observation(state.ticket.text)

    def step(self, state: PairDesk, reply: str) -> PairDesk:
        return replace(state, reply=reply.strip().lower())

    def outcome(self, state: PairDesk) -> Outcome | None:
        if state.reply is None:
            return None
        right = state.reply == state.ticket.answer
        return Outcome(right, float(right), _said(state))


def _said(state: PairDesk) -> str:
    if state.reply not in ACTIONS:
        return "That is not something the desk can do."
    right = state.reply == state.ticket.answer
    return "The case is closed." if right else "The customer comes back: that did not help."


def _draw(seed: int) -> Iterator[tuple[str, str, str]]:
    """(text, product, mood), every pair of them once before any comes again."""
    chance = random.Random(f"triage-pairs/{seed}")  # noqa: S311 - a script, not a secret
    pairs = list(product(PRODUCTS, MOODS))
    seen: set[str] = set()
    while True:
        chance.shuffle(pairs)
        for thing, mood in pairs:
            while (text := _text(chance, thing, mood)) in seen:
                pass
            seen.add(text)
            yield text, thing, mood


def _text(chance: random.Random, thing: str, mood: str) -> str:
    noise = [chance.choice(words) for words in _NOISE]
    return _FORM.format(*noise, product=thing, mood=mood)


WORDS: tuple[str, ...] = tuple(
    dict.fromkeys(
        word
        for text in (_INSTRUCTIONS, *ACTIONS, *PRODUCTS, *MOODS, _FORM, *sum(_NOISE, ()))
        for word in text.split()
        if word.isalpha()
    )
)
"""Every word that this world shows or expects, so that a small vocabulary can hold them."""
