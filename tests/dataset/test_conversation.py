"""What a model is asked again is what it was asked: a gateway's record, back to messages."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gateway.scripted import tool_call
from tests.gateway.test_trajectory import Talk, user

from upswing.contracts import Trajectory, from_builtins
from upswing.dataset.sample import Sample, SampleTurn
from upswing.train.chat.turns import TemplateFeatures, chat_turns
from upswing.validate.core.harvest import harvested_task
from upswing.validate.core.pin import messages_before

WORDS = st.text("abc XYZ'[],{}\"\n", min_size=1, max_size=20).filter(str.strip)
SYSTEM = st.lists(WORDS.map(lambda text: {"role": "system", "content": f"Be {text}"}), max_size=1)
SHOWN = st.lists(
    st.tuples(WORDS.map(user), WORDS.map(lambda text: {"role": "assistant", "content": text})),
    max_size=3,
).map(lambda pairs: [each for pair in pairs for each in pair])
STEP = st.sampled_from(["answer", "call", "two calls", "call and a word"])


@st.composite
def talks(draw):
    """(an episode, the messages of each of its requests)."""
    opening = [*draw(SYSTEM), *draw(SHOWN), user(draw(WORDS))]
    talk, asked = Talk(*opening), []
    for step in [*draw(st.lists(STEP, max_size=4)), "answer"]:
        asked.append(list(talk.messages))
        if step == "answer":
            talk.answers({"content": draw(WORDS)}).then(user(draw(WORDS)))
            continue
        names = ["look", "find"] if step == "two calls" else ["look"]
        calls = [tool_call(name, {"at": n}, f"id{len(asked)}.{n}") for n, name in enumerate(names)]
        talk.answers({"content": None, "tool_calls": calls}, "tool_calls")
        talk.then(
            *({"role": "tool", "tool_call_id": c["id"], "content": draw(WORDS)} for c in calls)
        )
        if step == "call and a word":
            talk.then(user(draw(WORDS)))
    talk.messages.pop()
    return talk, asked


def plain(messages):
    """Without what a record does not keep: the id of a single call, spaces in its arguments."""
    ids, told = {}, []
    for message in messages:
        each = {"role": message["role"], "content": message["content"] or None}
        if calls := message.get("tool_calls"):
            for call in calls:
                ids.setdefault(call["id"], len(ids))
            each["calls"] = [
                (ids[c["id"]], c["function"]["name"], json.loads(c["function"]["arguments"]))
                for c in calls
            ]
        if "tool_call_id" in message:
            each["answers"] = ids[message["tool_call_id"]]
        told.append(each)
    return told


@given(talks())
def test_every_request_of_an_episode_can_be_asked_again(made):
    talk, asked = made
    trajectory = from_builtins(Trajectory, talk.tree())
    assert len(trajectory.turns) == len(asked)
    for at, messages in enumerate(asked):
        assert plain(messages_before(trajectory, at)) == plain(messages)


@given(SYSTEM, SHOWN, WORDS)
def test_training_reads_solved_examples_as_what_they_are(system, shown, question):
    talk = Talk(*system, *shown, user(question)).answers({"content": "so"})
    tree = talk.tree()
    (turn,) = tree["turns"]
    sample = Sample(
        "t",
        "a",
        tree["task_context"]["instructions"],
        [SampleTurn(turn["observation"]["content"], turn["action"], True)],
        1.0,
        1.0,
        "",
        "",
        "m",
    )
    (exchange,) = chat_turns(sample, TemplateFeatures(system=True, tool=True))
    asked = [(m["role"], m["content"]) for m in (*system, *shown, user(question))]
    assert [(role, text.strip()) for role, text in exchange.prompt_messages] == [
        (role, text.strip()) for role, text in asked
    ]


def harvested(talk, **changes):
    tree = talk.tree(**changes)
    tree["metadata"]["ground_truth"] = {"answer": "4"}
    return harvested_task(from_builtins(Trajectory, tree), "t")


def test_a_harvested_task_shows_the_tools_that_were_offered():
    tool = {"type": "function", "function": {"name": "add", "parameters": {"required": ["a"]}}}
    talk = Talk(user("2 + 2"), tools=[tool]).answers({"content": "4"})
    assert harvested(talk).tools == (tool,)


def test_what_cannot_be_asked_again_is_no_task():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 4000}}
    seen = [{"type": "text", "text": "What?"}, picture]
    assert harvested(Talk({"role": "user", "content": seen}).answers({"content": "4"})) is None
    talk = Talk(user("2 + 2")).answers({"content": "4"})
    again = Talk(user("rewritten")).answers({"content": "4"})
    both = [*talk.frame().conversations, *again.frame().conversations]
    assert harvested(talk, conversations=both) is None
    assert harvested(talk) is not None


def test_an_unknown_shape_is_shown_as_json():
    seen = {"messages": [{"role": 3}], "state": [1]}
    (message,) = messages_before(_of(seen), 0)
    assert msgspec.json.decode(message["content"]) == seen


def _of(content):
    tree = Talk(user("x")).answers({"content": "y"}).tree()
    tree["turns"][0]["observation"]["content"] = content
    tree["task_context"]["instructions"] = ""
    return from_builtins(Trajectory, tree)


def test_calls_before_the_first_request_are_spelled_like_the_models_own():
    called = {"role": "assistant", "content": "hm", "tool_calls": [tool_call("look", {"at": 1})]}
    seen = {"messages": [user("a"), called, {"role": "tool", "content": "b"}, user("c")]}
    sample = Sample(
        "t", "a", "", [SampleTurn(seen, {"raw_response": "d"}, True)], 1.0, 1.0, "", "", "m"
    )
    (as_json,) = chat_turns(sample, TemplateFeatures(system=True, tool=True))
    assert as_json.prompt_messages[1] == (
        "assistant",
        'hm\n{"tool_name":"look","tool_args":{"at":1}}',
    )
    assert [role for role, _ in as_json.prompt_messages] == ["user", "assistant", "tool", "user"]
    (spelled,) = chat_turns(
        sample, TemplateFeatures(system=True, tool=False), lambda calls, said: f"{said}<{calls}>"
    )
    assert spelled.prompt_messages[1] == ("assistant", "hm<[('look', {'at': 1})]>")
    assert [role for role, _ in spelled.prompt_messages] == ["user", "assistant", "user", "user"]


def edited(talk):
    talk.messages[1]["content"] = "other words"


def injected(talk):
    talk.messages.insert(2, {"role": "assistant", "content": "by hand"})


@pytest.mark.parametrize("change", [edited, injected])
def test_what_the_agent_rewrote_is_no_task(change):
    """Turns tell what the model said; an agent may tell it that it said something else."""
    talk = Talk(user("2 + 2")).answers({"content": "hm"}).then(user("so?"))
    change(talk)
    assert harvested(talk.answers({"content": "4"})) is None


def test_a_name_that_a_record_does_not_keep_is_no_task():
    assert harvested(Talk(user("2 + 2") | {"name": "ann"}).answers({"content": "4"})) is None


ODD = {
    "an argument that is called calls": {"calls": [{"name": "a"}, {"name": "b"}]},
    "arguments that are no object": [1],
}


@pytest.mark.parametrize("arguments", ODD.values(), ids=ODD)
def test_calls_that_a_record_cannot_tell_are_no_task(arguments):
    call = {"content": None, "tool_calls": [tool_call("look", arguments)]}
    talk = Talk(user("2 + 2")).answers(call, "tool_calls")
    talk.then({"role": "tool", "tool_call_id": "call_1", "content": "4"})
    assert harvested(talk.answers({"content": "4"})) is None


def test_words_beside_a_call_are_not_lost_unnoticed():
    call = {"content": "I look.", "tool_calls": [tool_call("look", {})]}
    talk = Talk(user("2 + 2")).answers(call, "tool_calls")
    talk.then({"role": "tool", "tool_call_id": "call_1", "content": "4"})
    found = harvested(talk.answers({"content": "4"}))
    assert found is None or found.messages[1]["content"] == "I look."
