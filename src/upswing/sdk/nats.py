"""How does a message reach the loop over NATS? JetStream publishes, and the PubAck means durable."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from concurrent.futures import TimeoutError as TookTooLong
from threading import Thread
from typing import Any, TypeVar

import msgspec
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.errors import MaxPayloadError
from nats.js.errors import APIError

from upswing.contracts.topics import FEEDBACK, TRAJECTORY
from upswing.errors import Denied, Transient
from upswing.infra.spool_log import SpoolEntryKind
from upswing.infra.tasks import start_task
from upswing.sdk.transport import (
    TIMEOUT,
    Answer,
    EntryAccepted,
    EntryDeferred,
    EntryRefused,
    checked,
)

T = TypeVar("T")

_SUBJECTS = {
    SpoolEntryKind.TRAJECTORY: (TRAJECTORY, "trajectory_id"),
    SpoolEntryKind.FEEDBACK: (FEEDBACK, "feedback_id"),
}


class NatsTransport:
    """One connection. A lost one is not mended but made anew.

    Its event loop has a daemon thread of its own, so that it answers the server's pings while the
    recorder is idle.
    """

    def __init__(self, url: str, timeout: float = TIMEOUT) -> None:
        self._url, self._timeout = url, timeout
        self._user = checked(url, ("nats", "tls")).username
        self._client: Client | None = None
        self._trouble: Exception | None = None
        self._lost = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="upswing-nats", daemon=True)
        self._thread.start()

    def send(self, kind: SpoolEntryKind, bodies: Sequence[bytes]) -> list[Answer]:
        return self._run_with_timeout(
            self._send_entries(kind, bodies), self._timeout * (2 + len(bodies))
        )

    def _run_with_timeout(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(seconds)
        except TookTooLong:
            future.cancel()
            raise Transient("The bus does not answer.") from None

    async def _send_entries(self, kind: SpoolEntryKind, bodies: Sequence[bytes]) -> list[Answer]:
        client = await self._connected_client()
        answers: list[Answer] = []
        for body in bodies:
            answers.append(await self._publish_entry(client, kind, body))
            if isinstance(answers[-1], EntryDeferred):  # the rest keeps its order behind this one
                break
        return [*answers, *[answers[-1]] * (len(bodies) - len(answers))]

    async def _publish_entry(self, client: Client, kind: SpoolEntryKind, body: bytes) -> Answer:
        subject, id_key = _SUBJECTS[kind]
        headers = {"Nats-Msg-Id": str(msgspec.json.decode(body)[id_key])}
        self._trouble = None
        js = client.jetstream()
        try:
            await self._unless_lost(
                js.publish(subject, body, timeout=self._timeout, headers=headers)
            )
        except MaxPayloadError:
            return EntryRefused("The message is larger than the bus takes.")
        except APIError as error:
            if error.code is not None and 400 <= error.code < 500:
                return EntryRefused(f"The bus refused the message: {error.description}.")
            return EntryDeferred(Transient(f"The bus cannot store now: {error.description}."))
        except (NatsError, OSError, TimeoutError) as error:
            return EntryDeferred(self._error_for(error))
        return EntryAccepted()

    async def _unless_lost(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do this, but do not wait for an answer on a connection that is gone."""
        publishing, losing = start_task(work), start_task(self._lost.wait())
        await asyncio.wait({publishing, losing}, return_when=asyncio.FIRST_COMPLETED)
        losing.cancel()
        if not publishing.done():
            publishing.cancel()
            raise ConnectionResetError
        publishing.result()

    def _error_for(self, error: Exception) -> Denied | Transient:
        reason = f"{self._trouble or error}".lower()
        if "permissions violation" in reason or "authorization" in reason:
            return Denied("The bus does not let this user publish. Entries wait in the spool.")
        return Transient(f"The bus does not take messages now: {type(error).__name__}.")

    async def _connected_client(self) -> Client:
        if self._client is not None and self._client.is_connected:
            return self._client
        await self._disconnect()
        self._client, self._lost = Client(), asyncio.Event()
        try:
            await self._client.connect(
                self._url,
                allow_reconnect=False,
                max_reconnect_attempts=1,  # one try: when to try again is for the worker to say
                reconnect_time_wait=0,
                connect_timeout=int(self._timeout),
                error_cb=self._note_error,
                closed_cb=self._on_disconnect,
                inbox_prefix=f"_INBOX_{self._user}" if self._user else "_INBOX",
            )
        except (NatsError, OSError, TimeoutError) as error:
            await self._disconnect()
            raise self._error_for(error) from error
        return self._client

    async def _note_error(self, error: Exception) -> None:
        self._trouble = error

    async def _on_disconnect(self) -> None:
        self._lost.set()

    async def _disconnect(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    def close(self) -> None:
        if self._thread.is_alive():
            with contextlib.suppress(Transient):
                self._run_with_timeout(self._disconnect(), 1.0)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(1.0)
        if not self._loop.is_running():
            self._loop.close()
