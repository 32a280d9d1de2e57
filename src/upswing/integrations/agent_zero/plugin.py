"""What do the plugin's files call? One function for each kind, and none of them raises or waits.

The files in Agent Zero's folder are as thin as can be: they hand over the moment's name and its values. Whatever goes wrong
here is counted and logged once by its kind; the agent goes on.
"""

from __future__ import annotations

import atexit
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import uuid4

from upswing import __version__
from upswing.errors import Misuse, UpswingError
from upswing.integrations.agent_zero.chats import ChatRecorder
from upswing.integrations.agent_zero.connection import FORM, PluginConnection, read_connection
from upswing.integrations.agent_zero.feedback import answer_feedback
from upswing.integrations.agent_zero.model_calls import ModelCalls, register_with_litellm
from upswing.integrations.agent_zero.moments import dispatch
from upswing.integrations.agent_zero.notices import NoticeBoard
from upswing.integrations.agent_zero.trainer import operate, trainer_client
from upswing.integrations.agent_zero.transcript import Tree
from upswing.sdk.recorder import Recorder

log = logging.getLogger("upswing.agent_zero")
SPOOL = "spool"
_TURN_END = "message_loop_end"
PROVIDER = "upswing"
"""What the gateway is called among Agent Zero's model providers."""


@dataclass(slots=True)
class PluginStats:
    """What the plugin did, and what it cost the agents."""

    turns: int = 0
    seconds: float = 0.0
    """In which agents waited for it, after its start."""
    cpu_seconds: float = 0.0
    """Of these, in which it computed; the rest, others had the machine."""
    slowest: float = 0.0
    start_seconds: float = 0.0
    """Once, at the first moment: the connection is read, and threads begin."""
    errors: Counter[str] = field(default_factory=Counter)
    """Ours, by kind: none of them reached an agent."""


class AgentZeroPlugin:
    """The plugin of one process."""

    def __init__(
        self,
        folder: Path,
        *,
        version: str = "",
        make_recorder: Callable[[PluginConnection, Path], Recorder] | None = None,
    ) -> None:
        self.folder, self.stats = folder, PluginStats()
        self.trouble = ""
        """Why it does nothing; empty while it works."""
        self._make, self._version = make_recorder or _make_recorder, version
        self._lock = Lock()
        self._chats: ChatRecorder | None = None
        self._recorder: Recorder | None = None
        self._board: NoticeBoard | None = None
        self.connection = PluginConnection()

    def tell(self, form: int, point: str, agent: Any, values: Mapping[str, Any]) -> None:
        """A moment in an agent's work."""
        began, computed, started = time.perf_counter(), time.thread_time(), self._chats is not None
        try:
            if self.trouble:
                return
            if form != FORM:
                self.refuse(
                    f"The plugin's files have form {form}, this library has {FORM}: run `upswing agent-zero install` "
                    "with the upswing that Agent Zero's Python has."
                )
                return
            dispatch(self.started(), point, agent, values)
        except Exception as error:  # noqa: BLE001 - our faults are never the agent's
            self.count(error, point)
        finally:
            self._note_cost(
                point, time.perf_counter() - began, time.thread_time() - computed, started=started
            )

    def _note_cost(self, point: str, seconds: float, cpu: float, *, started: bool) -> None:
        self.stats.turns += point == _TURN_END
        if not started:
            self.stats.start_seconds += seconds
            return
        self.stats.seconds += seconds
        self.stats.cpu_seconds += cpu
        self.stats.slowest = max(self.stats.slowest, seconds)

    def started(self) -> ChatRecorder:
        """The recorder of chats, made when the first moment comes."""
        if self._chats is not None:
            return self._chats
        with self._lock:
            if self._chats is None:
                if self.trouble:
                    raise Misuse(self.trouble)
                try:
                    self._chats = self._start()
                except Exception as error:
                    # Once: threads and callbacks of a start that failed half-way would be left at every moment.
                    known = isinstance(error, UpswingError)
                    self.refuse(str(error) if known else f"{type(error).__name__}: {error}")
                    raise
            return self._chats

    def _start(self) -> ChatRecorder:
        self.connection = read_connection(self.folder)
        calls = ModelCalls()
        register_with_litellm(calls)
        self._recorder = self._make(self.connection, self.folder)
        chats = ChatRecorder(
            self._recorder,
            self.connection,
            calls,
            seconds=time.monotonic,
            new_id=lambda: uuid4().hex,
            version=self._version,
        )
        self._start_board()
        atexit.register(chats.close)
        return chats

    @property
    def recorder(self) -> Recorder:
        """Whoever sends; made when it is first needed."""
        self.started()
        if self._recorder is None:
            raise Misuse("The recorder did not start.")
        return self._recorder

    def feedback(self, form: int, asked: Any, context: Any) -> tuple[int, Tree]:
        """What the page asks; status and body."""
        try:
            if form != FORM:
                return 409, {"error": "The plugin and the installed upswing do not fit together."}
            if self.trouble:
                return 503, {"error": self.trouble}
            body = asked if isinstance(asked, Mapping) else {}
            return answer_feedback(body, context, self.recorder, self.connection.user_id)
        except Exception as error:  # noqa: BLE001 - as above
            self.count(error, "feedback")
            return 500, {"error": "Upswing's plugin broke here; Agent Zero's log says where."}

    def api_key(self, service: Any) -> str | None:
        """The gateway's key, for the provider that the plugin adds."""
        try:
            if str(service).lower() == PROVIDER:
                self.started()
                return self.connection.key
        except Exception as error:  # noqa: BLE001 - as above
            self.count(error, "api_key")
        return None

    def notices(self, form: int, agent: Any) -> str:
        """What is new in the loop, for a chat's first agent."""
        try:
            if form != FORM or self.trouble or agent is None or agent.number != 0:
                return ""
            self.started()
            return self._board.take(str(agent.context.id)) if self._board is not None else ""
        except Exception as error:  # noqa: BLE001 - as above
            self.count(error, "notices")
            return ""

    async def operate(self, form: int, method: str, arguments: Mapping[str, Any]) -> str:
        """What the rl-trainer asks."""
        try:
            if form != FORM:
                return "The plugin and the installed upswing do not fit together: install it again."
            self.started()
            return await operate(trainer_client(self.connection), method, arguments)
        except Exception as error:  # noqa: BLE001 - as above
            self.count(error, "operate")
            return f"Upswing's plugin broke over this ({type(error).__name__}); Agent Zero's log says where."

    def _start_board(self) -> None:
        client = trainer_client(self.connection)
        if client is not None:
            self._board = NoticeBoard(client, seconds=self.connection.notices_seconds)
            self._board.start()

    def refuse(self, why: str) -> None:
        """Do nothing from now on, and say so once."""
        self.trouble = why
        log.warning("the plugin does nothing: %s", why, extra={"action": "plugin_off"})

    def count(self, error: BaseException, point: str) -> None:
        """Ours went wrong: a set-up that cannot work was said already, everything else is said once by its kind."""
        kind = f"{point}: {type(error).__name__}"
        self.stats.errors[kind] += 1
        said = self._chats is None and isinstance(error, UpswingError)
        if self.stats.errors[kind] == 1 and not said:
            log.warning("%s", kind, exc_info=error, extra={"action": "plugin_error"})

    def status(self) -> Tree:
        """For a person: does it work, and what became of what was recorded?"""
        sent = self._recorder.stats if self._recorder is not None else None
        return {
            "version": __version__,
            "form": FORM,
            "trouble": self.trouble or None,
            "turns": self.stats.turns,
            "turn_ms": round(self.stats.seconds * 1000 / max(1, self.stats.turns), 3),
            "turn_cpu_ms": round(self.stats.cpu_seconds * 1000 / max(1, self.stats.turns), 3),
            "slowest_ms": round(self.stats.slowest * 1000, 3),
            "start_ms": round(self.stats.start_seconds * 1000, 3),
            "errors": dict(self.stats.errors),
            "recorder": None
            if sent is None
            else {
                "sent": sent.sent,
                "spooled": sent.spooled,
                "dropped": sent.dropped,
                "errors": sent.errors,
                "last_error": sent.last_error,
            },
        }


def _make_recorder(connection: PluginConnection, folder: Path) -> Recorder:
    return Recorder(url=connection.loop_url, key=connection.key, spool=folder / SPOOL)


_PLUGINS: dict[Path, AgentZeroPlugin] = {}
_MAKING = Lock()


def plugin_in(folder: str | Path, version: str = "") -> AgentZeroPlugin:
    """The plugin whose files lie in this folder: one for a process, however often its files are loaded anew."""
    path = Path(folder)
    with _MAKING:
        if path not in _PLUGINS:
            _PLUGINS[path] = AgentZeroPlugin(path, version=version)
        return _PLUGINS[path]
