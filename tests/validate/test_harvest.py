"""Tasks from production: which trajectories are some, and what of them reaches whom."""

import json
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import trajectory
from upswing.contracts import Trajectory, from_builtins
from upswing.contracts.validation import RecordedTask, TaskAnswer
from upswing.validate.core.default_suites import default_suites, frequent_worlds
from upswing.validate.core.harvest import ground_truth_check, harvest_tasks
from upswing.validate.core.moves import AskModel
from upswing.validate.core.sampling import Sampling, observed_sampling
from upswing.validate.core.suite import to_playable
from upswing.validate.suite_loader import load_suites


def everything(_):
    return True


def made(task_id="task-1", truth="Paris", **metadata):
    tree = trajectory()
    tree["turns"] = tree["turns"][:1]
    tree["turns"][0]["action"] = {"type": "response", "raw_response": "It is Rome."}
    tree["task_context"] |= {"task_id": task_id, "instructions": "Answer shortly."}
    tree["turns"][0]["observation"] |= {"content": f"What is {task_id}?"}
    tree["metadata"] |= {"ground_truth": truth} | metadata
    return task_id, from_builtins(Trajectory, tree)


TRUTHS = [
    ("Paris", "Paris", "Rome"),
    (9.5, "That is 9.5", "8"),
    (0, "ANSWER: 0", "1"),
    ({"answer": "Paris"}, "Paris", "Rome"),
    ({"answer": ["Paris", "City of Light"]}, "City of Light", "Rome"),
    ({"kind": "exact", "any_of": ["Paris"]}, "Paris", "Rome"),
    ({"kind": "number", "value": 10, "tolerance": 1}, "10.5", "12"),
    ({"kind": "contains", "text": "Paris"}, "It is Paris, of course.", "Rome"),
]


@pytest.mark.parametrize(("truth", "right", "wrong"), TRUTHS)
def test_what_is_right_is_known_to_the_check_alone(truth, right, wrong):
    (task,) = harvest_tasks([made(truth=truth)], everything)
    one = to_playable(task)
    asked = one.next_move([])
    assert isinstance(asked, AskModel)
    assert asked.messages[0] == {"role": "system", "content": "Answer shortly."}
    assert json.dumps(truth) not in json.dumps(list(asked.messages))
    assert one.next_move([TaskAnswer(right)]).score == 1
    assert one.next_move([TaskAnswer(wrong)]).score == 0


NO_TRUTHS = [
    None,
    "",
    "  ",
    True,
    [],
    [""],
    ["a", 5],
    {},
    {"told": "up"},
    {"answer": None},
    math.inf,
    math.nan,
    {"kind": "code", "cases": [{"give": "1", "expect": 1}]},
    {"kind": "regex", "pattern": "(a+)+$"},
    {"kind": "exact"},
    {"kind": "exact", "any_of": []},
    {"kind": 5},
    {"kind": "contains"},
    {"kind": "contains", "text": 5},
    {"kind": "pinned"},
    {"kind": "number", "value": "ten"},
    "the mail is <email-1>",
    {"kind": "contains", "text": "<phone-number-2>"},
    "x" * 3000,
]


@pytest.mark.parametrize("truth", NO_TRUTHS, ids=lambda truth: repr(truth)[:40])
def test_what_nobody_can_check_is_no_task(truth):
    assert ground_truth_check({"ground_truth": truth}) is None


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["kind", "answer", "any_of", "value", "text", "contains", "told"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(json_like, json_like)
def test_whatever_the_metadata_says_nothing_breaks(check, truth):
    found = ground_truth_check({"check": check, "ground_truth": truth})
    assert found is None or msgspec.json.encode(found)


def test_only_held_out_tasks_are_taken_and_each_once_in_its_newest_form():
    rows = [made("a", "new"), made("b"), made("a", "old"), made("c"), made("", "x")]
    found = harvest_tasks(rows, lambda task: task != "c")
    assert len(found) == 2
    assert to_playable(found[0]).next_move([TaskAnswer("new")]).score == 1


def test_a_trajectory_that_ended_with_a_tool_call_is_no_task():
    tree = msgspec.to_builtins(made()[1])
    tree["turns"][0]["action"] = {"type": "tool_call", "tool_name": "search", "tool_args": {}}
    assert harvest_tasks([("t", from_builtins(Trajectory, tree))], everything) == ()


def test_what_lies_in_a_window_is_no_task():
    assert harvest_tasks([made()], everything)
    assert harvest_tasks([made(window_id="2026-01-05T12:00")], everything) == ()


async def test_the_suite_says_nothing_that_would_quote_a_user():
    tasks = harvest_tasks([made(truth="Jane lives in Paris")], everything)
    (suite,) = await load_suites(["production"], production=tasks)
    assert suite.own
    done = suite.tasks[0].next_move([TaskAnswer("Jane lives in Rome")])
    assert (done.score, done.sentence) == (0, "It is not right.")


# ── how the agents use the model, and which suites follow ────────────────────────────────────────


def test_the_sampling_of_most_trajectories_of_the_model_counts():
    newest = [RecordedTask("v2", "t", 0.7, 0.9, 8)] * 3 + [RecordedTask("v2", "t", 0.2)] * 2
    newest += [RecordedTask("v1", "t", 0.0)] * 20
    assert observed_sampling(newest, "v2") == Sampling(0.7, 0.9, 8)
    assert observed_sampling(newest, "v3") == Sampling(0.0)
    assert observed_sampling([RecordedTask("v2", "t")] * 3, "v2") == Sampling(1.0)


def test_what_is_older_than_the_newest_does_not_count():
    newest = [RecordedTask("v2", "t", 0.7)] * 500 + [RecordedTask("v2", "t", 0.0)] * 1000
    assert observed_sampling(newest, "v2") == Sampling(0.7)


def test_own_tasks_come_first_and_no_world_that_the_agents_never_see():
    assert default_suites(["world:mine", "mine"])[:3] == ("world:mine", "mine", "code_generation")
    for own in ([], ["world:desk"]):
        assert "world:triage" not in default_suites(own), "a world that the agents never see"
        assert {"safety", "regression", "tool_usage"} <= set(default_suites(own))


def test_a_world_counts_as_the_agents_when_they_act_in_it():
    assert frequent_worlds([]) == []
    assert frequent_worlds(["desk"] * 50 + ["market"] * 50) == ["desk", "market"]
    assert frequent_worlds(["desk"] + [None] * 99) == []
