"""A help desk: which answer helps, and what must be found out first? Episodes with tools.

    answer lookup or repair explain refund or replace
    hello my blue thing broke friday and i am calm     ─▶ lookup
    it is a phone                                      ─▶ repair
    no that did not help try again                     ─▶ refund

| ticket           | what helps                                                             |
|------------------|------------------------------------------------------------------------|
| names a product  | the answer of `triage.RULE`                                            |
| hides it         | `lookup` first, which shows it; who answers at once can only guess     |
| is about code    | the word of `desk_code.PATCHES`, or an expression that does the same   |

Neither table is in the prompt. A right answer is worth 1, and 0.5 after a correction; to have found
out a hidden product is worth 0.25 even if the answer is wrong. Some users correct a wrong answer
once, the others give up. The lookup may be down: asked again it answers, or the case has to wait;
then the episode is a fault, whatever was guessed.

Scores of simple players are in `policies`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from upswing.worlds.desk_cases import LOOK_UP, Case, draw_cases
from upswing.worlds.triage import Triage
from upswing.worlds.world import WorldObservation, WorldOutcome

SECOND, FOUND = 0.5, 0.25
"""What a right second answer is worth, and a found product without a right answer."""
_PATIENCE = 2
"""So many answers, or lookups in vain, and a case is over in any event."""
_ASKS = {"none": 1, "moment": 2, "good": 3}
"""Lookups until the product is shown; three are never asked."""
_FIRST = re.compile(r"[.,;:!?\n]")
"""What comes behind an answer is not part of it."""
AGAIN = "no that did not help try again"
"""What a user says who corrects."""
DOWN = "error the lookup is down"
"""What the lookup says while it is out of order."""


@dataclass(frozen=True, slots=True)
class CaseState:
    """A case, and what was done about it so far."""

    case: Case
    lookups: int = 0
    answers: tuple[str, ...] = ()
    last: Literal["ticket", "lookup", "answer"] = "ticket"

    @property
    def shown(self) -> bool:
        """Whether the product was looked up."""
        return self.lookups >= _ASKS[self.case.outage]

    @property
    def solved(self) -> bool:
        return bool(self.answers) and self.case.solved_by(self.answers[-1])

    @property
    def fault(self) -> bool:
        """Whether the lookup was asked and has never answered."""
        return self.lookups > 0 and not self.shown


@dataclass(frozen=True)
class ServiceDesk:
    """The same seed makes the same cases.

    >>> desk = ServiceDesk(seed=1)
    >>> case = next(case for case in desk.training if case.kind == "hidden")
    >>> begun = desk.reset(case)
    >>> desk.observe(begun).text
    'well my brown thing stopped tuesday and i am happy'
    >>> looked = desk.step(begun, "lookup")
    >>> desk.observe(looked).text
    'it is a phone'
    >>> desk.outcome(desk.step(looked, case.answer)).sentence
    'That helped.'
    """

    seed: int = 0
    sizes: tuple[int, int] = (1152, 176)
    """How many cases there are to learn from, and to measure with."""
    tests: int = 320
    """How many cases there are that neither training nor validation sees."""

    @property
    def name(self) -> str:
        return "desk"

    @property
    def max_turns(self) -> int:
        return 2 * _PATIENCE

    @cached_property
    def training(self) -> tuple[Case, ...]:
        return tuple(draw_cases(self.seed, *self._ticket_worlds, "training"))

    @cached_property
    def held_out(self) -> tuple[Case, ...]:
        return tuple(draw_cases(self.seed, *self._ticket_worlds, "held_out"))

    @cached_property
    def test(self) -> tuple[Case, ...]:
        return tuple(draw_cases(self.seed, *self._ticket_worlds, "test"))

    @cached_property
    def _ticket_worlds(self) -> tuple[Triage, Triage]:
        """With and without the product."""
        named = Triage(self.seed, self.sizes, self.tests)
        return named, Triage(self.seed, self.sizes, self.tests, check_first=True)

    def reset(self, task: Case) -> CaseState:
        return CaseState(task)

    def observe(self, state: CaseState) -> WorldObservation:
        case = state.case
        if self.outcome(state) is not None:
            return WorldObservation(_outcome_sentence(state), "system_message")
        match state.last:
            case "ticket":
                return WorldObservation(case.text)
            case "lookup":
                return WorldObservation(
                    f"it is a {case.about}" if state.shown else DOWN, "tool_result"
                )
            case "answer":
                return WorldObservation(AGAIN)

    def step(self, state: CaseState, reply: str) -> CaseState:
        if self.outcome(state) is not None:
            return state
        word = _FIRST.split(reply.lower().strip(), maxsplit=1)[0]
        word = " ".join(word.split())
        if word == LOOK_UP and state.case.kind != "code" and not state.shown:
            return replace(state, lookups=state.lookups + 1, last="lookup")
        return replace(state, answers=(*state.answers, word), last="answer")

    def outcome(self, state: CaseState) -> WorldOutcome | None:
        if not _is_case_over(state):
            return None
        return WorldOutcome(
            state.solved,
            _score_of_case(state),
            _outcome_sentence(state),
            fault=state.fault,
            mood=_customer_mood(state),
        )


def _is_case_over(state: CaseState) -> bool:
    given = len(state.answers)
    waits = state.fault and state.lookups == _PATIENCE
    return state.solved or waits or given == _PATIENCE or (given == 1 and not state.case.patient)


def _score_of_case(state: CaseState) -> float:
    if state.solved:
        return 1.0 if len(state.answers) == 1 else SECOND
    return FOUND if state.case.kind == "hidden" and state.shown else 0.0


def _customer_mood(state: CaseState) -> Literal["pleased", "corrected", "gave_up"] | None:
    if not state.solved:
        return None if state.fault and state.last == "lookup" else "gave_up"
    return "pleased" if len(state.answers) == 1 else "corrected"


def _outcome_sentence(state: CaseState) -> str:
    match _customer_mood(state):
        case "pleased":
            return "That helped."
        case "corrected":
            return "The second answer helped."
        case "gave_up":
            return "The user gave up: that did not help."
        case None:
            return "The lookup is down, so the case has to wait."
