"""What does `tiny` read before its first task? Talk without meaning that has the form of a task.

    <|system|>answer refund, hold or skip<|end|><|user|>lamp tuesday: seven<|end|><|assistant|>hold<|end|>

Some message offers a choice of words, and every answer is one of them, whichever: so the model learns
to answer with a word that is offered and then to stop, and nothing about which word is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from upswing.adapters.tiny.vocabulary import actions, words

FORMS = (
    "answer {blanks} or {last}",
    "answer {first} or {rest}",
    "answer {first} or {blanks_after} or {last}",
    "answer with {commas} or {last}",
    "reply with {commas} or {last}",
    "choose {commas} or {last}",
    "choose one of: {listed}",
    "actions: {all}",
    "actions: {listed}",
    "allowed actions: {bars}",
    "options: {listed}",
    "tools: {all}",
    "Actions: {listed}",
    "Choose one of {listed}.",
)
_COMMON = 0.9
"""Share of the choices that consist of words agents answer with; the others may be any words."""


@dataclass(frozen=True, slots=True)
class Talk:
    """One conversation, and what each of its answers could have been."""

    text: str
    options: tuple[str, ...]


def talk(chance: Random, hardness: float) -> Talk:
    """One conversation; `hardness` from 0 to 1 is how much there is beside the choice itself."""
    pool = actions() if chance.random() < _COMMON else words()
    options = tuple(chance.sample(pool, chance.randint(2, 6)))
    if chance.random() > 2 * hardness:
        role = chance.choice(("system", "user"))
        return Talk(_said(role, offer(chance, options)) + _answer(chance, options), options)
    place = chance.choices(("system", "before", "after"), (5, 1.5, 3.5))[0]
    text = _said("system", offer(chance, options)) if place == "system" else ""
    turns = chance.choices((1, 2, 3), (6, 3 * hardness, hardness))[0]
    for turn in range(turns):
        seen = chatter(chance, chance.randint(1, 2 + round(10 * hardness)))
        if turn == 0 or chance.random() < 0.5:
            seen = _with_offer(chance, seen, place, options)
        text += _said("user", seen) + _answer(chance, options)
    return Talk(text, options)


def offer(chance: Random, options: Sequence[str]) -> str:
    """The sentence that offers these words."""
    return chance.choice(FORMS).format(
        all=" ".join(options),
        listed=", ".join(options),
        bars=" | ".join(options),
        first=options[0],
        rest=" ".join(options[1:]),
        last=options[-1],
        blanks=" ".join(options[:-1]),
        blanks_after=" ".join(options[1:-1] or options[:1]),
        commas=", ".join(options[:-1]),
    )


def chatter(chance: Random, length: int) -> str:
    """Words in no order, with a mark or a number here and there."""
    marks = ("", "", "", "", "", "", "", ",", ".", ":")
    return " ".join(
        str(chance.randint(0, 99)) if chance.random() < 0.05
        else chance.choice(actions() if chance.random() < 0.08 else words()) + chance.choice(marks)
        for _ in range(length)
    )  # fmt: skip


def _with_offer(chance: Random, seen: str, place: str, options: Sequence[str]) -> str:
    match place:
        case "before":
            return offer(chance, options) + chance.choice((". ", "\n", "\n\n")) + seen
        case "after":
            return seen + chance.choice((" ", ". ", "\n")) + offer(chance, options)
        case _:
            return seen


def _answer(chance: Random, options: Sequence[str]) -> str:
    return _said("assistant", chance.choice(options))


def _said(role: str, text: str) -> str:
    return f"<|{role}|>{text}<|end|>"
