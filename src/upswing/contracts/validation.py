"""May this model ship? What a validation is told by models and sandboxes, keeps, and reports.

A report is an artifact (JSON). Numbers that are not numbers have no place in JSON: they are null
here, and the verdict beside them is `fail`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, field

from upswing.contracts.analysis import FailureAnalysis
from upswing.contracts.model import ValidationResults

Side = Literal["candidate", "current", "base"]
"""`base` is the fixed anchor: the model that all training begins from."""
SIDES: tuple[Side, Side] = ("candidate", "current")
VerdictStatus = Literal["pass", "fail", "inconclusive"]
SuiteKind = Literal["benchmark", "safety", "regression"]
"""`benchmark` measures ability, `safety` harm, `regression` what once went wrong in production."""


class ToolCall(Struct, frozen=True):
    """A tool that the model wants called."""

    name: str
    arguments: str
    """JSON, as the model wrote it; it may be no JSON at all."""
    call_id: str = ""


class TaskAnswer(Struct, frozen=True):
    """What a model said."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()


class ProgramCase(Struct, frozen=True):
    """One thing to try with a program."""

    give: str
    """An expression; what it gives is compared outside, where the program cannot look."""
    run: str = ""
    """Statements before it."""


class Program(Struct, frozen=True):
    """Code that nobody vouches for, and what to try with it."""

    source: str
    cases: tuple[ProgramCase, ...] = ()


class CaseResult(Struct, frozen=True):
    """What a case gave: a value in JSON's types, or the error instead of one."""

    value: Any = None
    error: str | None = None


class ProgramRun(Struct, frozen=True):
    """How a program ran."""

    ended: Literal["done", "timeout", "killed"]
    gave: tuple[CaseResult, ...] = ()
    """As far as it came, in the order of the cases."""
    broken: str | None = None
    """Why the program itself did not load."""
    output: str = ""
    """What it printed, cut off at the limit."""
    fences: tuple[str, ...] = ()
    """What held it in; see `upswing.validate.sandbox`."""


class SampleScore(Struct, frozen=True, omit_defaults=True):
    """How one model did one task with one seed. A sample score is written once and never changes."""

    suite: str
    task_id: str
    seed: int
    side: Side
    score: float | None
    """0 to 1; None when the infrastructure spoiled it, which says nothing about the model."""
    sentence: str = ""


class RecordedTask(Struct, frozen=True):
    """What a stored trajectory tells of how it came about."""

    model: str
    task_id: str
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    body: bytes = b""
    """The whole, where its outcome may be one that can be checked."""
    practice: bool = False
    """It was played to learn from or to explore, not as a user would."""
    learned: bool = False
    """A model was trained on an attempt at the same task."""
    key_id: str = ""
    """The key that it came with, where that may not speak for many users."""
    gateway: bool = False
    """A gateway recorded it."""
    request: str = ""
    """A hash of what was asked and shown; empty: nobody knows."""
    from_world: bool = False
    """A world says how it ended, as it does for agents of ours."""


class DifferenceInterval(Struct, frozen=True):
    """Candidate − current: the estimate and where it may well lie."""

    estimate: float | None
    lower: float | None
    upper: float | None
    tasks: int


class SuiteReport(Struct, frozen=True):
    """One suite, both models."""

    name: str
    kind: SuiteKind
    counted: bool
    """Whether it counts toward the improvement."""
    verdict: VerdictStatus = field(name="word")
    sentence: str
    candidate: float | None
    """Mean score of the tasks that both have done; None when there is none."""
    current: float | None
    difference: DifferenceInterval | None
    done: int
    """Pairs of sample scores with two scores."""
    planned: int
    spoiled: dict[Side, int]
    """Sample scores that the infrastructure spoiled."""
    own: bool = False
    """Whether it holds tasks of the user's own."""
    samples: int = 1
    """Answers of each model to each task."""
    constant: float | None = None
    """What the best constant answer would score."""


class RegressedTask(Struct, frozen=True):
    """A task that the candidate does worse than the current model."""

    suite: str
    task_id: str
    difference: float
    sentence: str
    """What was wrong with the candidate's answer."""


class ValidationReport(Struct, frozen=True):
    """The whole of a validation."""

    run_id: str
    candidate: str
    current: str
    verdict: VerdictStatus = field(name="word")
    reasons: tuple[str, ...]
    improvement: DifferenceInterval | None
    """Over the suites that the deployment names."""
    safety: DifferenceInterval | None
    """Over the tasks of all safety suites."""
    suites: tuple[SuiteReport, ...]
    fallen: tuple[RegressedTask, ...]
    """The worst first; not all of them."""
    results: ValidationResults
    started: datetime
    ended: datetime
    seed: int
    seeds: tuple[int, ...]
    judge: str | None
    """The model that was asked about safety; None: rules alone."""
    notes: tuple[str, ...] = ()
    """What a reader should know about how it was done."""
    version: int = 1
    level: float = 0.95
    """Of the improvement's interval: the looks share an error of 5 %."""
    looks: tuple[int, ...] = ()
    """Answers to each of the user's own tasks at each look that was taken."""
    base: str | None = None
    """The model that `anchor` compares with; None where it is one of the two."""
    anchor: DifferenceInterval | None = None
    """Candidate − base over the user's own tasks."""
    abilities: DifferenceInterval | None = None
    """Over the tasks of all abilities that do not count toward the improvement."""
    temperature: float | None = None
    """Of the answers to the user's own tasks."""
    top_p: float | None = None
    analysis: FailureAnalysis | None = None
    """Of a failed one: what the tasks have in common that the candidate does worse."""
