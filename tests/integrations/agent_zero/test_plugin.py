"""What the plugin's files call: it never raises, never waits, and says once what is wrong."""

import json
import logging
import os
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.integrations.agent_zero.doubles import Agent, Context, Kept, Model
from tests.sdk.loop_double import PlainRedactor
from upswing.errors import Misuse
from upswing.integrations.agent_zero.chat_memory import MOST, ChatMemory
from upswing.integrations.agent_zero.chats import ChatRecorder
from upswing.integrations.agent_zero.connection import (
    FILE,
    FORM,
    PluginConnection,
    read_connection,
    write_connection,
)
from upswing.integrations.agent_zero.feedback import answer_feedback
from upswing.integrations.agent_zero.model_calls import ModelCalls
from upswing.integrations.agent_zero.moments import MOMENTS
from upswing.integrations.agent_zero.plugin import AgentZeroPlugin, plugin_in
from upswing.sdk.recorder import Recorder


@pytest.fixture
def kept():
    return Kept()


@pytest.fixture
def plugin(tmp_path, kept):
    def make(connection, folder):
        return Recorder(transport=lambda: kept, redactor=PlainRedactor, spool=folder / "spool")

    made = AgentZeroPlugin(tmp_path, version="1.7", make_recorder=make)
    yield made
    if made._recorder is not None:
        made._recorder.close()


ODD = st.sampled_from(
    [
        None,
        0,
        "text",
        b"\xff",
        [],
        {},
        object(),
        SimpleNamespace(),
        SimpleNamespace(number=0, context=None),
        SimpleNamespace(number="x", context=SimpleNamespace(id=object(), data=7), data=3),
        {"args": (None, None, ValueError("x"))},
        {"model": SimpleNamespace(kwargs=None)},
        {"model": SimpleNamespace(kwargs={"api_base": "http://127.0.0.1:3000", "metadata": 4})},
    ]
)
NAMES = (
    "data",
    "call_data",
    "response",
    "reasoning",
    "tool_name",
    "tool_args",
    "loop_data",
    "ai",
    "content_data",
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([moment.point for moment in MOMENTS] + ["no_such_point"]),
    ODD,
    st.dictionaries(st.sampled_from(NAMES), ODD),
)
def test_whatever_is_told_nothing_reaches_the_agent(plugin, point, agent, values):
    plugin.tell(FORM, point, agent, values)
    plugin.feedback(FORM, values, agent)
    plugin.notices(FORM, agent)
    plugin.api_key(agent)


def test_an_error_is_counted_and_logged_once_by_its_kind(plugin, caplog):
    with caplog.at_level(logging.WARNING, "upswing.agent_zero"):
        for _ in range(3):
            plugin.tell(FORM, "monologue_start", object(), {})
    assert plugin.status()["errors"] == {"monologue_start: AttributeError": 3}
    assert len(caplog.records) == 1


def test_files_of_another_form_do_nothing_and_say_so_once(plugin, kept, caplog):
    agent = Agent(Context()).hears("Go.")
    with caplog.at_level(logging.WARNING, "upswing.agent_zero"):
        for _ in range(3):
            plugin.tell(FORM + 1, "monologue_start", agent, {})
    (record,) = caplog.records
    assert "upswing agent-zero install" in record.getMessage()
    assert plugin.status()["trouble"]
    assert plugin.feedback(FORM + 1, {}, agent.context)[0] == 409
    assert plugin._recorder is None, "nothing was started"


def test_a_connection_that_others_can_read_stops_it(plugin, tmp_path):
    write_connection(tmp_path, PluginConnection(key="k"))
    (tmp_path / FILE).chmod(0o644)
    agent = Agent(Context()).hears("Go.")
    plugin.tell(FORM, "monologue_start", agent, {})
    plugin.tell(FORM, "monologue_end", agent, {})
    assert "can be read by others" in plugin.trouble
    assert plugin.api_key("upswing") is None


def test_the_gateways_key_is_given_for_its_provider_alone(plugin, tmp_path):
    write_connection(tmp_path, PluginConnection(key="gw-key"))
    assert plugin.api_key("upswing") == plugin.api_key("UPSWING") == "gw-key"
    assert plugin.api_key("openai") is None
    assert plugin.api_key(None) is None


async def test_the_rl_trainers_tool_without_a_key_says_what_to_do(plugin):
    assert "install" in await plugin.operate(FORM, "status", {"reason": "x"})
    assert "do not fit" in await plugin.operate(FORM + 1, "status", {})


def test_there_is_one_plugin_for_a_folder(tmp_path):
    assert plugin_in(tmp_path) is plugin_in(str(tmp_path))


def test_what_it_cost_is_told(plugin):
    agent = Agent(Context()).hears("Go.")
    plugin.tell(FORM, "monologue_start", agent, {})
    plugin.tell(FORM, "chat_model_call_before", agent, {"call_data": {"model": Model()}})
    plugin.tell(FORM, "message_loop_end", agent, {})
    found = plugin.status()
    assert found["turns"] == 1
    assert found["start_ms"] > 0
    assert 0 < found["slowest_ms"] <= found["turn_ms"]
    assert 0 < found["turn_cpu_ms"] <= found["turn_ms"] + 1


# --- the connection -------------------------------------------------------------------------


def test_a_connection_comes_back_as_it_was_written(tmp_path):
    given = PluginConnection(
        loop_url="http://127.0.0.1:8100", key="a", assistant_key="b", user_id="u"
    )
    write_connection(tmp_path, given)
    assert read_connection(tmp_path) == given
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_the_file_is_private_while_it_is_written_too(tmp_path):
    before = os.umask(0)
    try:
        write_connection(tmp_path, PluginConnection(key="a"))
    finally:
        os.umask(before)
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"gateway_url": 7}', '{"gateway_url": "localhost"}', '{"notices_seconds": 0}',
     '{"loop_url": "http://a\\" b"}'],
)  # fmt: skip
def test_a_connection_that_cannot_be_used_is_a_sentence(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    (tmp_path / FILE).chmod(0o600)
    with pytest.raises(Misuse):
        read_connection(tmp_path)


def test_a_connection_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").write_text("{}")
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Misuse):
        read_connection(tmp_path)


# --- feedback -------------------------------------------------------------------------------


@pytest.fixture
def recorder(tmp_path, kept):
    made = Recorder(transport=lambda: kept, redactor=PlainRedactor, spool=tmp_path / "spool")
    yield made
    made.close()


@pytest.fixture
def rated():
    context = Context()
    memory = ChatMemory.of(context)
    memory.answer_shown("m1", "0d4c7a52-7f2e-4c39-9a4e-6f8d2f0b8a11")
    return context


@pytest.mark.parametrize(
    ("said", "kind", "fields"),
    [
        ({"thumbs": "up"}, "thumbs_up", {}),
        ({"thumbs": "down"}, "thumbs_down", {}),
        ({"stars": 4}, "rating", {"rating": 4}),
        ({"comment": " Too long. "}, "comment", {"comment": "Too long."}),
    ],
)
def test_feedback_reaches_the_trajectory_of_its_message(recorder, kept, rated, said, kind, fields):
    asked = {"context": rated.id, "message": "m1", **said}
    status, body = answer_feedback(asked, rated, recorder, "u-7")
    assert status == 200
    assert recorder.flush(60)
    (sent,) = kept.feedback
    assert sent["trajectory_id"] == "0d4c7a52-7f2e-4c39-9a4e-6f8d2f0b8a11"
    assert (sent["type"], sent["user_id"], sent["source"]) == (kind, "u-7", "agent-zero")
    assert {name: sent[name] for name in fields} == fields
    assert (
        body["given"].items()
        >= {next(iter(said)): fields.get("comment", next(iter(said.values())))}.items()
    )


def test_a_later_word_replaces_the_earlier_one_on_the_page(recorder, kept, rated):
    for said in ({"thumbs": "down"}, {"comment": "No."}, {"stars": 5}, {"thumbs": "up"}):
        answer_feedback({"message": "m1", **said}, rated, recorder)
    _, shown = answer_feedback({}, rated, recorder)
    assert shown["messages"]["m1"] == {"thumbs": "up", "stars": None, "comment": "No."}
    assert recorder.flush(60)
    assert [each["type"] for each in kept.feedback] == [
        "thumbs_down",
        "comment",
        "rating",
        "thumbs_up",
    ]
    assert len({each["feedback_id"] for each in kept.feedback}) == 4


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"message": "unknown", "thumbs": "up"}, 404),
        ({"message": 7, "thumbs": "up"}, 404),
        ({"message": "m1"}, 400),
        ({"message": "m1", "thumbs": "sideways"}, 400),
        ({"message": "m1", "stars": 0}, 400),
        ({"message": "m1", "stars": 6}, 400),
        ({"message": "m1", "stars": True}, 400),
        ({"message": "m1", "stars": 4.5}, 400),
        ({"message": "m1", "comment": "  "}, 400),
        ({"message": "m1", "thumbs": "up", "stars": 5}, 400),
    ],
)
def test_feedback_that_says_nothing_is_refused_in_a_sentence(recorder, kept, rated, asked, status):
    code, body = answer_feedback(asked, rated, recorder)
    assert (code, bool(body["error"])) == (status, True)
    assert recorder.flush(60)
    assert kept.feedback == []


def test_feedback_for_an_unknown_chat_is_refused(recorder):
    code, body = answer_feedback(
        {"context": "gone", "message": "m1", "thumbs": "up"}, None, recorder
    )
    assert code == 404
    assert "no such chat" in body["error"]


def test_what_a_chat_keeps_is_json_and_bounded():
    context = Context()
    memory = ChatMemory.of(context)
    for number in range(MOST + 50):
        memory.answer_shown(f"m{number}", f"t{number}")
        memory.note_feedback(f"m{number}", thumbs="up")
    again = ChatMemory.of(SimpleNamespace(id=context.id, data=json.loads(json.dumps(context.data))))
    assert again.trajectory_of(f"m{MOST + 49}") == f"t{MOST + 49}"
    assert again.trajectory_of("m0") is None
    assert len(again.given()) == MOST


@pytest.mark.parametrize(
    "data", [None, 7, {"upswing": 3}, {"upswing": {"episode": "x", "answers": [1]}}]
)
def test_what_somebody_else_wrote_there_does_no_harm(data):
    memory = ChatMemory.of(SimpleNamespace(id="c", data=data))
    assert memory.episode_id == "a0-c-1"
    assert memory.trajectory_of("m") is None
    memory.next_episode()
    memory.answer_shown("m", "t")


# --- what it leaves behind -----------------------------------------------------------------


def test_a_start_that_fails_is_tried_once(tmp_path, caplog):
    made = []

    def broken(connection, folder):
        made.append(folder)
        raise RuntimeError("no more threads")

    plugin = AgentZeroPlugin(tmp_path, make_recorder=broken)
    agent = Agent(Context()).hears("Go.")
    with caplog.at_level(logging.WARNING, "upswing.agent_zero"):
        for _ in range(3):
            plugin.tell(FORM, "monologue_start", agent, {})
            assert plugin.api_key("upswing") is None
            assert plugin.feedback(FORM, {}, agent.context)[0] == 503
    assert len(made) == 1
    assert "no more threads" in plugin.trouble


class Nowhere:
    """A labelled double of a recorder and of its recordings: keeps nothing."""

    id = "t1"

    def trajectory(self, **_):
        return self

    def told(self, *_, **__):
        pass

    turn = metadata = outcome = end = feedback = told


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["ask", "answer", "end"]), max_size=30))
def test_no_call_is_remembered_longer_than_somebody_waits_for_it(steps):
    """Each holds its whole prompt."""
    calls, ids = ModelCalls(), map(str, range(100))
    chats = ChatRecorder(
        Nowhere(), PluginConnection(), calls, seconds=lambda: 0.0, new_id=lambda: next(ids)
    )
    agent = Agent(Context()).hears("Go.")
    for step in [*steps, "end"]:
        match step:
            case "ask":
                chats.monologue_started(agent)
                model = Model()
                chats.model_asked(agent, {"model": model})
                calls.note({"litellm_params": {"metadata": model.kwargs["metadata"]}})
            case "answer":
                chats.model_answered(agent, "words", "")
            case "end":
                chats.chat_killed(agent.context)
        assert len(calls) <= 1
    assert len(calls) == 0


@pytest.mark.parametrize("text", ["x" * 50_000_000, "\x00\ud800" * 5_000_000], ids=["long", "odd"])
def test_a_result_of_any_length_costs_no_trajectory_and_no_time(plugin, kept, text):
    agent = Agent(Context()).hears("Go.")
    plugin.tell(FORM, "monologue_start", agent, {})
    for point, values in (
        ("chat_model_call_before", {"call_data": {}}),
        ("chat_model_call_after", {"response": text}),
        ("tool_execute_before", {"tool_name": "read", "tool_args": {}}),
        ("tool_execute_after", {"tool_name": "read", "response": SimpleNamespace(message=text)}),
        ("monologue_end", {}),
    ):
        plugin.tell(FORM, point, agent, values)
    assert plugin.status()["turn_cpu_ms"] < 5000
    assert plugin.status()["errors"] == {}
    assert plugin.status()["recorder"]["errors"] == 0
