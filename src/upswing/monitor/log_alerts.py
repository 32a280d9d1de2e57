"""How does a line of the log become an alert? A handler hears those with `action=alert`, from any thread."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence

from upswing.monitor.core.happenings import LoggedAlert

_MOST = 1000
"""Lines that wait for the monitor, at most; the oldest give way."""
_NAMED = ("model", "job", "part", "stage", "target")
_LOGGER = "upswing"


class AlertLogHandler(logging.Handler):
    """Keeps the lines that call a person until the monitor takes them. It neither waits nor fails."""

    def __init__(self, on_alert: Callable[[], None] = lambda: None) -> None:
        """`on_alert` is called from whichever thread logs."""
        super().__init__(logging.WARNING)
        self.on_alert = on_alert
        self._lines: deque[LoggedAlert] = deque(maxlen=_MOST)

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "action", None) != "alert":
            return
        named = {name: getattr(record, name, None) for name in _NAMED}
        labels = {name: str(value) for name, value in named.items() if value is not None}
        reason = str(getattr(record, "reason", None) or "")
        self._lines.append(LoggedAlert(reason, _sentence(record), labels, record.name))
        self.on_alert()

    def attach(self) -> None:
        """Hear what all of our code logs in this process."""
        logging.getLogger(_LOGGER).addHandler(self)

    def detach(self) -> None:
        logging.getLogger(_LOGGER).removeHandler(self)

    def take(self) -> list[LoggedAlert]:
        """What was logged since, the oldest first."""
        taken = []
        while self._lines:
            taken.append(self._lines.popleft())
        return taken

    def put_back(self, lines: Sequence[LoggedAlert]) -> None:
        """They could not be written down just now."""
        self._lines.extendleft(reversed(lines))


def _sentence(record: logging.LogRecord) -> str:
    """The message, and which error it was: of the error's own text nobody knows what it quotes."""
    message = record.getMessage().strip()
    error = record.exc_info[0] if record.exc_info else None
    return f"{message} ({error.__name__})" if error else message
