"""What does `tiny` read before its first task? Meaningless conversations in the form of a task.

    <|system|>answer refund, hold or skip<|end|><|user|>lamp tuesday: seven<|end|><|assistant|>hold<|end|>

Some message offers a choice of words, and every answer is one of them, whichever: so the model learns
to answer with a word that is offered and then to stop, and nothing about which word is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from upswing.train.bases.tiny.vocabulary import action_words, vocabulary_words

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
class PretrainingText:
    """One conversation, and what each of its answers could have been."""

    text: str
    options: tuple[str, ...]


def make_conversation(rng: Random, difficulty: float) -> PretrainingText:
    """One conversation; `difficulty` from 0 to 1 is how much there is beside the choice itself."""
    pool = action_words() if rng.random() < _COMMON else vocabulary_words()
    options = tuple(rng.sample(pool, rng.randint(2, 6)))
    if rng.random() > 2 * difficulty:
        role = rng.choice(("system", "user"))
        return PretrainingText(
            _role_text(role, list_options(rng, options)) + _sample_answer(rng, options), options
        )
    place = rng.choices(("system", "before", "after"), (5, 1.5, 3.5))[0]
    text = _role_text("system", list_options(rng, options)) if place == "system" else ""
    turns = rng.choices((1, 2, 3), (6, 3 * difficulty, difficulty))[0]
    for turn in range(turns):
        seen = random_words(rng, rng.randint(1, 2 + round(10 * difficulty)))
        if turn == 0 or rng.random() < 0.5:
            seen = _insert_options(rng, seen, place, options)
        text += _role_text("user", seen) + _sample_answer(rng, options)
    return PretrainingText(text, options)


def list_options(rng: Random, options: Sequence[str]) -> str:
    """The sentence that offers these words."""
    return rng.choice(FORMS).format(
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


def random_words(rng: Random, length: int) -> str:
    """Words in no order, with a mark or a number here and there."""
    marks = ("", "", "", "", "", "", "", ",", ".", ":")
    return " ".join(
        str(rng.randint(0, 99))
        if rng.random() < 0.05
        else rng.choice(action_words() if rng.random() < 0.08 else vocabulary_words())
        + rng.choice(marks)
        for _ in range(length)
    )


def _insert_options(rng: Random, seen: str, position: str, options: Sequence[str]) -> str:
    match position:
        case "before":
            return list_options(rng, options) + rng.choice((". ", "\n", "\n\n")) + seen
        case "after":
            return seen + rng.choice((" ", ". ", "\n")) + list_options(rng, options)
        case _:
            return seen


def _sample_answer(rng: Random, options: Sequence[str]) -> str:
    return _role_text("assistant", rng.choice(options))


def _role_text(role: str, text: str) -> str:
    return f"<|{role}|>{text}<|end|>"
