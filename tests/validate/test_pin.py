"""A production failure as a task."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import trajectory
from upswing.contracts import Trajectory, from_builtins
from upswing.contracts.validation import TaskAnswer, ToolCall
from upswing.errors import Misuse
from upswing.validate.core.pin import pinned_task
from upswing.validate.core.play import next_move
from upswing.validate.core.task import Pinned, ValidationTask
from upswing.validate.sample_score_store import FilePinStore, MemoryPinStore
from upswing.validate.suite_loader import load_suites


def turn(number, kind, content, action, result=None, **context):
    seen = {"type": kind, "content": content} | ({"context": context} if context else {})
    return {
        "turn_id": number,
        "timestamp": "2025-01-15T10:00:00Z",
        "observation": seen,
        "action": action,
        "result": result or {"success": True},
    }


LOOK = {"type": "tool_call", "tool_name": "opening_hours", "tool_args": {"day": "Sunday"}}
SAY = {"type": "response", "raw_response": "The shop is open on Sunday."}
TURNS = [
    turn(
        1,
        "user_message",
        "Is the shop open on Sunday?",
        LOOK,
        available_tools=["opening_hours", "mail"],
    ),
    turn(2, "tool_result", {"open": False}, SAY),
]


def failed(**changes):
    made = trajectory(
        turns=TURNS,
        task_context={"instructions": "You help customers of a shop."},
        metadata={"ground_truth": "planted-token", "user_id": "u1"},
        **changes,
    )
    return from_builtins(Trajectory, made)


def test_the_situation_is_built_again_up_to_the_bad_answer():
    task = pinned_task(failed())
    assert [message["role"] for message in task.messages] == ["system", "user", "assistant", "tool"]
    call = task.messages[2]["tool_calls"][0]
    assert call["function"] == {"name": "opening_hours", "arguments": '{"day":"Sunday"}'}
    assert task.messages[3] == {
        "role": "tool",
        "tool_call_id": call["id"],
        "content": '{"open":false}',
    }
    assert [tool["function"]["name"] for tool in task.tools] == ["opening_hours", "mail"]


def test_without_an_expectation_any_other_answer_will_do():
    task = pinned_task(failed())
    assert next_move(task, [TaskAnswer("The shop is open on Sunday.")]).score == 0
    assert next_move(task, [TaskAnswer("It is closed.")]).score == 1


def test_a_bad_call_must_not_be_made_again():
    task = pinned_task(failed(), turn_id=1)
    same = ToolCall("opening_hours", json.dumps({"day": "sunday"}))
    other = ToolCall("opening_hours", json.dumps({"day": "Monday"}))
    assert len(task.messages) == 2
    assert next_move(task, [TaskAnswer("", (same,))]).score == 0
    assert next_move(task, [TaskAnswer("", (other,))]).score == 1


def test_an_expectation_says_what_must_happen():
    task = pinned_task(failed(), Pinned(contains=("closed",), excludes=("open",)))
    assert next_move(task, [TaskAnswer("Sorry, closed.")]).score == 1
    assert next_move(task, [TaskAnswer("closed, then open")]).score == 0


def test_the_ground_truth_and_other_metadata_stay_out():
    raw = msgspec.json.encode(pinned_task(failed()))
    assert b"planted-token" not in raw
    assert b"u1" not in raw


def test_the_same_pin_has_the_same_id_and_another_one_another():
    first = failed()
    assert pinned_task(first).task_id == pinned_task(first).task_id
    ids = {
        pinned_task(first).task_id,
        pinned_task(first, turn_id=1).task_id,
        pinned_task(failed()).task_id,
    }
    assert len(ids) == 3


@pytest.mark.parametrize(
    ("expectation", "turn_id", "why"),
    [(None, 7, "no turn 7; it has 1 to 2"), (Pinned(), None, "must or must not")],
)
def test_a_pin_that_means_nothing_is_refused(expectation, turn_id, why):
    with pytest.raises(Misuse, match=why):
        pinned_task(failed(), expectation, turn_id=turn_id)


def test_a_turn_without_an_answer_needs_an_expectation():
    silent = [turn(1, "system_message", "Wake up.", {"type": "memory_update"})]
    bare = from_builtins(Trajectory, trajectory(turns=silent))
    with pytest.raises(Misuse, match="say what must happen"):
        pinned_task(bare)
    assert pinned_task(bare, Pinned(contains=("x",))).messages[-1]["role"] == "user"


kinds = st.sampled_from(["user_message", "tool_result", "subordinate_response", "system_message"])
actions = st.sampled_from([LOOK, SAY, {"type": "memory_update"}, {"type": "subordinate_call"}])


@given(st.lists(st.tuples(kinds, actions), min_size=1, max_size=6))
def test_every_tool_message_answers_a_call_before_it(steps):
    turns = [turn(n, kind, "text", action) for n, (kind, action) in enumerate(steps, 1)]
    task = pinned_task(from_builtins(Trajectory, trajectory(turns=turns)), Pinned(contains=("x",)))
    called = set()
    for message in task.messages:
        called |= {call["id"] for call in message.get("tool_calls", ())}
        if message["role"] == "tool":
            assert message["tool_call_id"] in called
    assert msgspec.json.decode(msgspec.json.encode(task), type=ValidationTask) == task


@pytest.fixture(params=["memory", "files"])
def pins(request, tmp_path):
    return (
        MemoryPinStore(ValidationTask)
        if request.param == "memory"
        else FilePinStore(tmp_path, ValidationTask)
    )


def name_of(task):
    return task.task_id


async def test_pins_are_kept_once_and_make_the_regression_suite(pins):
    one, other = pinned_task(failed()), pinned_task(failed())
    assert await pins.add(one)
    assert not await pins.add(one)
    assert await pins.add(other)
    assert sorted(await pins.pinned(), key=name_of) == sorted([one, other], key=name_of)
    (suite,) = await load_suites(["regression"], pins=pins)
    assert suite.kind == "regression"
    assert sorted(suite.task_ids) == sorted([one.task_id, other.task_id])


async def test_an_empty_regression_suite_is_left_out(pins):
    assert await load_suites(["regression"], pins=pins) == ()
    assert await load_suites(["regression"]) == ()


async def test_the_pins_of_an_erased_trajectory_go(pins):
    gone, stays = failed(), failed()
    await pins.add(pinned_task(gone))
    await pins.add(pinned_task(gone, turn_id=1))
    await pins.add(pinned_task(stays))
    assert await pins.forget([str(gone.trajectory_id)]) == 2
    assert [task.task_id for task in await pins.pinned()] == [pinned_task(stays).task_id]


async def test_a_damaged_pin_is_named_and_holds_up_no_other(tmp_path, caplog):
    pins = FilePinStore(tmp_path, ValidationTask)
    await pins.add(pinned_task(failed()))
    (path,) = (tmp_path / "pins").iterdir()
    path.write_text("{")
    assert not list(await pins.pinned())
    assert path.name in caplog.text


async def test_a_task_cannot_name_a_file_elsewhere(pins):
    strange = msgspec.structs.replace(pinned_task(failed()), task_id="../../etc/x")
    with pytest.raises(Misuse, match="cannot be called"):
        await pins.add(strange)
