"""What does an agent call to have its work recorded?"""

from __future__ import annotations

import atexit
import os
import random
import weakref
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from upswing.contracts.steps import Tree, format_time, outcome_of_end, window_id_at
from upswing.errors import Rejected, Transient
from upswing.infra.spool import Spool
from upswing.sdk import shapes
from upswing.sdk.clean import Cleaner, Draft, Form, default_redactor
from upswing.sdk.recording import Recording, Steps, check_outcome, head_of, quietly
from upswing.sdk.target import resolve, spool_folder, transport_to
from upswing.sdk.transport import Transport, checked
from upswing.sdk.worker import Stats, Worker

if TYPE_CHECKING:
    from upswing.redact import Redactor

SPOOL_LIMIT = 64 * 1024 * 1024
OPEN_LIMIT = 10_000
"""Step-wise trajectories begun and not ended. Beyond it the oldest is given up and counted."""
_FEEDBACK = frozenset({"rating", "comment", "user_id", "source", "metadata"})
EXIT_TIME = 2.0
"""Seconds that the end of the process waits, at most."""


def _utc_now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - the edge: an agent's process has no runtime of ours


def _new_id() -> str:
    return str(uuid4())


class Recorder:
    """Records what an agent does and sends it to the loop, redacted, without holding it up.

    Without arguments it finds the loop by itself (see `upswing.sdk.target`). Nothing it does
    raises into the agent, except a wrong `url=` here. `clock`, `new_id`, `chance`, `transport`
    and `redactor` are for tests.
    """

    def __init__(
        self,
        *,
        url: str | None = None,
        key: str | None = None,
        data: str | Path | None = None,
        spool: str | Path | None = None,
        spool_limit: int = SPOOL_LIMIT,
        clock: Callable[[], datetime] = _utc_now,
        new_id: Callable[[], str] = _new_id,
        chance: Callable[[], float] = random.random,
        transport: Callable[[], Transport] | None = None,
        redactor: Callable[[], Redactor] = default_redactor,
    ) -> None:
        if url is not None:
            checked(url)
        self._url, self._key, self._data = url, key, Path(data) if data else None
        self._folder = Path(spool) if spool else self._default_folder()
        self._limit, self._chance = spool_limit, chance
        self.now, self._new_id = clock, new_id
        self._transport, self._redactor = transport, redactor
        self._open: OrderedDict[str, Steps] = OrderedDict()
        self._closed = False
        self._inherited: list[Worker] = []
        self._worker: Worker | None = self._start_worker()
        _RECORDERS.add(self)
        atexit.register(self._at_exit)

    def _default_folder(self) -> Path:
        return spool_folder(self._url, self._data, os.environ, Path.home())

    def _start_worker(self) -> Worker:
        worker = Worker(
            connect=self._transport or self._connect_transport,
            spool=Spool(self._folder, f"{os.getpid()}-{uuid4().hex[:8]}", self._limit),
            clean=Cleaner(self._redactor),
            chance=self._chance,
        )
        try:
            worker.start()
        except RuntimeError:  # no more threads to be had: what is recorded goes to disk at the end
            worker.failed("The recorder could not start its thread.")
        return worker

    def _connect_transport(self) -> Transport:
        target = resolve(self._url, self._key, self._data, os.environ)
        if target is None:
            raise Transient("No loop was found: start one with `upswing up`, or name its url.")
        return transport_to(target)

    @property
    def _running_worker(self) -> Worker:
        """The worker; a forked child starts its own when it first needs one."""
        if self._worker is None:
            self._worker = self._start_worker()
        return self._worker

    def _after_fork(self) -> None:
        if self._worker is not None:
            self._worker.forget()
            self._inherited.append(self._worker)  # its sockets are the parent's: never touched
            self._worker = None

    def submit(self, draft: Draft) -> None:
        self._running_worker.submit(draft)

    def failed(self, why: str) -> None:
        self._running_worker.failed(why)

    # --- a trajectory in one block ------------------------------------------------------------

    def trajectory(
        self,
        *,
        agent_id: str,
        task: str = "",
        domain: str | None = None,
        model: str = "unknown",
        user_id: str | None = None,
        session_id: str | None = None,
        profile: str | None = None,
        task_id: str | None = None,
        scenario_id: str | None = None,
        window_id: str | None = None,
        episode_id: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Recording:
        """Begin a trajectory; it is sent when its `with` or `async with` block ends."""
        head = head_of(
            trajectory_id=self._new_id(),
            agent_id=agent_id,
            task=task,
            task_id=task_id,
            domain=domain,
            model=model,
            session_id=session_id,
            profile=profile,
            user_id=user_id,
            scenario_id=scenario_id,
            window_id=window_id,
            episode_id=episode_id,
            metadata=metadata,
        )
        return Recording(self, head)

    # --- a trajectory step by step ------------------------------------------------------------

    def start_trajectory(
        self,
        *,
        agent_id: str,
        scenario_id: str | None = None,
        window_id: str | None = None,
        window_hours: int = 1,
        **more: Any,
    ) -> str:
        """Begin a trajectory whose steps come by its id. The window is made from the time."""
        start, trajectory_id = self.now(), self._new_id()
        hours = max(1, int(shapes.as_number(window_hours) or 1))
        window = window_id or window_id_at(start, hours)
        head: Tree = {
            **shapes.plain(more),
            "trajectory_id": trajectory_id,
            "agent_id": shapes.as_text(agent_id),
            "window_id": window,
            "window_hours": hours,
            "scenario_id": scenario_id or window,
        }
        self._open[trajectory_id] = Steps(head, start)
        if len(self._open) > OPEN_LIMIT:
            self._open.popitem(last=False)
            self.failed("Too many trajectories were begun and not ended; the oldest was given up.")
        return trajectory_id

    @quietly
    def record_step(
        self,
        trajectory_id: str,
        *,
        step_number: int | None = None,
        environment_state: Any = None,
        action: Any = None,
        reward: float | None = None,
        **more: Any,
    ) -> None:
        """One step: `action={"type": "trade", "params": {…}}`; also `llm_calls=[…]` and others."""
        if (begun := self._open.get(trajectory_id)) is None:
            self.failed("A step named a trajectory that was not begun, or has ended.")
            return
        step = {
            **more,
            "step_number": step_number,
            "environment_state": environment_state,
            "action": action,
            "reward": self._readable_number("record_step: reward", reward),
        }
        begun.add(self.now(), step)

    @quietly
    def end_trajectory(
        self,
        trajectory_id: str,
        *,
        final_status: Any = None,
        outcome: Any = None,
        total_reward: float | None = None,
        **more: Any,
    ) -> None:
        """Done; without an outcome it counts as completed.

        `final_balance=`, `final_pnl=`, `share=`, `source=` and `metadata=` are read too.
        """
        if (begun := self._open.pop(trajectory_id, None)) is None:
            self.failed("An end named a trajectory that was not begun, or has ended.")
            return
        total = self._readable_number("end_trajectory: total_reward", total_reward)
        end = {**shapes.plain(more), "total_reward": total}
        end |= _stated_outcome(shapes.plain(final_status), shapes.plain(outcome), end, self.failed)
        self.submit(begun.draft(self.now(), end))

    def _readable_number(self, name: str, value: Any) -> float | None:
        """The number as the loop reads it; one that it would leave out is counted and logged."""
        number = shapes.as_number(value)
        if value is not None and number is None:
            self.failed(
                f"{name} ({type(value).__name__}) is not a number that can be read; it is left out."
            )
        return number

    # --- what the user said, perhaps days later -----------------------------------------------

    @quietly
    def feedback(self, trajectory_id: str, type: str, **fields: Any) -> None:  # noqa: A002
        """`thumbs_up`, `thumbs_down`, `rating` with `rating=4`, `comment` with `comment=…`, …"""
        given = {key: value for key, value in shapes.plain(fields).items() if value is not None}
        more = {key: given.pop(key) for key in given.keys() - _FEEDBACK}
        body = {
            "feedback_id": self._new_id(),
            "timestamp": format_time(self.now()),
            "trajectory_id": trajectory_id,
            "type": type,
            **given,
            **({"metadata": {**more, **given.get("metadata", {})}} if more else {}),
        }
        self.submit(Draft(Form.FEEDBACK, shapes.encoded(body)))

    # --- the recorder itself ------------------------------------------------------------------

    @property
    def stats(self) -> Stats:
        return self._running_worker.stats

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until all is acknowledged. False: the rest is safe in the spool, or time is up.

        It blocks; in async code use `await asyncio.to_thread(recorder.flush)`.
        """
        return self._running_worker.flush(timeout)

    def close(self, timeout: float = EXIT_TIME) -> None:
        """Send what can be sent in time; the rest waits on disk for the next recorder."""
        if not self._closed:
            self._closed = True
            atexit.unregister(self._at_exit)
            if self._worker is not None:
                self._worker.close(timeout)

    @quietly
    def _at_exit(self) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_RECORDERS: weakref.WeakSet[Recorder] = weakref.WeakSet()


def _after_fork() -> None:
    for recorder in list(_RECORDERS):
        recorder._after_fork()  # noqa: SLF001 - the same module


os.register_at_fork(after_in_child=_after_fork)


def _stated_outcome(status: Any, outcome: Any, end: Tree, failed: Callable[[str], None]) -> Tree:
    """What an end says of it; nothing, and an error that is counted, when nobody could read it."""
    if status is None and outcome is None and end.get("share") is None:
        status = "completed"
    stated = {"final_status": status, "outcome": outcome}
    try:
        check_outcome(outcome_of_end({**end, **stated}))
    except Rejected as error:
        failed(f"end_trajectory: {error}")
        return {"final_status": None, "outcome": None, "share": None}
    return stated
