"""A ticket comes in: what should the desk do? The smallest world that has something to learn.

    answer refund repair replace or explain
    hello my blue phone broke friday and i am angry            ─▶ refund

The answer follows from the product, by this table; the prompt does not show it.

| product | answer  |
|---------|---------|
| phone   | refund  |
| radio   | refund  |
| laptop  | replace |
| lamp    | replace |
| camera  | repair  |
| watch   | repair  |
| printer | explain |
| tablet  | explain |

Greeting, colour, mishap, day and mood are noise. Held-out tickets follow the same table, with noise
that no training ticket has.

| policy                               | success |
|--------------------------------------|---------|
| always the same answer, whichever    | 0.25    |
| at random among the four             | 0.25    |
| the table                            | 1.00    |
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from upswing.worlds.world import Task, WorldObservation, WorldOutcome

RULE = {
    "phone": "refund",
    "radio": "refund",
    "laptop": "replace",
    "lamp": "replace",
    "camera": "repair",
    "watch": "repair",
    "printer": "explain",
    "tablet": "explain",
}
"""What to do about a product."""
PRODUCTS = tuple(RULE)
ACTIONS = ("refund", "repair", "replace", "explain")
LOOK_UP = "check"
"""The reply that asks for the product, where the ticket does not tell it."""

_NOISE = (
    ("hello", "hi", "please", "sorry", "well", "listen"),
    ("red", "blue", "green", "black", "white", "brown"),
    ("broke", "stopped", "failed", "fell", "froze", "died"),
    ("monday", "tuesday", "friday", "sunday", "today", "yesterday"),
    ("angry", "upset", "worried", "calm", "happy", "patient"),
)
_FORM = "{0} my {1} {product} {2} {3} and i am {4}"
_BARE = "{0} my {1} thing {2} {3} and i am {4}"
_MOST = 4 * 6**5
"""Half of all that can be said, so that the last ones are still found quickly."""
_INSTRUCTIONS = "answer refund repair replace or explain"
_CHECK_FIRST = "answer check or refund repair replace or explain"
_FOUND = "it is a {product}"


@dataclass(frozen=True, slots=True)
class Ticket(Task):
    """One customer's case."""

    text: str
    product: str

    @property
    def answer(self) -> str:
        return RULE[self.product]


@dataclass(frozen=True, slots=True)
class TriageState:
    """A ticket, and what was done about it so far."""

    ticket: Ticket
    checked: bool = False
    reply: str | None = None


@dataclass(frozen=True)
class Triage:
    """One ticket, one reply. The same seed makes the same tickets.

    >>> desk = Triage(seed=1)
    >>> ticket = desk.training[0]
    >>> ticket.text, ticket.answer
    ('hi my black camera failed today and i am happy', 'repair')
    >>> desk.outcome(desk.step(desk.reset(ticket), ticket.answer)).sentence
    'The case is closed.'
    """

    seed: int = 0
    sizes: tuple[int, int] = (1152, 176)
    """How many tasks there are to learn from, and to measure with."""
    tests: int = 320
    """How many tasks there are that neither training nor validation sees."""
    check_first: bool = False
    """Whether the ticket keeps the product to itself: then `check` is a reply too, and shows it in
    a second turn. Whoever answers at once can only guess."""

    @property
    def name(self) -> str:
        return "triage-check" if self.check_first else "triage"

    @property
    def max_turns(self) -> int:
        return 2 if self.check_first else 1

    @cached_property
    def training(self) -> tuple[Ticket, ...]:
        return self._tickets[self.sizes[1] : sum(self.sizes)]

    @cached_property
    def held_out(self) -> tuple[Ticket, ...]:
        return self._tickets[: self.sizes[1]]

    @cached_property
    def test(self) -> tuple[Ticket, ...]:
        return self._tickets[sum(self.sizes) :]

    @cached_property
    def _tickets(self) -> tuple[Ticket, ...]:
        """Held-out, training, test: a longer training list changes none of the held-out ones.

        No two tickets are alike, and no test ticket has the text of another one.
        """
        seen = sum(self.sizes)
        if seen + self.tests > _MOST:
            raise ValueError(f"this world has {_MOST} different tickets, not {seen + self.tests}")
        about = _CHECK_FIRST if self.check_first else _INSTRUCTIONS
        drawn = _draw_tickets(self)
        tickets = list(islice(drawn, seen))
        known = {text for text, _ in tickets}
        tickets += islice((each for each in drawn if each[0] not in known), self.tests)
        return tuple(
            Ticket(f"{self.name}-{self.seed}-{number:04d}", about, *ticket)
            for number, ticket in enumerate(tickets)
        )

    def reset(self, task: Ticket) -> TriageState:
        return TriageState(task)

    def observe(self, state: TriageState) -> WorldObservation:
        if state.reply is not None:
            return WorldObservation(_outcome_sentence(state), "system_message")
        if state.checked:
            return WorldObservation(_FOUND.format(product=state.ticket.product), "tool_result")
        return WorldObservation(state.ticket.text)

    def step(self, state: TriageState, reply: str) -> TriageState:
        word = reply.strip().lower()
        if self.check_first and word == LOOK_UP and not state.checked:
            return replace(state, checked=True)
        return replace(state, reply=word)

    def outcome(self, state: TriageState) -> WorldOutcome | None:
        if state.reply is None:
            return None
        right = state.reply == state.ticket.answer
        return WorldOutcome(right, float(right), _outcome_sentence(state))


def _outcome_sentence(state: TriageState) -> str:
    if state.reply not in ACTIONS:
        return "That is not something the desk can do."
    right = state.reply == state.ticket.answer
    return "The case is closed." if right else "The customer comes back: that did not help."


def _draw_tickets(world: Triage) -> Iterator[tuple[str, str]]:
    """(text, product), every product once before any comes again."""
    chance = random.Random(f"{world.name}/{world.seed}")  # noqa: S311 - a script, not a secret
    form = _BARE if world.check_first else _FORM
    things = list(PRODUCTS)
    seen: set[tuple[str, str]] = set()
    while True:
        chance.shuffle(things)
        for thing in things:
            while (ticket := _ticket_text(chance, form, thing)) in seen:
                pass
            seen.add(ticket)
            yield ticket


def _ticket_text(chance: random.Random, form: str, thing: str) -> tuple[str, str]:
    noise = [chance.choice(words) for words in _NOISE]
    return form.format(*noise, product=thing), thing


WORDS: tuple[str, ...] = tuple(
    dict.fromkeys(
        word
        for text in (
            *(_INSTRUCTIONS, _CHECK_FIRST, LOOK_UP, *ACTIONS, *PRODUCTS),
            *(word for words in _NOISE for word in words),
            *(_FORM, _BARE, _FOUND),
        )
        for word in text.split()
        if word.isalpha()
    )
)
"""Every word that this world shows or expects, so that a small vocabulary can hold them."""
