"""What is being recorded right now? One trajectory in the making, turn by turn."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import wraps
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self

import msgspec

from upswing.contracts.steps import Tree, format_time, object_or_wrapped, outcome_metadata_of
from upswing.contracts.trajectory import DOMAINS
from upswing.dataset.outcome import outcome_error
from upswing.errors import Reason, Rejected
from upswing.sdk import shapes
from upswing.sdk.clean import LARGEST, Draft, Form

if TYPE_CHECKING:
    from upswing.sdk.recorder import Recorder

log = logging.getLogger("upswing.sdk")
P = ParamSpec("P")
LAST_STEP = 2**31 - 1
"""The highest step number that the loop takes."""


def quietly(method: Callable[P, None]) -> Callable[P, None]:
    """Whatever goes wrong in a recorder, the agent goes on."""

    @wraps(method)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - our faults are never the agent's
            log.debug("recorder: %s", type(error).__name__)
            why = str(error) if isinstance(error, Rejected) else type(error).__name__
            me: Any = args[0]
            me.failed(f"{method.__name__}: {why}")

    return guarded


class Recording:
    """One trajectory. Use it with `with` or `async with`; every call takes microseconds."""

    def __init__(self, recorder: Recorder, head: Tree) -> None:
        self._recorder, self._head = recorder, head
        self._lock = Lock()
        self._turns: list[msgspec.Raw] = []
        self._feedback: list[Tree] = []
        self._size = 0
        self._ended = False
        self._start = self._last = recorder.now()

    @property
    def id(self) -> str:
        """The trajectory's id, for feedback that comes later."""
        return str(self._head["trajectory_id"])

    def failed(self, why: str) -> None:
        self._recorder.failed(why)

    @quietly
    def turn(
        self,
        observation: Any = None,
        action: Any = None,
        result: Any = None,
        *,
        thoughts: Any = None,
    ) -> None:
        """What the agent saw, did and got. Text, objects or the contract's own shapes."""
        task = "" if self._turns else self._head["task_context"]["instructions"]
        turn: Tree = {
            "observation": shapes.observation(observation, task),
            "action": shapes.action(action),
            "result": shapes.result(result),
        }
        if thoughts:
            turn["thought_process"] = shapes.thoughts(thoughts)
        if self._ended:
            self.failed("A turn came after the end of its trajectory.")
            return
        with self._lock:
            self._last = max(self._last, self._recorder.now())
            turn |= {"turn_id": len(self._turns) + 1, "timestamp": format_time(self._last)}
            raw = shapes.encoded(turn)
            self._size += len(raw)
            if self._size <= LARGEST:  # a larger one is not taken, so it need not be held
                self._turns.append(msgspec.Raw(raw))

    @quietly
    def outcome(self, status: Any = None, share: float | None = None, **details: Any) -> None:
        """How the task ended: `completed`, `partial`, `failed`, …, and what share of it is done.

        True, false or a number from 0 to 1 alone will do, and `source=` says who checked it.
        """
        self._state_outcome(stated_outcome(status, share, details))

    def _state_outcome(self, outcome: Any) -> None:
        """An outcome that nobody could read is not sent: it would count as none, and say so nowhere."""
        self._head["metadata"].pop("outcome", None)
        check_outcome(outcome)
        self._head["metadata"]["outcome"] = outcome

    @quietly
    def feedback(self, type: str, **fields: Any) -> None:  # noqa: A002 - the contract's word
        """What the user said of it: `thumbs_up`, `rating` with `rating=4`, `comment` with …"""
        user = self._head["metadata"].get("user_id")
        self._feedback.append({"type": type, "user_id": user, **shapes.plain(fields)})

    @quietly
    def metadata(self, **values: Any) -> None:
        """More about it: `tests=…`, `linter_results=…`, `environment=…`."""
        more = shapes.plain(values)
        outcome = more.pop("outcome", None)
        self._head["metadata"] |= more
        if outcome is not None:
            self._state_outcome(outcome)

    @quietly
    def end(self) -> None:
        """Done: hand it over to be redacted and sent. Further calls change nothing."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
        if self._size > LARGEST:
            self.failed("A trajectory holds at most 8 MB; this one was not sent.")
            return
        if not self._turns:
            self.failed("A trajectory without a turn was not sent.")
            return
        times = {
            "start_timestamp": format_time(self._start),
            "end_timestamp": format_time(self._finish_time()),
        }
        raw = shapes.encoded({**self._head, **times, "turns": self._turns})
        self._recorder.submit(Draft(Form.TRAJECTORY, raw))
        for feedback in self._feedback:
            self._recorder.feedback(self.id, **feedback)

    def _finish_time(self) -> datetime:
        return max(self._last, self._recorder.now())

    @quietly
    def _record_exception(self, error: BaseException) -> None:
        """The agent raised. An interruption is nobody's failure, unless an outcome was told."""
        result = shapes.result(error)
        if isinstance(error, Exception):
            self.outcome("failed", error=result["error"])
        elif "outcome" not in self._head["metadata"]:
            self.outcome("abandoned", error=result["error"])
        if not self._turns:
            self.turn(result=error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._record_exception(error)
        self.end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, trace)


class Steps:
    """One trajectory told step by step."""

    def __init__(self, head: Tree, start: datetime) -> None:
        self._head = {**head, "start_time": format_time(start)}
        self._last = start
        self._steps: list[msgspec.Raw] = []
        self._numbers: set[int] = set()
        self._size = 0

    def add(self, now: datetime, step: Tree) -> None:
        number = self._number_of_step(shapes.plain(step.pop("step_number", None)))
        self._last = max(self._last, now)
        raw = shapes.encoded({"timestamp": format_time(self._last), "step_number": number, **step})
        self._size += len(raw)
        if self._size <= LARGEST:
            self._steps.append(msgspec.Raw(raw))

    def _number_of_step(self, given: Any) -> int:
        """The step's number: the given one, once, else the next; `Rejected` as the loop's HTTP port does."""
        number = max(self._numbers, default=0) + 1 if given is None else given
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= LAST_STEP:
            raise Rejected(
                Reason.SCHEMA,
                f"step_number is a whole number from 0 to {LAST_STEP}; a step with another one is not recorded.",
            )
        if number in self._numbers:
            raise Rejected(
                Reason.SCHEMA, f"Step {number} was recorded before; the second one is not recorded."
            )
        self._numbers.add(number)
        return number

    def draft(self, now: datetime, end: Tree) -> Draft:
        """All of it, to be put together and redacted by the worker."""
        if self._size > LARGEST:
            raise Rejected(Reason.TOO_LARGE, "A trajectory holds at most 8 MB.")
        ended = {"end_time": format_time(max(self._last, now)), **end}
        raw = shapes.encoded({"head": self._head, "steps": self._steps, "end": ended})
        return Draft(Form.STEPS, raw)


def stated_outcome(status: Any, share: Any, details: Mapping[str, Any]) -> Any:
    """`metadata.outcome`, as the agent says it."""
    value, more = shapes.plain(status), shapes.plain(dict(details))
    if not isinstance(value, str) and value is not None and share is None and not more:
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and share is None:
        value, share = None, value
    return outcome_metadata_of(value, shapes.plain(share), **more)


def check_outcome(outcome: Any) -> None:
    """`Rejected` when an outcome cannot be read."""
    if why := outcome_error(outcome):
        raise Rejected(Reason.SCHEMA, f"{why} It is not recorded.")


def head_of(*, agent_id: Any, task: Any, metadata: Any, **more: Any) -> Tree:
    """Everything of a trajectory but its turns and times."""
    given = {key: shapes.as_text(value) for key, value in more.items() if value is not None}
    trajectory_id = given.pop("trajectory_id")
    task_id = given.pop("task_id", trajectory_id)
    domain, profile = given.pop("domain", None), given.pop("profile", None)
    context: Tree = {"task_id": task_id, "instructions": shapes.as_text(task)}
    if domain is not None:
        context |= (
            {"domain": domain} if domain in DOMAINS else {"domain": "general", "topic": domain}
        )
    return {
        "trajectory_id": trajectory_id,
        "session_id": given.pop("session_id", trajectory_id),
        "agent_id": shapes.as_text(agent_id),
        **({"subordinate_profile": profile} if profile else {}),
        "task_context": context,
        "metadata": {**object_or_wrapped(shapes.plain(metadata)), **given},
    }
