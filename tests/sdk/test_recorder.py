"""The recorder at the agent's side: shapes, steps, feedback, and that it never gets in the way."""

import asyncio
import dataclasses
import os
from datetime import UTC, datetime, timedelta

import pytest
from loop_double import eventually, say

from upswing.contracts import Feedback, Trajectory, from_builtins
from upswing.errors import Misuse
from upswing.sdk import Recorder


def only(loop):
    (message,) = loop.seen
    return message


def test_a_block_becomes_one_valid_trajectory(make, loop):
    recorder = make()
    with recorder.trajectory(
        agent_id="trader-1",
        task="Sort a list.",
        domain="coding",
        model="m",
        user_id="u",
        session_id="s",
        profile="developer",
        scenario_id="x",
        metadata={"temperature": 0.5},
    ) as t:
        t.turn(
            action={"tool": "python", "args": {"code": "1"}},
            result={"success": False, "error": "x"},
        )
        t.turn({"type": "tool_result", "content": "x"}, "Done.", thoughts=["So."])
        t.outcome("completed", share=1.0)
        t.metadata(test_results={"passed": 3})
    assert recorder.flush(60)
    sent = only(loop)
    from_builtins(Trajectory, sent)
    assert sent["trajectory_id"] == t.id
    assert sent["session_id"] == "s"
    assert sent["subordinate_profile"] == "developer"
    assert sent["task_context"] == {
        "task_id": t.id,
        "instructions": "Sort a list.",
        "domain": "coding",
    }
    assert sent["metadata"] == {
        "model": "m",
        "temperature": 0.5,
        "user_id": "u",
        "scenario_id": "x",
        "outcome": {"status": "completed", "share": 1.0},
        "test_results": {"passed": 3},
    }
    first, second = sent["turns"]
    assert first["observation"] == {"type": "user_message", "content": "Sort a list."}
    assert first["action"] == {
        "type": "tool_call",
        "tool_name": "python",
        "tool_args": {"code": "1"},
    }
    assert first["result"] == {"success": False, "error": "x"}
    assert second["thought_process"] == ["So."]
    assert (first["turn_id"], second["turn_id"]) == (1, 2)


def test_time_and_ids_are_given_and_time_never_runs_backwards(make, loop):
    noon = datetime(2025, 12, 8, 12, tzinfo=UTC)
    times = iter([noon, noon - timedelta(hours=1), noon + timedelta(seconds=1)])
    recorder = make(
        clock=lambda: next(times), new_id=lambda: "0d4c7a52-7f2e-4c39-9a4e-6f8d2f0b8a11"
    )
    say(recorder)
    assert recorder.flush(60)
    sent = only(loop)
    assert sent["trajectory_id"] == "0d4c7a52-7f2e-4c39-9a4e-6f8d2f0b8a11"
    assert sent["start_timestamp"] == sent["turns"][0]["timestamp"] == "2025-12-08T12:00:00Z"
    assert sent["end_timestamp"] == "2025-12-08T12:00:01Z"


def test_the_agents_exception_passes_through_and_the_trajectory_has_failed(make, loop):
    recorder = make()
    with pytest.raises(ValueError, match="boom"):  # noqa: PT012
        with recorder.trajectory(agent_id="a", task="t") as t:
            t.turn("in", "out")
            t.outcome("completed")
            raise ValueError("boom")
    assert recorder.flush(60)
    assert only(loop)["metadata"]["outcome"] == {
        "status": "failed",
        "share": 0.0,
        "error": "ValueError: boom",
    }
    assert len(only(loop)["turns"]) == 1


def test_an_exception_before_the_first_turn_is_the_result_of_that_turn(make, loop):
    recorder = make()
    with pytest.raises(KeyError), recorder.trajectory(agent_id="a", task="Try."):
        raise KeyError("k")
    assert recorder.flush(60)
    (turn,) = only(loop)["turns"]
    assert turn["observation"]["content"] == "Try."
    assert turn["result"] == {"success": False, "error": "KeyError: 'k'"}


def test_an_interruption_is_nobodys_failure(make, loop):
    recorder = make()
    with pytest.raises(KeyboardInterrupt), recorder.trajectory(agent_id="a") as t:  # noqa: PT012
        t.turn("in", "out")
        raise KeyboardInterrupt
    assert recorder.flush(60)
    assert only(loop)["metadata"]["outcome"]["status"] == "abandoned"


def test_what_the_agent_changes_afterwards_has_no_effect(make, loop):
    recorder, state, about = make(), {"n": [1]}, {"k": {"v": 1}}
    with recorder.trajectory(agent_id="a", metadata=about) as t:
        t.turn(state, {"tool": "x", "args": state}, state)
        state["n"].append(2)
        about["k"]["v"] = 2
    assert recorder.flush(60)
    (turn,) = only(loop)["turns"]
    assert turn["observation"]["content"] == turn["action"]["tool_args"] == {"n": [1]}
    assert turn["result"]["output"] == {"n": [1]}
    assert only(loop)["metadata"]["k"] == {"v": 1}


class Unprintable:
    def __repr__(self):
        raise RuntimeError


@dataclasses.dataclass
class Point:
    x: int


def _loop_of_itself():
    holder = {}
    holder["self"] = holder
    return holder


@pytest.mark.parametrize(
    "odd",
    [
        object(),
        Unprintable(),
        {(1, 2): {3}},
        "\ud800",
        float("nan"),
        2**80,
        b"\xff",
        Point(1),
        _loop_of_itself(),
        [object()],
        lambda: None,
        {"type": ["x"]},
        {"success": "maybe", "x": 1},
        {"type": "user_message"},
        {"type": "tool_call", "tool_args": "text"},
        {"name": None},
    ],
    ids=lambda odd: type(odd).__name__,
)
def test_whatever_the_agent_hands_over_becomes_a_valid_turn(make, loop, odd):
    recorder = make()
    with recorder.trajectory(agent_id="a", metadata={"odd": odd}) as t:
        t.turn(odd, odd, odd, thoughts=odd)
        t.outcome("partial", details=odd)
        t.metadata(more=odd)
    assert recorder.flush(60), recorder.stats
    from_builtins(Trajectory, only(loop))
    assert recorder.stats.errors == 0


def test_steps_become_a_trajectory_in_the_window_of_their_start(make, loop):
    start = datetime(2025, 11, 13, 12, 34, tzinfo=UTC)
    recorder = make(clock=lambda: start)
    tid = recorder.start_trajectory(agent_id="agent-123", model="m")
    recorder.record_step(
        tid,
        step_number=1,
        environment_state={"balance": 1000, "pnl": 50},
        action={"type": "trade", "params": {"side": "buy"}},
        reward=0.8,
    )
    recorder.record_step(tid, environment_state={"balance": 1010}, action={"type": "hold"})
    recorder.end_trajectory(tid, final_status="completed", total_reward=10.5, final_pnl=60)
    assert recorder.flush(60)
    about = only(loop)["metadata"]
    assert about["window_id"] == about["scenario_id"] == "2025-11-13T12:00"
    assert about["outcome"] == {"status": "completed", "share": 1.0}
    assert about["environment"] == {"balance": 1010, "pnl": 60}
    assert about["step_rewards"] == [0.8, None]
    assert about["total_reward"] == 10.5
    assert [turn["action"]["tool_name"] for turn in only(loop)["turns"]] == ["trade", "hold"]


def test_steps_of_an_unknown_trajectory_are_counted_and_do_not_raise(make, loop):
    recorder = make()
    recorder.record_step("nobody", action={"type": "x"})
    recorder.end_trajectory("nobody")
    assert recorder.stats.errors == 2


def test_a_trajectory_without_a_turn_is_counted_and_not_sent(make, loop):
    recorder = make()
    with recorder.trajectory(agent_id="a"):
        pass
    assert recorder.flush(60)
    assert recorder.stats.errors == 1
    assert "without a turn" in recorder.stats.last_error


def test_feedback_follows_its_trajectory(make, loop):
    recorder = make()
    with recorder.trajectory(agent_id="a", user_id="u") as t:
        t.feedback("thumbs_up")
        t.turn("in", "out")
    recorder.feedback(t.id, "rating", rating=4, user_id="u", comment=None)
    assert recorder.flush(60)
    assert [path for path, *_ in loop.requests] == ["/v1/trajectories", *["/v1/feedback"] * 2]
    for said in loop.seen[1:]:
        from_builtins(Feedback, said)
        assert said["trajectory_id"] == t.id
    assert [said["type"] for said in loop.seen[1:]] == ["thumbs_up", "rating"]


def test_bad_feedback_is_counted_and_not_sent(make, loop):
    recorder = make()
    recorder.feedback("not-a-uuid", "applause")
    assert recorder.flush(60)
    assert recorder.stats.errors == 1
    assert not loop.requests


async def test_async_code_is_not_held_up_even_when_the_loop_hangs(make, loop):
    recorder = make()
    loop.script.extend(["hang"] * 3)
    async with recorder.trajectory(agent_id="a") as t:
        t.turn("in", "out")
    async with recorder.trajectory(agent_id="a") as t:
        t.turn("in", "out")
    assert recorder._worker._failures == 0, "nobody waited for a try to end"
    await asyncio.to_thread(eventually, lambda: loop.requests)
    loop.released.set()
    loop.script.clear()
    assert await asyncio.to_thread(eventually, recorder.flush)
    assert len(loop.ids) == 2


def test_a_wrong_url_is_told_at_once():
    for url in ("ftp://x", "localhost:8100", "http://", "http://h:99999"):
        with pytest.raises(Misuse):
            Recorder(url=url)


def test_calls_after_close_are_counted_and_do_not_raise(make, loop):
    recorder = make()
    recorder.close()
    say(recorder)
    assert recorder.stats.dropped == 1


@pytest.mark.live
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_its_own_worker_and_sends_nothing_twice(make, loop):
    recorder = make()
    before = say(recorder, "parent")
    assert recorder.flush(60)
    loop.script.append(500)
    waiting = say(recorder, "waits")
    eventually(lambda: recorder.stats.last_error)
    if (child := os.fork()) == 0:
        code = 1
        try:
            say(recorder, "child")
            sent = recorder.flush() and recorder.stats.sent == 1
            recorder.close()
            code = 0 if sent else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert recorder.flush(60)
    texts = [message["turns"][0]["observation"]["content"] for message in loop.seen]
    assert sorted(texts) == ["child", "parent", "waits"]
    assert {before, waiting} < set(loop.ids)
