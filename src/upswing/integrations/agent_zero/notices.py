"""How do alerts and reports reach the superior? They stand among the extras of its next turn, once in each chat.

A thread asks the loop now and then, with the assistant's key; an agent only looks at what is there. What was there before the
process began is no news, except for alerts that still fire.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping
from threading import Event, Lock, Thread
from typing import Any

from upswing.errors import UpswingError
from upswing.integrations.operations.loop_port import LoopPort, path_of
from upswing.integrations.operations.quoting import WARNING, quoted, sentence
from upswing.integrations.operations.reading_loop import alert_line

log = logging.getLogger("upswing.agent_zero")
_MOST = 20
"""Notices that are kept for chats that have not seen them."""
_REPORT_CHARS = 2_500
"""Of a report: an agent reads all of it in its next turn."""
_HEAD = "Notices of the Upswing loop, for you to know; tell your user when it matters to them:"


class NoticeBoard:
    """What is new, and which chats have seen it. Reading it takes microseconds."""

    def __init__(self, loop: LoopPort, *, seconds: float) -> None:
        """`seconds` between two questions."""
        self._loop, self._seconds = loop, seconds
        self._notices: OrderedDict[str, str] = OrderedDict()
        self._known: set[str] | None = None
        """Reports that were there; None before the first answer."""
        self._seen: OrderedDict[str, set[str]] = OrderedDict()
        self._lock, self._stop = Lock(), Event()
        self._thread = Thread(target=self._run, name="upswing-notices", daemon=True)
        self.trouble = ""

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop.set()

    def take(self, chat_id: str) -> str:
        """What this chat has not seen; empty when there is nothing."""
        with self._lock:
            if not self._notices:
                return ""
            seen = self._seen.setdefault(chat_id, set())
            fresh = [name for name in self._notices if name not in seen]
            seen |= set(fresh)
            while len(self._seen) > 1_000:
                self._seen.popitem(last=False)
            texts = [self._notices[name] for name in fresh]
        return "\n\n".join([_HEAD, *texts]) if texts else ""

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                asyncio.run(self.refresh())
                self.trouble = ""
            except UpswingError as error:
                if str(error) != self.trouble:
                    log.info("no notices: %s", error, extra={"action": "notices_away"})
                self.trouble = str(error)
            except Exception as error:  # the thread outlives whatever goes wrong in it
                self.trouble = type(error).__name__
                log.exception("notices broke", extra={"action": "notices_broke"})
            self._stop.wait(self._seconds)

    async def refresh(self) -> None:
        """Ask what is new."""
        alerts = (await self._loop.get("/v1/alerts", state="firing", limit=10))["alerts"]
        listed = (await self._loop.get("/v1/reports", limit=10))["reports"]
        first, self._known = self._known is None, self._known or set()
        fresh = [row for row in listed if row["report_id"] not in self._known]
        self._known = {row["report_id"] for row in listed}
        texts = {
            f"report {row['report_id']}": await self._report(row)
            for row in ([] if first else fresh)
        }
        texts |= {
            f"alert {row['alert_id']} {row.get('began')}": f"Alert: {alert_line(row)}"
            for row in alerts
        }
        self._keep(texts, firing={name for name in texts if name.startswith("alert ")})

    async def _report(self, row: Mapping[str, Any]) -> str:
        found = await self._loop.get(path_of("/v1/reports/{id}", id=str(row["report_id"])))
        title = sentence(found.get("title", row["report_id"]))
        text = quoted("report", str(found.get("text", "")), longest=_REPORT_CHARS)
        return f"{title}. {WARNING}\n{text}"

    def _keep(self, texts: Mapping[str, str], firing: set[str]) -> None:
        with self._lock:
            for name in [each for each in self._notices if each.startswith("alert ")]:
                if name not in firing:  # it is over: nobody has to hear of it any more
                    del self._notices[name]
            self._notices |= texts
            while len(self._notices) > _MOST:
                self._notices.popitem(last=False)
