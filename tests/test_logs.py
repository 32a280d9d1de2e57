"""The log says each change once; what comes over and over is counted."""

import io
import logging

import pytest

from upswing.logs import EVENTS, Repeats


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
