"""What may the log say? One line per event, with its `action`, and nothing private in it.

As text for people, or as JSON with these fields, of which those that do not apply are left out:

| field                                                       | is                                            |
|-------------------------------------------------------------|-----------------------------------------------|
| `time`, `level`, `logger`, `process`, `pid`, `message`      | always there; the time is UTC                 |
| `action`                                                    | the fixed word of what happened               |
| `trace_id`, `episode_id`, `trajectory_id`, `job_id`, `model_id`, `rollout_id` | what it is about            |
| `reason`, `stage`, `part`, `hash`                           | as the message needs them                     |
| `error`, `traceback`                                        | of an exception                               |
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO

from upswing.errors import Misuse

if TYPE_CHECKING:
    from upswing.redact import Redactor

_KEPT = {"\n", "\t"}
_BIDI = [*range(0x200E, 0x2010), *range(0x2028, 0x202F), *range(0x2066, 0x206A)]
_CONTROLS = [*range(0x20), *range(0x7F, 0xA0), *_BIDI, 0xFEFF]
_SHOWN = {
    code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    for code in _CONTROLS
    if chr(code) not in _KEPT
}


_SHOWN |= {code: f"\\u{code:04x}" for code in range(0xD800, 0xE000)}
"""Halves of pairs, which no file takes."""


def printable(text: str) -> str:
    r"""The text with its control characters, and what no file takes, spelled out; line ends and tabs stay.

    >>> printable("a\x1b]0;owned\x07b\n"), printable("Grüße, 你好")
    ('a\\x1b]0;owned\\x07b\n', 'Grüße, 你好')
    """
    return text.translate(_SHOWN)


class CleanFormatter(logging.Formatter):
    """Formats a record, then redacts the line: a log is a disk like any other."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s %(message)s")
        # It is heavy, and the command line prints without it.
        from upswing.redact import RedactionFailed  # noqa: PLC0415

        self._redactor, self._failed = redactor, RedactionFailed

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging calls it so
        """Lines of a message after the first are indented: none of them looks like a line of the log."""
        return super().formatMessage(record).replace("\n", "\n    ")

    def format(self, record: logging.LogRecord) -> str:
        line = printable(super().format(record))
        if action := getattr(record, "action", None):
            line = f"{line} action={action}"
        try:
            return str(self._redactor.text(line).value)
        except self._failed:
            return (
                f"{record.levelname} {record.name}: a line that could not be redacted was left out"
            )


IDS = ("trace", "episode", "trajectory", "job", "model", "rollout")
"""What a line may be about; a field of JSON has `_id` behind it."""
_WORDS = ("reason", "stage", "part", "hash")
_bound: ContextVar[Mapping[str, str] | None] = ContextVar("ids of the log", default=None)


@contextlib.contextmanager
def log_context(**ids: str) -> Iterator[None]:
    """Every line that is logged within the block is about these, by the names of `IDS`."""
    token = _bound.set({**(_bound.get() or {}), **ids})
    try:
        yield
    finally:
        _bound.reset(token)


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON, with every text redacted."""

    def __init__(self, redactor: Redactor, process: str) -> None:
        super().__init__()
        from upswing.redact import RedactionFailed  # noqa: PLC0415 - as above

        self._redactor, self._failed, self._process = redactor, RedactionFailed, process

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "process": getattr(record, "from_process", self._process),
            "pid": getattr(record, "from_pid", record.process),
            "message": self._clean(record.getMessage()),
            **self._details(record),
        }
        return json.dumps(fields, ensure_ascii=False)

    def _details(self, record: logging.LogRecord) -> dict[str, str]:
        bound = _bound.get() or {}
        found = {f"{name}_id": getattr(record, name, None) or bound.get(name) for name in IDS}
        found |= {name: getattr(record, name, None) for name in ("action", *_WORDS)}
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            found["error"] = f"{type(error).__name__}: {error}"
            found["traceback"] = self.formatException(record.exc_info)
        elif text := getattr(record, "from_traceback", None):
            found["traceback"] = text
        return {name: self._clean(str(value)) for name, value in found.items() if value}

    def _clean(self, text: str) -> str:
        try:
            return str(self._redactor.text(printable(text)).value)
        except self._failed:
            return "(it could not be redacted, and was left out)"


def record_of_json(line: str) -> logging.LogRecord | None:
    """What a child of ours logged, as a record of ours; None when the line is none of those."""
    if not line.startswith("{"):
        return None
    try:
        said = json.loads(line)
        level = logging.getLevelNamesMapping()[said["level"]]
        told = {"name": str(said["logger"]), "levelno": level, "levelname": said["level"]}
        moment = datetime.fromisoformat(said["time"]).timestamp()
        message = str(said["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    kept = {name: said.get(f"{name}_id") for name in IDS}
    kept |= {name: said.get(name) for name in ("action", *_WORDS)}
    kept |= {"from_process": said.get("process"), "from_pid": said.get("pid")}
    if trace := said.get("traceback"):
        kept["from_traceback"] = trace
        message = f"{message}: {said.get('error', '')}"
    return logging.makeLogRecord({**told, "msg": message, "created": moment, **kept})


_FIRST_WAIT, _LONGEST_WAIT = 60.0, 3600.0
"""Seconds until a line that comes over and over is said again, doubled each time."""
_REMEMBERED = 512
"""Different lines; the one that came longest ago is forgotten."""
EVENTS = frozenset({"gateway_restart", "model_server_restart", "nats_restart"})
"""Actions of which each is a change, even if its line is the same."""


@dataclass(slots=True)
class _Line:
    said: float
    seen: float
    wait: float = _FIRST_WAIT
    more: int = 0


class Repeats(logging.Filter):
    """One line for each change: the same line over and over is counted, and said ever more rarely."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: OrderedDict[tuple[str, int, str, str], _Line] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record, "action", None) in EVENTS:
            return True
        error = str(record.exc_info[1]) if record.exc_info else ""
        key, now = (record.name, record.levelno, record.getMessage(), error), record.created
        line = self._lines.get(key)
        if line is None or now - line.seen >= max(line.wait, _FIRST_WAIT):
            self._lines[key] = _Line(now, now)
            self._lines.move_to_end(key)
            if len(self._lines) > _REMEMBERED:
                self._lines.popitem(last=False)
            return True
        line.seen = now
        if now - line.said < line.wait:
            line.more += 1
            return False
        times = f"{line.more:,} times more" if line.more > 1 else "once more"
        if line.more:
            record.msg, record.args = f"{key[2]} ({times} since)", ()
        line.said, line.wait, line.more = now, min(2 * line.wait, _LONGEST_WAIT), 0
        return True


LogFormat = Literal["text", "json"]
FORMATS: tuple[LogFormat, ...] = ("text", "json")
FORMAT_VARIABLE = "UPSWING_LOG_FORMAT"
"""The format of this process and of its children, where no option says it."""
FILE_BYTES, OLD_FILES = 64 * 1024 * 1024, 5
"""Of a log file before the next one begins, and how many older ones stay: some 400 MB at most."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Where the log goes, and how it looks."""

    format: LogFormat = "text"
    file: Path | None = None
    """None: to standard error."""
    process: str = "main"
    """Which of the processes this is."""
    out: TextIO | None = None
    """An open file instead."""

    @classmethod
    def chosen(
        cls, format_option: str | None, file: Path | None, process: str, out: TextIO | None = None
    ) -> LogOptions:
        """By the options, else by the environment; children inherit the format."""
        said = format_option or os.environ.get(FORMAT_VARIABLE) or "text"
        for known in FORMATS:
            if said == known:
                os.environ[FORMAT_VARIABLE] = known
                return cls(known, file.expanduser().absolute() if file else None, process, out)
        raise Misuse(f"{FORMAT_VARIABLE} is {said[:40]!r}: take one of {', '.join(FORMATS)}.")


def set_up_logging(
    redactor: Redactor, options: LogOptions | None = None, level: int = logging.INFO
) -> None:
    """Log to standard error, to an open file, or to one that begins anew when it is large."""
    chosen = options or LogOptions()
    handler = _open_handler(chosen)
    json_lines = chosen.format == "json"
    handler.setFormatter(
        JsonFormatter(redactor, chosen.process) if json_lines else CleanFormatter(redactor)
    )
    handler.addFilter(Repeats())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for chatty in ("nats", "uvicorn.error"):
        logging.getLogger(chatty).setLevel(logging.CRITICAL)
    for chatty in ("httpx", "httpx2", "openai"):  # a line for every request of a client
        logging.getLogger(chatty).setLevel(logging.WARNING)


class _QuietlyFailing(logging.StreamHandler[TextIO]):
    """A line that cannot be written is lost with a sentence: Python's own way repeats it, with all that is private."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging calls it so
        say_lost_line(record)


def say_lost_line(record: logging.LogRecord) -> None:
    """Where it came from, and why it is lost; never what it says."""
    error = sys.exc_info()[0]
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(
            f"A line of the log is lost: {record.name} line {record.lineno}"
            f" ({error.__name__ if error else 'unknown'}).\n"
        )


class _PrivateFileHandler(RotatingFileHandler):
    """Its files are for their owner alone."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging calls it so
        say_lost_line(record)

    def _open(self) -> TextIOWrapper:
        def opener(path: str, flags: int) -> int:
            return os.open(path, flags, 0o600)

        return open(self.baseFilename, "a", encoding="utf-8", opener=opener)


def _open_handler(options: LogOptions) -> logging.Handler:
    if options.file is None:
        return _QuietlyFailing(options.out or sys.stderr)
    try:
        options.file.parent.mkdir(parents=True, exist_ok=True)
        return _PrivateFileHandler(
            options.file, maxBytes=FILE_BYTES, backupCount=OLD_FILES, encoding="utf-8"
        )
    except OSError as error:
        raise Misuse(
            f"The log cannot be written to {options.file} ({error.strerror}): name another file with --log-file."
        ) from None
