"""What other trainers read: every conversation is one that they accept, and nothing held out is in it."""

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dataset.data_cases import NOW, grouped, put
from tests.support import trajectory

from upswing.dataset.sample import Sample, SampleTurn
from upswing.infra.sql.store import open_store
from upswing.infra.sql.users import Users
from upswing.train.core.recipe import Recipe
from upswing.train.learn.export import conversation_messages, export_lines

TEXT = st.text(max_size=12)
ACTIONS = st.one_of(
    st.builds(lambda said: {"type": "response", "raw_response": said}, TEXT),
    st.builds(
        lambda said, n: {
            "type": "tool_call",
            "tool_name": "add",
            "tool_args": {"a": n},
            "raw_response": said,
        },
        TEXT,
        st.integers(0, 9),
    ),
    st.just(
        {
            "type": "tool_call",
            "tool_name": "a+b",
            "tool_args": {"calls": [{"name": "a"}, {"name": "b", "args": {"x": 1}}]},
        }
    ),
    st.just({"type": "memory_update"}),
    st.just(None),
)
TURNS = st.builds(
    SampleTurn,
    st.one_of(TEXT, st.dictionaries(TEXT, st.integers(), max_size=2)),
    ACTIONS,
    st.booleans(),
    output=st.one_of(st.none(), TEXT),
    error=st.one_of(st.none(), TEXT),
    context_only=st.booleans(),
    observation_type=st.sampled_from(
        ["user_message", "tool_result", "subordinate_response", "system_message"]
    ),
)


def sample(turns, number=0, **changes):
    fields = {
        "trajectory_id": f"t{number}",
        "agent_id": "a",
        "instructions": "Be brief.",
        "turns": turns,
        "reward": 1.0,
        "raw_total": 1.0,
        "window_id": "w",
        "scenario_id": "s",
        "model": "m",
        "task_id": "task",
        "group": "g",
    }
    return Sample(**fields | changes)


def check(talk):
    """As OpenAI and TRL want it: ends with the model, and every call has its answer."""
    assert talk[-1]["role"] == "assistant"
    waiting = []
    for message in talk:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
        else:
            assert not waiting, "a call without an answer"
        assert isinstance(message["content"], str)
        for call in message.get("tool_calls", ()):
            json.loads(call["function"]["arguments"])
            waiting.append(call["id"])


@settings(max_examples=150, deadline=None)
@given(st.lists(TURNS, min_size=1, max_size=5))
def test_every_trajectory_becomes_a_conversation_that_trainers_take(turns):
    talk = conversation_messages(sample(turns))
    if talk:
        check(talk)
    for layout in ("sft", "openai", "hf"):
        for line in export_lines([sample(turns)], layout, Recipe(algorithm="sft")):
            check([*line.get("messages", ()), *line.get("prompt", ()), *line.get("completion", ())])
            assert layout == "openai" or "weight" not in str(line)
    held = sample(turns, held_out=True)
    assert not any(
        [*export_lines([held], layout, Recipe(algorithm="dpo"))] for layout in ("sft", "dpo")
    )


def test_a_call_is_spelled_once_and_answered_by_the_tool():
    call = {
        "type": "tool_call",
        "tool_name": "add",
        "tool_args": {"a": 1},
        "raw_response": 'Let me see. <tool_call>{"name": "add"}</tool_call>',
    }
    turns = [
        SampleTurn("What is 1 + 1?", call, True),
        SampleTurn(
            "2", {"type": "response", "raw_response": "Two."}, True, observation_type="tool_result"
        ),
    ]
    assert conversation_messages(sample(turns)) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is 1 + 1?"},
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [
                {
                    "id": "call_0",
                    "type": "function",
                    "function": {"name": "add", "arguments": '{"a":1}'},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "call_0", "content": "2"},
        {"role": "assistant", "content": "Two."},
    ]


def test_a_preference_is_between_two_that_began_alike():
    def said(words, number, reward, **changes):
        turn = SampleTurn("How?", {"type": "response", "raw_response": words}, True)
        return sample([turn], number, reward=reward, **changes)

    made = [said("So.", 1, 1.0), said("No.", 2, 0.0), said("Odd.", 3, 0.0, instructions="Else.")]
    (line,) = export_lines(made, "dpo", Recipe(algorithm="dpo"))
    assert line["prompt"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "How?"},
    ]
    assert (line["chosen"][0]["content"], line["rejected"][0]["content"]) == ("So.", "No.")


def by(agent):
    """The example's turns, in this agent's words."""
    turn = trajectory()["turns"][0]
    return [turn | {"action": {"type": "response", "raw_response": f"As {agent} says."}}]


@pytest.mark.long
@pytest.mark.live
async def test_the_command_writes_each_layout_of_what_may_be_learned_from(tmp_path):
    store = open_store(tmp_path)
    await store.prepare()
    for place in range(12):
        for agent, total in (("a", 0.9), ("b", 0.1), ("c", 0.5)):
            outcome = {"status": "completed"} if total > 0.4 else {"status": "failed"}
            await put(
                store,
                grouped(place, agent, turns=by(agent), metadata={"outcome": outcome}),
                total=total,
                judge=total,
            )
    await Users(store.database).opt_out("user-c", NOW)
    store.close()
    keys = {
        "sft": {"messages"},
        "openai": {"messages"},
        "dpo": {"prompt", "chosen", "rejected"},
        "hf": {"id", "prompt", "completion", "reward", "label", "task", "domain", "model", "tools"},
    }
    for layout, names in keys.items():
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "upswing.cli",
                "export",
                "--data",
                str(tmp_path),
                "--layout",
                layout,
            ],
            capture_output=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        assert rows, (layout, done.stderr)
        assert all(row.keys() - {"tools"} == names - {"tools"} for row in rows)
        assert "held out" in done.stderr.decode()
        assert "opted_out" in done.stderr.decode()
    refused = subprocess.run(
        [
            sys.executable,
            "-m",
            "upswing.cli",
            "export",
            "--data",
            str(tmp_path),
            "--layout",
            "sft",
            "--after",
            "1",
        ],
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert refused.returncode != 0
    assert b"--after is for" in refused.stderr


def test_solved_examples_are_read_and_not_learned():
    shown = [
        {"role": "user", "content": "1 + 1"},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "2 + 2"},
    ]
    made = sample([SampleTurn({"messages": shown}, {"raw_response": "4"}, True)])
    (told,) = export_lines([made], "openai", Recipe())
    assert [each.get("weight", 1) for each in told["messages"]] == [1, 1, 0, 1, 1]
    (plain,) = export_lines([made], "sft", Recipe())
    assert [each["content"] for each in plain["messages"]] == [
        "Be brief.",
        "1 + 1",
        "2",
        "2 + 2",
        "4",
    ]
    (flat,) = export_lines([made], "hf", Recipe())
    assert flat["prompt"] == plain["messages"][:-1]
    assert flat["completion"] == [{"role": "assistant", "content": "4"}]
