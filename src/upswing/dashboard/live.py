"""What has changed since a page last looked? One stream of the loop's events for all open pages of a key.

    GET /v1/events ──▶ one reader for a key ──▶ a number for each topic, which rises ──▶ pages ask again for what it concerns

Pages are told that something changed, and not what: they read it as everybody does. The counts alone are shown as
they come. A loop without the stream, or one that has no place left in it, is looked at every few seconds instead.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from upswing.dashboard.client import LoopClient, LoopClients
from upswing.errors import Denied, UpswingError
from upswing.infra.backoff import Backoff
from upswing.infra.http import stream_lines
from upswing.infra.tasks import cancel_all, run_in_background

log = logging.getLogger(__name__)
EVENTS = "/v1/events"
_SILENCE_SECONDS = 40.0
"""The loop says something every 15 s."""
_AGAIN = Backoff(1.0, 15.0)
_POLL_SECONDS = 5.0
"""Between two looks where there is no stream."""
_LINE_LIMIT = 100_000
ANY = "*"
"""Changes with every event."""


class LiveFeed:
    """The changes that one key may see; runs while a page is open."""

    def __init__(self, loop: LoopClient, key: str) -> None:
        self._loop, self._key = loop, key
        self.versions: Counter[str] = Counter()
        self.counts: dict[str, int] = {}
        self.trouble: str | None = "Connecting to the loop …"
        """Why nothing is heard of the loop just now."""
        self.streams = False
        self._pages = 0
        self._task: asyncio.Task[None] | None = None

    def open_page(self) -> None:
        self._pages += 1
        if self._task is None or self._task.done():
            self._task = run_in_background(self._run(), name="events of the loop")

    async def close_page(self) -> None:
        self._pages -= 1
        if self._pages <= 0 and self._task is not None:
            task, self._task = self._task, None
            await cancel_all([task])

    def version(self, topics: tuple[str, ...]) -> int:
        return sum(self.versions[topic] for topic in topics)

    async def _run(self) -> None:
        failures = 0
        while True:
            try:
                async for event, data in self._events():
                    failures = 0
                    self._take(event, data)
            except Denied:
                self.trouble = "The loop does not know this key any more."
                self._changed(ANY)
                return
            except UpswingError as error:
                self.trouble = str(error)
                self._changed(ANY)
                failures += 1
                log.info("the loop's events: %s", error, extra={"action": "events_away"})
            self.streams = False
            await asyncio.sleep(_AGAIN.seconds(failures))

    async def _events(self) -> AsyncIterator[tuple[str, Any]]:
        if not await self._loop.offers("GET", EVENTS):
            async for polled in self._polls():
                yield polled
            return
        lines = stream_lines(
            self._loop.url + EVENTS,
            key=self._key,
            silence_seconds=_SILENCE_SECONDS,
            limit=_LINE_LIMIT,
        )
        event, data = "", ""
        async for line in lines:
            name, _, value = line.partition(":")
            if name == "event":
                event = value.strip()
            elif name == "data":
                data = value.strip()
            elif not line and event:
                yield event, _parsed(data)
                event, data = "", ""

    async def _polls(self) -> AsyncIterator[tuple[str, Any]]:
        """Everything may have changed whenever the counts have."""
        known: dict[str, int] | None = None
        while True:
            counts = await self._loop.get("/v1/status", dict[str, int], fresh=True)
            if known is None:
                yield "hello", {}
            if counts != known:
                known = counts
                yield "counts", {"counts": counts}
                yield "lost", {}
            await asyncio.sleep(_POLL_SECONDS)

    def _take(self, event: str, data: Any) -> None:
        if event == "hello":
            self.trouble, self.streams = None, True
            self._changed("lost")
        if event == "counts" and isinstance(data, dict):
            counts = data.get("counts")
            if isinstance(counts, dict):
                self.counts = {str(name): n for name, n in counts.items() if isinstance(n, int)}
        self._changed(event)

    def _changed(self, topic: str) -> None:
        self.versions[topic] += 1
        self.versions[ANY] += 1


class LiveFeeds:
    """One feed for each key that has a page open."""

    def __init__(self, clients: LoopClients) -> None:
        self._clients = clients
        self._feeds: dict[str, LiveFeed] = {}

    def of(self, key: str) -> LiveFeed:
        if key not in self._feeds:
            self._feeds[key] = LiveFeed(self._clients.of(key), key)
        return self._feeds[key]


def _parsed(data: str) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
