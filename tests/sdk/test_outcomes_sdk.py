"""What an agent tells its recorder of its success: sent as it counts, or not sent and said so."""

import logging

import pytest
from tests.outcomes import REFUSED, UNDERSTOOD

from upswing.dataset.outcome import trajectory_outcome


def sent(loop):
    (body,) = loop.seen
    return body["metadata"]


def by_outcome(recorder, told):
    with recorder.trajectory(agent_id="a") as t:
        t.turn("in", "out")
        t.outcome(told)


def by_metadata(recorder, told):
    with recorder.trajectory(agent_id="a") as t:
        t.turn("in", "out")
        t.metadata(outcome=told)


def by_end(recorder, told):
    tid = recorder.start_trajectory(agent_id="a")
    recorder.record_step(tid, action={"type": "wait"})
    recorder.end_trajectory(tid, outcome=told)


DOORS = pytest.mark.parametrize("say", [by_outcome, by_metadata, by_end])


@DOORS
@pytest.mark.parametrize(("told", "value"), UNDERSTOOD, ids=repr)
def test_what_is_understood_is_sent(make, loop, say, told, value):
    recorder = make()
    say(recorder, told)
    assert recorder.flush(60)
    assert trajectory_outcome(sent(loop)).value == value
    assert recorder.stats.errors == 0


@DOORS
@pytest.mark.parametrize("told", [*REFUSED, float("nan")], ids=repr)
def test_what_is_not_is_left_out_and_said(make, loop, say, told, caplog):
    recorder = make()
    with caplog.at_level(logging.WARNING, "upswing.sdk"):
        say(recorder, told)
    assert recorder.flush(60)
    assert trajectory_outcome(sent(loop)).value is None
    assert "outcome" not in sent(loop)
    assert recorder.stats.errors == 1
    assert "not understood" in recorder.stats.last_error
    assert "not understood" in caplog.text


@pytest.mark.parametrize(
    ("told", "value"),
    [(told, value) for told, value in UNDERSTOOD if isinstance(told, dict)],
    ids=repr,
)
def test_the_fields_may_be_said_by_their_names(make, loop, told, value):
    recorder = make()
    with recorder.trajectory(agent_id="a") as t:
        t.turn("in", "out")
        t.outcome(**told)
    assert recorder.flush(60)
    assert trajectory_outcome(sent(loop)).value == value
