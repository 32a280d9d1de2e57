"""How does an agent of ours act in a world behind AgentGym's HTTP form? `Remote(url)` is a place.

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

import asyncio
import contextlib
import http.client
import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import msgspec

from upswing.contracts.typed import from_tree
from upswing.errors import Misuse, Reason, Rejected, Transient, UpswingError
from upswing.worlds.agentgym import About, Address, Heard, address, heard, reset_body
from upswing.worlds.world import UNFINISHED, Observation, Outcome, Task

_LINES = ThreadPoolExecutor(64, "world")
"""Threads of our own: those that asyncio shares out are few, and the store needs them."""
_MOST = 4 * 1024 * 1024
"""Bytes of an answer."""
_LOST = (OSError, http.client.HTTPException)
_REASONS = {400: Reason.SCHEMA, 413: Reason.TOO_LARGE, 422: Reason.SCHEMA}


class Remote:
    """The world at this address, as a place."""

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
        self._free: list[Address] = []

    @property
    def name(self) -> str:
        return self._url.netloc

    async def about(self) -> About:
        """Which world it is and how many tasks it has; `Misuse` where the server does not tell."""
        try:
            return from_tree(await self.ask("GET", "/tasks"), About)
        except msgspec.ValidationError:
            raise Misuse(f"{self.name} does not tell how many tasks it has.") from None

    async def begin(self, number: int) -> RemoteVisit:
        """Begin the task of this number."""
        if self._free:
            # The server may have dropped the session meanwhile: then a new one has to do.
            with contextlib.suppress(UpswingError):
                return await self._begun(self._free.pop(), number)
        return await self._begun(address(await self.ask("POST", "/create", {"id": 0})), number)

    async def close(self) -> None:
        """Close the sessions, as far as the server can."""
        while self._free:
            await self.drop(self._free.pop())

    async def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """One exchange; whatever is not a good answer is one of our errors."""
        status, raw = await self._exchanged(method, path, body)
        told = _decoded(raw)
        if status == 200:
            return told
        said = told.get("detail") if isinstance(told, dict) else None
        sentence = str(said or f"{self.name} answers {status} to {path}.")[:500]
        if status in {404, 405}:
            raise Misuse(sentence)
        if status in _REASONS:
            raise Rejected(_REASONS[status], sentence)
        raise Transient(sentence)

    def keep(self, session: Address) -> None:
        """A session that can be used again."""
        self._free.append(session)

    async def drop(self, session: Address) -> None:
        """A session that is of no use any more; not every server closes any."""
        with contextlib.suppress(UpswingError):
            await self.ask("POST", "/close", session.body())

    def _id_of(self, number: int) -> str:
        return f"{self.name}-{number}"

    async def _begun(self, session: Address, number: int) -> RemoteVisit:
        try:
            told = await self.ask("POST", "/reset", reset_body(session, number))
            return RemoteVisit(self, session, self._id_of(number), heard(told, self.best))
        except UpswingError:
            await self.drop(session)
            raise

    async def _exchanged(
        self, method: str, path: str, body: Mapping[str, Any] | None
    ) -> tuple[int, bytes]:
        secure = self._url.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        line = kind(self._url.hostname or "", self._url.port, timeout=self._seconds)
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.get_running_loop().run_in_executor(
                    _LINES, _exchange, line, method, self._url.path + path, body
                )
        except TimeoutError:
            raise Transient(f"{self.name} did not answer in {self._seconds:g} s.") from None
        except _LOST as error:
            raise Transient(f"{self.name} is not reachable: {type(error).__name__}.") from None
        finally:
            _hang_up(line)


class RemoteVisit:
    """A task of a world behind HTTP."""

    def __init__(self, place: Remote, session: Address, task_id: str, first: Heard) -> None:
        self._place, self._session, self._heard = place, session, first
        self._turns, self._spoiled = 0, False
        self.task = first.task or Task(task_id, "")

    @property
    def observation(self) -> Observation:
        return self._heard.observation

    @property
    def outcome(self) -> Outcome | None:
        return self._heard.outcome

    async def step(self, reply: str) -> None:
        """Say something. What goes wrong over there ends the visit with an outcome."""
        if self.outcome is not None:
            raise Misuse("This task is over: begin another.")
        self._spoiled = True  # until it is answered: who is broken off here leaves it in doubt
        said = reply.encode(errors="replace").decode()  # a broken character is not worth a fault
        try:
            told = await self._place.ask("POST", "/step", self._session.body(action=said))
            self._heard = heard(told, self._place.best)
            self._spoiled = False
        except UpswingError as error:
            agents_own = isinstance(error, Rejected) and error.reason is Reason.TOO_LARGE
            self._end(Outcome(False, 0.0, str(error), fault=not agents_own))
        self._turns += 1
        foreign, ended = self._heard.task is None, self._heard.outcome is not None
        if foreign and not ended and self._turns >= self._place.max_turns:
            self._end(UNFINISHED)

    async def close(self) -> None:
        """Give the session back; one that failed is not used again."""
        if self._spoiled:
            await self._place.drop(self._session)
        else:
            self._place.keep(self._session)

    def _end(self, outcome: Outcome) -> None:
        self._heard = Heard(self._heard.observation, outcome, self._heard.task)


def _exchange(
    line: http.client.HTTPConnection, method: str, path: str, body: Mapping[str, Any] | None
) -> tuple[int, bytes]:
    headers = {"Accept": "application/json", "User-Agent": "upswing"}
    if body is not None:
        headers["Content-Type"] = "application/json"
    raw = None if body is None else msgspec.json.encode(body)
    with contextlib.suppress(BrokenPipeError):  # who refuses a long body may answer before its end
        line.request(method, path, raw, headers)
    answer = line.getresponse()
    content = answer.read(_MOST + 1)
    if len(content) > _MOST:
        raise Transient("The world's answer is too large.")
    return answer.status, content


def _decoded(raw: bytes) -> Any:
    """Null, where it is not JSON: that is no known shape either."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _hang_up(line: http.client.HTTPConnection) -> None:
    """Ends the exchange also for the thread that may still be reading."""
    if line.sock is not None:
        with contextlib.suppress(OSError):
            line.sock.shutdown(socket.SHUT_RDWR)
    line.close()
