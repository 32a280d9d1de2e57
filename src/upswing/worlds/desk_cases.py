"""Who comes to the desk, and with what? The same seed brings the same people in the same order.

| kind   | of 16 | ticket                                                                 |
|--------|-------|------------------------------------------------------------------------|
| named  | 8     | `hello my blue phone broke friday and i am angry`                      |
| hidden | 4     | `hello my blue thing broke friday and i am calm`                       |
| code   | 4     | `hello my blue function area of x and y broke friday and i am angry`   |

Who is calm or patient corrects a wrong answer; everybody else gives up. Of eight hidden tickets one
comes while the lookup is down for a moment, and one while it is down for good. The latter is only
to be learned from: elsewhere an agent is measured, not the infrastructure.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, product
from typing import Literal

from upswing.worlds.desk_code import PATCHES, repairs_function
from upswing.worlds.triage import PRODUCTS, RULE, Ticket, Triage
from upswing.worlds.world import Task

Kind = Literal["named", "hidden", "code"]
Split = Literal["training", "held_out", "test"]
Outage = Literal["none", "moment", "good"]

LOOK_UP = "lookup"
"""The reply that asks which product it is about."""
_KINDS: tuple[Kind, ...] = ("named", "named", "hidden", "code") * 4
_OUTAGES: tuple[Outage, ...] = ("none", "none", "moment", "none", "none", "none", "good", "none")
_PATIENT = frozenset({"calm", "patient"})
_PRODUCT = f"answer {LOOK_UP} or repair explain refund or replace"
_CODE = "answer short long up or down"
_PIECES = dict(zip(PRODUCTS, product(("function", "program"), PATCHES), strict=True))
"""A ticket about code is one about a product, with these two words in the product's place."""


@dataclass(frozen=True, slots=True)
class Case(Task):
    """One ticket, and what is behind it."""

    text: str
    kind: Kind
    about: str
    """The product, or the function."""
    patient: bool
    """Whether a wrong answer is corrected, and not the end."""
    outage: Outage = "none"
    """Whether the lookup answers at once, only when asked again, or never."""
    cases: tuple[tuple[int, int], ...] = ()
    """Numbers that a repaired function is tried with."""

    @property
    def answer(self) -> str:
        return PATCHES[self.about] if self.kind == "code" else RULE[self.about]

    def solved_by(self, reply: str) -> bool:
        if self.kind == "code":
            return repairs_function(reply, self.about, self.cases)
        return reply == self.answer


def draw_cases(
    seed: int, tickets: Triage, tickets_without_product: Triage, split: Split = "training"
) -> Iterator[Case]:
    """The people of one split, as many as there are tickets; `tickets_without_product` ones hide the product."""
    name = "held" if split == "held_out" else split
    chance = random.Random(f"desk/{seed}/{name}")  # noqa: S311 - a script, not a secret
    open_, closed = (_tickets_of(each, split) for each in (tickets, tickets_without_product))
    named, coded, hidden = iter(open_), iter(open_), zip(closed, cycle(_OUTAGES), strict=False)
    for number, kind in zip(range(len(open_)), _draw_kinds(chance), strict=False):
        task_id = f"desk-{seed}-{name}-{number:04d}"
        match kind:
            case "named":
                yield _product_case(task_id, kind, next(named), "none")
            case "hidden":
                ticket, outage = next(hidden)
                measured = outage == "good" and split != "training"
                yield _product_case(task_id, kind, ticket, "moment" if measured else outage)
            case "code":
                yield _code_case(task_id, next(coded), chance)


def _tickets_of(world: Triage, split: Split) -> tuple[Ticket, ...]:
    match split:
        case "training":
            return world.training
        case "held_out":
            return world.held_out
        case "test":
            return world.test


def _draw_kinds(chance: random.Random) -> Iterator[Kind]:
    """Each sixteen have the shares of the table."""
    while True:
        yield from chance.sample(_KINDS, len(_KINDS))


def _product_case(task_id: str, kind: Kind, ticket: Ticket, outage: Outage) -> Case:
    return Case(
        task_id, _PRODUCT, ticket.text, kind, ticket.product, _is_patient_customer(ticket), outage
    )


def _code_case(task_id: str, ticket: Ticket, chance: random.Random) -> Case:
    noun, function = _PIECES[ticket.product]
    text = ticket.text.replace(ticket.product, f"{noun} {function} of x and y")
    cases = tuple((chance.randint(10, 99), chance.randint(2, 9)) for _ in range(4))
    return Case(task_id, _CODE, text, "code", function, _is_patient_customer(ticket), cases=cases)


def _is_patient_customer(ticket: Ticket) -> bool:
    return ticket.text.split()[-1] in _PATIENT
