"""The log says each change once; what comes over and over is counted."""

import contextlib
import io
import json
import logging
from pathlib import Path

import pytest

from upswing.errors import Misuse
from upswing.logs import (
    EVENTS,
    FILE_BYTES,
    FORMAT_VARIABLE,
    OLD_FILES,
    JsonFormatter,
    LogOptions,
    Repeats,
    log_context,
    record_of_json,
    set_up_logging,
)
from upswing.redact import Redactor
from upswing.redact.rules import default_rules


class Log:
    """A logger with our filter, whose clock the test sets."""

    def __init__(self):
        self.out, self.at = io.StringIO(), 0.0
        handler = logging.StreamHandler(self.out)
        handler.addFilter(Repeats())
        self._handler = handler

    def say(self, text, action="x", level=logging.WARNING):
        record = logging.makeLogRecord(
            {"name": "n", "levelno": level, "msg": text, "created": self.at, "action": action}
        )
        self._handler.handle(record)

    @property
    def lines(self):
        return self.out.getvalue().splitlines()


def test_a_flood_is_one_line_and_ever_rarer_reminders():
    log = Log()
    for tick in range(2 * 3600 * 2):
        log.at = tick / 2
        log.say("the server is away")
    assert log.lines[:2] == ["the server is away", "the server is away (119 times more since)"]
    assert len(log.lines) == 7, "at 0, 60, 180, 420, 900, 1860 and 3780 s"


@pytest.mark.parametrize("kind", ["json", "text"])
def test_what_no_file_takes_is_spelled_out(tmp_path, kind, capsys):
    file = tmp_path / "log"
    set_up_logging(Redactor(default_rules()), LogOptions(kind, file))
    logging.getLogger("upswing.x").error(
        "half %s of ann@example.com", "\ud800", extra={"action": "x"}
    )
    said = file.read_text()
    assert ("ud800" in said, "ann@example.com" in said, capsys.readouterr().err) == (
        True,
        False,
        "",
    )


@pytest.mark.parametrize("to_file", [True, False])
def test_a_line_that_cannot_be_written_is_repeated_nowhere(to_file, capsys):
    """A disk is full: Python's own way shows all of the line on standard error."""
    full = Path("/dev/full")
    out = None if to_file else full.open("w")
    set_up_logging(
        Redactor(default_rules()), LogOptions("json", full if to_file else None, out=out)
    )
    (handler,) = logging.getLogger().handlers
    logging.getLogger("upswing.x").error("ann@example.com")
    said = capsys.readouterr().err
    assert "A line of the log is lost: upswing.x" in said
    assert "ann@" not in said
    logging.getLogger().removeHandler(handler)
    with contextlib.suppress(OSError):  # what it holds fits nowhere
        handler.stream.close()


def test_each_change_is_said_at_once():
    log = Log()
    for word in ("away", "away", "here", "here", "away again"):
        log.say(word)
    assert log.lines == ["away", "here", "away again"]


def test_what_comes_again_after_a_while_is_news():
    log = Log()
    log.say("away")
    log.at = 61.0
    log.say("away")
    assert log.lines == ["away", "away"]


@pytest.mark.parametrize("action", sorted(EVENTS))
def test_an_event_is_always_said(action):
    log = Log()
    for _ in range(3):
        log.say("it died with -9", action)
    assert len(log.lines) == 3


def test_the_same_words_of_another_level_are_another_line():
    log = Log()
    log.say("full", level=logging.WARNING)
    log.say("full", level=logging.ERROR)
    assert len(log.lines) == 2


def test_what_is_remembered_is_bounded():
    log = Log()
    for number in range(2000):
        log.say(f"line {number}")
    log.say("line 1999")
    log.say("line 0")
    assert len(log.lines) == 2001


# ── JSON, files and children ─────────────────────────────────────────────────────────────────────


class JsonLog:
    """Our formatter, with what it wrote."""

    def __init__(self, process="main"):
        self.formatter = JsonFormatter(Redactor(rules=default_rules()), process)

    def say(self, text, *args, error=None, **extra):
        info = (type(error), error, error.__traceback__) if error else None
        record = logging.makeLogRecord(
            {"name": "upswing.x", "levelno": 30, "levelname": "WARNING", "msg": text, "args": args}
            | {"exc_info": info, "created": 1_767_323_045.678}
            | extra
        )
        line = self.formatter.format(record)
        assert "\n" not in line
        return json.loads(line)


def test_a_line_of_json_has_its_fields():
    said = JsonLog().say("job %s failed", "j-1", action="train_failed", job="j-1", model="m-2")
    pid = said.pop("pid")
    assert pid is None or isinstance(pid, int)
    assert said == {
        "time": "2026-01-02T03:04:05.678+00:00",
        "level": "WARNING",
        "logger": "upswing.x",
        "process": "main",
        "message": "job j-1 failed",
        "job_id": "j-1",
        "model_id": "m-2",
        "action": "train_failed",
    }


def raised(text):
    with pytest.raises(ValueError) as caught:
        raise ValueError(text)
    return caught.value


def test_a_fault_is_one_line_too():
    said = JsonLog().say("it broke", error=raised("two\nlines"), action="broke")
    assert said["error"] == "ValueError: two\nlines"
    assert "Traceback" in said["traceback"]


def test_what_is_logged_within_is_about_its_job():
    log = JsonLog()
    with log_context(job="j-1"), log_context(model="m-1"):
        said = log.say("x")
        assert (said["job_id"], said["model_id"]) == ("j-1", "m-1")
        assert log.say("x", job="j-2")["job_id"] == "j-2", "what a line says itself counts"
    assert "job_id" not in log.say("x")


SECRETS = ("sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD", "ann.smith@example.com")


@pytest.mark.parametrize("secret", SECRETS)
def test_no_field_holds_a_secret(secret):
    error, ids = raised(f"with {secret}"), dict.fromkeys(("job", "reason"), f"of {secret}")
    said = JsonLog().say("it is %s", secret, error=error, **ids)
    assert secret not in json.dumps(said)


def test_hostile_text_stays_one_harmless_line():
    said = JsonLog().say('a\n{"level": "INFO"}\x1b[31m \u202e\u2028 ' + "x" * 100_000)
    assert "\x1b" not in said["message"]
    assert "\u202e" not in said["message"]


def test_a_childs_line_becomes_our_record():
    made = logging.makeLogRecord(
        {"name": "upswing.gateway", "levelno": 40, "levelname": "ERROR", "msg": "x"}
        | {"action": "alert", "episode": "e-1", "process": 77}
    )
    line = JsonFormatter(Redactor(rules=default_rules()), "gateway").format(made)
    again = json.loads(JsonLog().formatter.format(record_of_json(line)))
    assert again == json.loads(line)
    assert (again["process"], again["pid"], again["episode_id"]) == ("gateway", 77, "e-1")


@pytest.mark.parametrize("line", ["", "{", "{}", '{"level": "LOUD"}', "[" * 5000, '{"time": 3}'])
def test_what_is_no_line_of_ours_is_taken_as_text(line):
    assert record_of_json(line) is None


@pytest.fixture
def root_log():
    """The root logger as it was, afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:], root.level = handlers, level


def test_a_file_is_rotated_and_private(tmp_path, root_log):
    path = tmp_path / "logs" / "upswing.log"
    set_up_logging(Redactor(rules=default_rules()), LogOptions("json", path))
    (handler,) = root_log.handlers
    assert (handler.maxBytes, handler.backupCount) == (FILE_BYTES, OLD_FILES)
    handler.maxBytes = 2000
    for number in range(100):
        logging.getLogger("upswing").warning("line %d", number)
    files = sorted(tmp_path.glob("logs/*"))
    assert len(files) == 1 + OLD_FILES
    assert path.stat().st_mode & 0o077 == 0
    assert json.loads(path.read_text().splitlines()[-1])["message"] == "line 99"


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path, root_log):
    (tmp_path / "file").write_text("")
    with pytest.raises(Misuse, match="name another file with --log-file"):
        set_up_logging(Redactor(), LogOptions(file=tmp_path / "file" / "log"))


def test_a_format_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv(FORMAT_VARIABLE, "xml")
    with pytest.raises(Misuse, match="take one of text, json"):
        LogOptions.chosen(None, None, "main")
    assert LogOptions.chosen("json", None, "main").format == "json"


@pytest.mark.long
@pytest.mark.live
def test_a_loop_logs_to_its_file(start, data):
    path = data.parent / "log" / "upswing.log"
    env = {"AGENTGYM_RL_API_KEY": "a-key-that-nobody-may-read-0123456789"}
    process = start(data, "--log-file", str(path), "--log-format", "json", env=env)
    assert process.stop() == 0
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        assert {"time", "level", "logger", "process", "pid", "message"} <= line.keys()
    assert {line["process"] for line in lines} >= {"main"}
    assert env["AGENTGYM_RL_API_KEY"] not in path.read_text()
