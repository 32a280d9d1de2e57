"""Is it worth a repair? The world for a real language model: a plain question, and yes or no.

    Answer yes or no.
    Should we repair the blue phone that broke on friday?     ─▶ Yes, it should be …

The workshop repairs electronics and nothing else; the prompt does not say so. The first word of the reply
decides, whatever follows, because a language model likes to explain itself. Questions of one day of the week
are held out; things of other colours are for the test.

| policy                    | score |
|---------------------------|-------|
| always yes, or always no  | 0.50  |
| yes or no at random       | 0.50  |
| the rule                  | 1.00  |
| anything else             | 0.00  |
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from upswing.worlds.world import Task, WorldObservation, WorldOutcome

YES = ("phone", "laptop", "camera", "printer")
NO = ("lamp", "radio", "watch", "chair")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_COLOURS = ("red", "blue", "green", "black", "white", "brown")
_TEST_COLOURS = ("grey", "yellow", "pink", "purple", "orange", "silver")
_WORD = re.compile(r"[a-z]+")


@dataclass(frozen=True, slots=True)
class Question(Task):
    """One thing that broke."""

    text: str
    answer: str


@dataclass(frozen=True, slots=True)
class WorkshopState:
    """A question, and what was said."""

    question: Question
    reply: str | None = None


@dataclass(frozen=True)
class Workshop:
    """The seed says in which order the questions come, and which day is held out.

    >>> workshop = Workshop()
    >>> first = workshop.training[0]
    >>> workshop.outcome(workshop.step(workshop.reset(first), f"{first.answer}, of course")).success
    True
    """

    seed: int = 0
    name: str = "workshop"
    max_turns: int = 1

    @cached_property
    def training(self) -> tuple[Question, ...]:
        return tuple(question for day, question in self._all_questions if day != self._draw_day)

    @cached_property
    def held_out(self) -> tuple[Question, ...]:
        return tuple(question for day, question in self._all_questions if day == self._draw_day)

    @cached_property
    def test(self) -> tuple[Question, ...]:
        return tuple(question for _, question in self._draw_questions("test", _TEST_COLOURS))

    @property
    def _draw_day(self) -> str:
        return _DAYS[(self.seed - 1) % len(_DAYS)]

    @cached_property
    def _all_questions(self) -> list[tuple[str, Question]]:
        return self._draw_questions("workshop", _COLOURS)

    def _draw_questions(self, name: str, colours: tuple[str, ...]) -> list[tuple[str, Question]]:
        questions = [
            (day, _make_question(self.seed, colour, thing, day))
            for day, colour, thing in product(_DAYS, colours, (*YES, *NO))
        ]
        random.Random(f"{name}/{self.seed}").shuffle(questions)  # noqa: S311 - a script, not a secret
        return questions

    def reset(self, task: Question) -> WorkshopState:
        return WorkshopState(task)

    def observe(self, state: WorkshopState) -> WorldObservation:
        return WorldObservation(state.question.text)

    def step(self, state: WorkshopState, reply: str) -> WorkshopState:
        return replace(state, reply=reply)

    def outcome(self, state: WorkshopState) -> WorldOutcome | None:
        if state.reply is None:
            return None
        first = _WORD.search(state.reply.lower())
        right = first is not None and first[0] == state.question.answer
        return WorldOutcome(right, float(right), "Right." if right else "Wrong.")


def _make_question(seed: int, colour: str, thing: str, day: str) -> Question:
    return Question(
        f"workshop-{seed}-{colour}-{thing}-{day}",
        "Answer yes or no.",
        f"Should we repair the {colour} {thing} that broke on {day}?",
        "yes" if thing in YES else "no",
    )
