"""How does an agent of ours act in a world behind AgentGym's HTTP form? `AgentGymClient(url)` begins attempts.

| the server                                   | when a task begins | in the middle of it              |
|----------------------------------------------|--------------------|----------------------------------|
| answers in one of the known shapes           | the first sight    | the next sight, or how it ended  |
| 400, 422                                     | `Rejected`         | the world's fault                |
| 404, 405                                     | `Misuse`           | the world's fault                |
| 413                                          | `Rejected`         | the agent's: it says too much    |
| any other status, `{"error"}`, another shape | `Transient`        | the world's fault                |
| is away, or too slow                         | `Transient`        | the world's fault                |

The world's fault is an outcome with `fault`: the episode is kept, and nobody learns from it.
A session is used again for the next task, as AgentGym's own clients do: some servers close none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import msgspec

from upswing.contracts.typed import from_tree
from upswing.errors import Misuse, Reason, Rejected, Transient, UpswingError
from upswing.infra.http import Unreachable, exchange
from upswing.worlds.agentgym import (
    ServerReply,
    SessionAddress,
    WorldInfo,
    parse_reply,
    reset_body,
    session_address,
)
from upswing.worlds.world import UNFINISHED, Task, WorldObservation, WorldOutcome

_MAX_REPLY_BYTES = 4 * 1024 * 1024
"""Bytes of an answer."""
_REASONS = {400: Reason.SCHEMA, 413: Reason.TOO_LARGE, 422: Reason.SCHEMA}


class AgentGymClient:
    """The world at this address."""

    def __init__(
        self,
        url: str,
        *,
        best: float = 1.0,
        max_turns: int = 30,
        timeout: timedelta = timedelta(seconds=60),
    ) -> None:
        """`best` is the reward of a task that is done: 100 for SciWorld, 1 for most.

        A server of ours says itself when the turns are over; of others an agent has `max_turns`.
        """
        parts = urlsplit(url.rstrip("/"))
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise Misuse(f"{url} is no address of a world, such as http://127.0.0.1:8200.")
        self.best, self.max_turns = best, max_turns
        self._url, self._seconds = parts, timeout.total_seconds()
        self._free: list[SessionAddress] = []

    @property
    def name(self) -> str:
        return self._url.netloc

    async def world_info(self) -> WorldInfo:
        """Which world it is and how many tasks it has; `Misuse` where the server does not tell."""
        try:
            return from_tree(await self.request("GET", "/tasks"), WorldInfo)
        except msgspec.ValidationError:
            raise Misuse(f"{self.name} does not tell how many tasks it has.") from None

    async def begin(self, number: int) -> RemoteAttempt:
        """Begin the task of this number."""
        if self._free:
            # The server may have dropped the session meanwhile: then a new one has to do.
            with contextlib.suppress(UpswingError):
                return await self._begin_in_session(self._free.pop(), number)
        created = session_address(await self.request("POST", "/create", {"id": 0}))
        return await self._begin_in_session(created, number)

    async def close(self) -> None:
        """Close the sessions, as far as the server can."""
        while self._free:
            await self.discard(self._free.pop())

    async def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """One exchange; whatever is not a good answer is one of our errors."""
        status, raw = await self._send_request(method, path, body)
        reply = _decode_json(raw)
        if status == 200:
            return reply
        detail = reply.get("detail") if isinstance(reply, dict) else None
        sentence = str(detail or f"{self.name} answers {status} to {path}.")[:500]
        if status in {404, 405}:
            raise Misuse(sentence)
        if status in _REASONS:
            raise Rejected(_REASONS[status], sentence)
        raise Transient(sentence)

    def release(self, session: SessionAddress) -> None:
        """A session that can be used again."""
        self._free.append(session)

    async def discard(self, session: SessionAddress) -> None:
        """A session that is of no use any more; not every server closes any."""
        with contextlib.suppress(UpswingError):
            await self.request("POST", "/close", session.body())

    def _task_id(self, number: int) -> str:
        return f"{self.name}-{number}"

    async def _begin_in_session(self, session: SessionAddress, number: int) -> RemoteAttempt:
        try:
            reply = await self.request("POST", "/reset", reset_body(session, number))
            return RemoteAttempt(
                self, session, self._task_id(number), parse_reply(reply, self.best)
            )
        except UpswingError:
            await self.discard(session)
            raise

    async def _send_request(
        self, method: str, path: str, body: Mapping[str, Any] | None
    ) -> tuple[int, bytes]:
        try:
            reply = await exchange(
                method,
                self._url.geturl() + path,
                body=None if body is None else msgspec.json.encode(body),
                seconds=self._seconds,
                limit=_MAX_REPLY_BYTES,
            )
        except Rejected:
            raise Transient("The world's answer is too large.") from None
        except Unreachable as error:
            if error.late:
                raise Transient(f"{self.name} did not answer in {self._seconds:g} s.") from None
            raise Transient(f"{self.name} is not reachable.") from None
        return reply.status, reply.body


class RemoteTasks:
    """The training tasks of a remote world, which have numbers there."""

    def __init__(self, client: AgentGymClient, count: int) -> None:
        self._client = client
        self.training = [Task(f"{client.name}-{number}", "") for number in range(count)]
        self._numbers = {task.task_id: number for number, task in enumerate(self.training)}

    async def begin(self, task: Task) -> RemoteAttempt:
        return await self._client.begin(self._numbers[task.task_id])


class RemoteAttempt:
    """A task of a world behind HTTP."""

    def __init__(
        self, client: AgentGymClient, session: SessionAddress, task_id: str, first: ServerReply
    ) -> None:
        self._client, self._session, self._reply = client, session, first
        self._turns, self._spoiled = 0, False
        self.task = first.task or Task(task_id, "")

    @property
    def observation(self) -> WorldObservation:
        return self._reply.observation

    @property
    def outcome(self) -> WorldOutcome | None:
        return self._reply.outcome

    async def step(self, reply: str) -> None:
        """Say something. What goes wrong over there ends the attempt with an outcome."""
        if self.outcome is not None:
            raise Misuse("This task is over: begin another.")
        self._spoiled = True  # until it is answered: who is broken off here leaves it in doubt
        action = reply.encode(errors="replace").decode()  # a broken character is not worth a fault
        try:
            answer = await self._client.request("POST", "/step", self._session.body(action=action))
            self._reply = parse_reply(answer, self._client.best)
            self._spoiled = False
        except UpswingError as error:
            agents_own = isinstance(error, Rejected) and error.reason is Reason.TOO_LARGE
            self._end_attempt(WorldOutcome(False, 0.0, str(error), fault=not agents_own))
        self._turns += 1
        foreign, ended = self._reply.task is None, self._reply.outcome is not None
        if foreign and not ended and self._turns >= self._client.max_turns:
            self._end_attempt(UNFINISHED)

    async def close(self) -> None:
        """Give the session back; one that failed is not used again."""
        if self._spoiled:
            await self._client.discard(self._session)
        else:
            self._client.release(self._session)

    def _end_attempt(self, outcome: WorldOutcome) -> None:
        self._reply = ServerReply(self._reply.observation, outcome, self._reply.task)


def _decode_json(raw: bytes) -> Any:
    """Null, where it is not JSON: that is no known shape either."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
