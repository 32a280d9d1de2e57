"""What is being recorded right now? One trajectory in the making, turn by turn."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import wraps
from threading import Lock
from types import TracebackType
from typing import Any, ParamSpec, Protocol, Self

import msgspec

from upswing.contracts.steps import Tree, outcome_of, stamp, tree
from upswing.contracts.trajectory import DOMAINS
from upswing.dataset.outcome import unread
from upswing.errors import Reason, Rejected
from upswing.sdk import shapes
from upswing.sdk.clean import LARGEST, Draft, Form

log = logging.getLogger("upswing.sdk")
P = ParamSpec("P")


class Desk(Protocol):
    """What a recording needs of its recorder."""

    def now(self) -> datetime: ...
    def hand_in(self, draft: Draft) -> None: ...
    def failed(self, why: str) -> None: ...
    def feedback(self, trajectory_id: str, type: str, **said: Any) -> None: ...  # noqa: A002


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

    def __init__(self, desk: Desk, head: Tree) -> None:
        self._desk, self._head = desk, head
        self._lock = Lock()
        self._turns: list[msgspec.Raw] = []
        self._feedback: list[Tree] = []
        self._size = 0
        self._ended = False
        self._start = self._last = desk.now()

    @property
    def id(self) -> str:
        """The trajectory's id, for feedback that comes later."""
        return str(self._head["trajectory_id"])

    def failed(self, why: str) -> None:
        self._desk.failed(why)

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
            self._last = max(self._last, self._desk.now())
            turn |= {"turn_id": len(self._turns) + 1, "timestamp": stamp(self._last)}
            raw = shapes.encoded(turn)
            self._size += len(raw)
            if self._size <= LARGEST:  # a larger one is not taken, so it need not be held
                self._turns.append(msgspec.Raw(raw))

    @quietly
    def outcome(self, status: Any = None, share: float | None = None, **details: Any) -> None:
        """How the task ended: `completed`, `partial`, `failed`, …, and what share of it is done.

        True, false or a number from 0 to 1 alone will do, and `source=` says who checked it.
        """
        self._state(told_outcome(status, share, details))

    def _state(self, told: Any) -> None:
        """An outcome that nobody could read is not sent: it would count as none, and say so nowhere."""
        self._head["metadata"].pop("outcome", None)
        check_outcome(told)
        self._head["metadata"]["outcome"] = told

    @quietly
    def feedback(self, type: str, **said: Any) -> None:  # noqa: A002 - the contract's word
        """What the user said of it: `thumbs_up`, `rating` with `rating=4`, `comment` with …"""
        user = self._head["metadata"].get("user_id")
        self._feedback.append({"type": type, "user_id": user, **shapes.plain(said)})

    @quietly
    def metadata(self, **values: Any) -> None:
        """More about it: `tests=…`, `linter_results=…`, `environment=…`."""
        more = shapes.plain(values)
        outcome = more.pop("outcome", None)
        self._head["metadata"] |= more
        if outcome is not None:
            self._state(outcome)

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
        times = {"start_timestamp": stamp(self._start), "end_timestamp": stamp(self._finished())}
        raw = shapes.encoded({**self._head, **times, "turns": self._turns})
        self._desk.hand_in(Draft(Form.TRAJECTORY, raw))
        for said in self._feedback:
            self._desk.feedback(self.id, **said)

    def _finished(self) -> datetime:
        return max(self._last, self._desk.now())

    @quietly
    def _broken(self, error: BaseException) -> None:
        """The agent raised. An interruption is nobody's failure, unless an outcome was told."""
        told = shapes.result(error)
        if isinstance(error, Exception):
            self.outcome("failed", error=told["error"])
        elif "outcome" not in self._head["metadata"]:
            self.outcome("abandoned", error=told["error"])
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
            self._broken(error)
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
        self._head = {**head, "start_time": stamp(start)}
        self._last = start
        self._steps: list[msgspec.Raw] = []
        self._size = 0

    def add(self, now: datetime, step: Tree) -> None:
        self._last = max(self._last, now)
        number = step.pop("step_number", None) or len(self._steps) + 1
        raw = shapes.encoded({"timestamp": stamp(self._last), "step_number": number, **step})
        self._size += len(raw)
        if self._size <= LARGEST:
            self._steps.append(msgspec.Raw(raw))

    def draft(self, now: datetime, end: Tree) -> Draft:
        """All of it, to be put together and redacted by the worker."""
        if self._size > LARGEST:
            raise Rejected(Reason.TOO_LARGE, "A trajectory holds at most 8 MB.")
        told = {"end_time": stamp(max(self._last, now)), **end}
        raw = shapes.encoded({"head": self._head, "steps": self._steps, "end": told})
        return Draft(Form.STEPS, raw)


def told_outcome(status: Any, share: Any, details: Mapping[str, Any]) -> Any:
    """`metadata.outcome`, as the agent says it."""
    told, more = shapes.plain(status), shapes.plain(dict(details))
    if not isinstance(told, str) and told is not None and share is None and not more:
        return told
    if isinstance(told, int | float) and not isinstance(told, bool) and share is None:
        told, share = None, told
    return outcome_of(told, shapes.plain(share), **more)


def check_outcome(told: Any) -> None:
    """`Rejected`, and a line in the log, when an outcome cannot be read."""
    if why := unread(told):
        log.warning("%s It is not recorded.", why)
        raise Rejected(Reason.SCHEMA, why)


def head_of(*, agent_id: Any, task: Any, metadata: Any, **more: Any) -> Tree:
    """Everything of a trajectory but its turns and times."""
    told = {key: shapes.said(value) for key, value in more.items() if value is not None}
    trajectory_id = told.pop("trajectory_id")
    task_id = told.pop("task_id", trajectory_id)
    domain, profile = told.pop("domain", None), told.pop("profile", None)
    context: Tree = {"task_id": task_id, "instructions": shapes.said(task)}
    if domain is not None:
        context |= (
            {"domain": domain} if domain in DOMAINS else {"domain": "general", "topic": domain}
        )
    return {
        "trajectory_id": trajectory_id,
        "session_id": told.pop("session_id", trajectory_id),
        "agent_id": shapes.said(agent_id),
        **({"subordinate_profile": profile} if profile else {}),
        "task_context": context,
        "metadata": {**tree(shapes.plain(metadata)), **told},
    }
