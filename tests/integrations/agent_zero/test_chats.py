"""What is recorded of Agent Zero's work, moment by moment. Its objects are doubles here."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.integrations.agent_zero.doubles import Agent, Context, Model, Play, Unknown


@pytest.fixture
def play(tmp_path):
    made = Play(tmp_path)
    yield made
    made.recorder.close()


def shapes(trajectory):
    """Type of observation, type of action, tool, success; turn by turn."""
    return [
        (
            turn["observation"]["type"],
            turn["action"]["type"],
            turn["action"].get("tool_name"),
            turn["result"]["success"],
        )
        for turn in trajectory["turns"]
    ]


def test_a_request_with_a_tool_becomes_a_trajectory_of_its_turns(play):
    agent = Agent(Context())
    play.begin(agent, "What time is it?", attachments=["/a0/tmp/clock.png"])
    play.turn(agent, "search_engine", {"query": "time"}, "It is noon.")
    play.answer(agent, "Noon.")
    (made,) = play.recorded()
    assert shapes(made) == [
        ("user_message", "tool_call", "search_engine", True),
        ("tool_result", "response", None, True),
    ]
    first, second = made["turns"]
    assert first["observation"]["content"] == {
        "messages": [
            {"role": "system", "content": "You are Agent Zero."},
            {"role": "user", "content": "What time is it?"},
        ],
        "attachments": ["clock.png"],
    }
    assert first["thought_process"] == ["I use search_engine."]
    assert first["action"]["tool_args"] == {"query": "time"}
    assert json.loads(first["action"]["raw_response"])["tool_name"] == "search_engine"
    assert second["observation"]["content"] == first["result"]["output"] == "It is noon."
    assert second["result"]["output"] == "Noon."
    assert made["task_context"]["instructions"] == "What time is it?"
    assert made["session_id"] == agent.context.id
    assert made["agent_id"] == "agent-zero"
    assert "outcome" not in made["metadata"], "an agent's own answer is no proof of its work"
    about = made["metadata"]
    assert about["model"] == about["policy_version"] == "agent-zero-rl-v7"
    assert about["episode_id"] == f"a0-{agent.context.id}-1"
    assert about["agent_zero"]["inference_ids"] == ["inf-call-1", "inf-call-2"]


def test_a_subordinate_knows_its_superiors_turn_and_is_known_there(play):
    chat = Context()
    boss = Agent(chat)
    worker = Agent(chat, 1, "researcher", boss)

    def delegate():
        play.begin(worker, "Find it.")
        play.answer(worker, "Found.")

    play.begin(boss, "Find it for me.")
    play.turn(boss, "search_engine", {"query": "it"}, "Nothing.")
    play.turn(boss, "call_subordinate", {"message": "Find it."}, "Found.", between=delegate)
    play.answer(boss, "Here it is.")
    below, above = play.recorded()
    assert below["subordinate_profile"] == "researcher"
    assert below["agent_id"] == "agent-zero-a1"
    assert below["metadata"]["agent_zero"]["superior"] == {
        "trajectory_id": above["trajectory_id"],
        "turn_id": 2,
    }
    assert above["metadata"]["agent_zero"]["subordinates"] == [
        {"turn_id": 2, "trajectory_id": below["trajectory_id"], "profile": "researcher"}
    ]
    assert "subordinate_profile" not in above
    assert shapes(above) == [
        ("user_message", "tool_call", "search_engine", True),
        ("tool_result", "subordinate_call", "call_subordinate", True),
        ("subordinate_response", "response", None, True),
    ]
    assert below["session_id"] == above["session_id"]
    assert below["metadata"]["episode_id"] == above["metadata"]["episode_id"]


@pytest.mark.parametrize(
    ("tool", "kind"),
    [
        ("memory_save", "memory_update"),
        ("memory_delete", "memory_update"),
        ("memory_forget", "memory_update"),
        ("behaviour_adjustment", "memory_update"),
        ("memory_load", "tool_call"),
        ("code_execution_tool", "tool_call"),
        ("text_editor:write", "tool_call"),
    ],
)
def test_what_a_tool_does_names_the_action(play, tool, kind):
    agent = Agent(Context())
    play.begin(agent, "Go.")
    play.turn(agent, tool, {"text": "x"}, "Done.")
    play.answer(agent, "Done.")
    (made,) = play.recorded()
    assert made["turns"][0]["action"]["type"] == kind
    assert made["turns"][0]["action"]["tool_name"] == tool


def test_the_reasoning_of_a_model_comes_before_its_thoughts(play):
    agent = Agent(Context())
    play.begin(agent, "Go.")
    play.ask(agent)
    play.reply(agent, '{"thoughts": ["B", "C"], "tool_name": "response"}', reasoning="A")
    play.use(agent, "response", {"text": "x"}, "x")
    play.tell("monologue_end", agent)
    (made,) = play.recorded()
    assert made["turns"][0]["thought_process"] == ["A", "B", "C"]


def test_a_word_in_between_is_a_turn_of_the_user(play):
    agent = Agent(Context())
    play.begin(agent, "Count the files.")
    play.ask(agent)  # cut off while the model speaks: nobody tells of its answer
    agent.hears("No, the folders!", between=True)
    play.tell("message_loop_end", agent)
    play.turn(agent, "code_execution_tool", {"code": "ls"}, "3")
    play.answer(agent, "3 folders.")
    (made,) = play.recorded()
    assert shapes(made)[0] == ("user_message", "tool_call", "code_execution_tool", True)
    assert (
        made["turns"][0]["observation"]["content"]["messages"][-1]["content"] == "No, the folders!"
    )
    assert made["metadata"]["agent_zero"]["interventions"] == 1
    assert made["task_context"]["instructions"] == "Count the files."


def test_a_word_while_a_tool_runs_ends_that_turn(play):
    agent = Agent(Context())
    play.begin(agent, "Count.")
    play.reply(agent, "raw", sent=play.ask(agent))
    play.tell("tool_execute_before", agent, tool_name="wait", tool_args={"seconds": 9})
    agent.hears("Stop waiting.", between=True)
    play.tell("message_loop_end", agent)  # Agent Zero raised in between: no end of the tool is told
    play.answer(agent, "Stopped.")
    (made,) = play.recorded()
    assert shapes(made) == [
        ("user_message", "tool_call", "wait", False),
        ("user_message", "response", None, True),
    ]
    assert "spoke in between" in made["turns"][0]["result"]["error"]


def test_a_word_before_the_first_turn_starts_the_monologue_over(play):
    agent = Agent(Context())
    play.begin(agent, "Count.")
    agent.hears("Count apples.", between=True)
    play.tell("monologue_end", agent)
    play.tell("monologue_start", agent, loop_data=agent.loop_data)
    play.answer(agent, "5")
    (made,) = play.recorded()
    assert made["turns"][0]["observation"]["content"]["messages"][-1]["content"] == "Count apples."
    assert len(made["turns"]) == 1


def test_an_answer_that_is_no_tool_request_is_a_failed_turn(play):
    agent = Agent(Context())
    play.begin(agent, "Go.")
    play.reply(agent, "I would rather chat.", sent=play.ask(agent))
    play.tell("message_loop_end", agent)
    play.answer(agent, "Done.")
    (made,) = play.recorded()
    assert shapes(made) == [
        ("user_message", "response", None, False),
        ("system_message", "response", None, True),
    ]
    assert made["turns"][0]["action"]["raw_response"] == "I would rather chat."


def test_a_tool_that_does_not_exist_fails(play):
    agent = Agent(Context())
    play.begin(agent, "Go.")
    play.turn(agent, "fly", {"to": "moon"}, "Tool fly not found.", kind=Unknown)
    play.answer(agent, "I cannot.")
    (made,) = play.recorded()
    assert shapes(made)[0] == ("user_message", "tool_call", "fly", False)


@pytest.mark.parametrize("output", ["Error: no such file", "Traceback (most recent call last):\n…"])
def test_a_tool_that_answers_with_an_error_fails(play, output):
    agent = Agent(Context())
    play.begin(agent, "Go.")
    play.turn(agent, "code_execution_tool", {"code": "x"}, output)
    play.answer(agent, "It failed.")
    (made,) = play.recorded()
    assert made["turns"][0]["result"]["success"] is False
    assert made["turns"][0]["result"]["error"] == output


def test_a_tool_that_raises_fails_and_the_agent_goes_on(play):
    agent = Agent(Context())
    play.begin(agent, "Go.")
    play.reply(agent, "raw", sent=play.ask(agent))
    play.tell("tool_execute_before", agent, tool_name="scheduler", tool_args={"a": 1})
    error = ValueError("bad plan")
    play.tell(
        "_functions/agent/Agent/handle_exception/start",
        agent,
        data={"args": (agent, "message_loop", error)},
    )
    play.tell("message_loop_end", agent)
    play.answer(agent, "Another way.")
    (made,) = play.recorded()
    assert made["turns"][0]["result"]["error"] == "ValueError: bad plan"
    assert "infra_error" not in made["metadata"]


def test_a_models_server_that_fails_is_nobodys_fault(play):
    agent = Agent(Context())
    play.begin(agent, "Go.")
    play.turn(agent, "wait", {"seconds": 1}, "Waited.")
    play.ask(agent)
    error = ConnectionError("refused")
    play.tell(
        "_functions/agent/Agent/handle_exception/start", agent, data={"args": (agent, "x", error)}
    )
    play.tell("message_loop_end", agent)
    play.tell("monologue_end", agent)
    (made,) = play.recorded()
    assert made["metadata"]["infra_error"] is True
    assert len(made["turns"]) == 1


def test_a_failed_call_that_was_tried_again_is_forgotten(play):
    agent = Agent(Context())
    play.begin(agent, "Go.")
    play.ask(agent)
    error = ConnectionError("refused")
    play.tell(
        "_functions/agent/Agent/handle_exception/start", agent, data={"args": (agent, "x", error)}
    )
    play.tell("message_loop_end", agent)
    play.answer(agent, "Done.")
    (made,) = play.recorded()
    assert "infra_error" not in made["metadata"]
    assert len(made["turns"]) == 1


ENDS = {
    "reset": ("_functions/agent/AgentContext/reset/start", lambda c: {"args": (c,)}),
    "kill": ("_functions/agent/AgentContext/kill_process/start", lambda c: {"args": (c,)}),
    "remove": ("_functions/agent/AgentContext/remove/start", lambda c: {"args": (c.id,)}),
    "remove by name": (
        "_functions/agent/AgentContext/remove/start",
        lambda c: {"kwargs": {"id": c.id}},
    ),
}


@pytest.mark.parametrize("how", ENDS)
def test_a_chat_that_is_ended_half_way_is_abandoned_innermost_first(play, how):
    chat, other = Context(), Agent(Context())
    boss = Agent(chat)
    worker = Agent(chat, 1, "developer", boss)
    play.begin(other, "Something else.")
    play.begin(boss, "Write it.")
    play.reply(boss, "raw", sent=play.ask(boss))
    play.tell("tool_execute_before", boss, tool_name="call_subordinate", tool_args={"message": "x"})
    play.begin(worker, "Write it.")
    play.turn(worker, "wait", {"seconds": 1}, "Waited.")
    play.ask(worker)
    point, data = ENDS[how]
    play.tell(point, None, data=data(chat))
    for late in (boss, worker):  # Agent Zero's thread may still be running
        play.tell("message_loop_end", late)
        play.tell("monologue_end", late)
    below, above = play.recorded()
    assert (below["agent_id"], above["agent_id"]) == ("agent-zero-a1", "agent-zero")
    for made in (below, above):
        assert made["metadata"]["outcome"]["status"] == "abandoned"
        assert made["metadata"].get("reset", False) is (how == "reset")
    assert shapes(above) == [("user_message", "subordinate_call", "call_subordinate", False)]
    play.answer(other, "Untouched.")
    assert len(play.recorded()) == 3


def test_an_end_before_the_first_answer_is_recorded_with_what_was_asked(play):
    agent = Agent(Context())
    play.begin(agent, "Go.")
    play.ask(agent)
    play.tell("_functions/agent/AgentContext/reset/start", None, data={"args": (agent.context,)})
    (made,) = play.recorded()
    assert shapes(made) == [("user_message", "response", None, False)]
    assert "raw_response" not in made["turns"][0]["action"]


def test_an_end_before_anything_was_asked_is_nothing(play):
    agent = Agent(Context())
    play.begin(agent, "Go.")
    play.tell("_functions/agent/AgentContext/reset/start", None, data={"args": (agent.context,)})
    assert play.recorded() == []
    assert play.recorder.stats.errors == 0


def test_after_a_reset_another_episode_begins(play):
    chat = Context()
    first = Agent(chat)
    play.begin(first, "One.")
    play.answer(first, "1")
    play.tell("_functions/agent/AgentContext/reset/start", None, data={"args": (chat,)})
    play.tell("_functions/agent/AgentContext/kill_process/start", None, data={"args": (chat,)})
    second = Agent(chat)
    play.tell("agent_init", second)
    play.begin(second, "Two.")
    play.answer(second, "2")
    one, two = play.recorded()
    assert "outcome" not in one["metadata"], "it was over before the reset"
    assert [each["metadata"]["episode_id"][-2:] for each in (one, two)] == ["-1", "-2"]


def test_a_new_first_agent_says_that_the_chat_was_reset(play):
    """An Agent Zero without hooks on functions tells it in no other way."""
    chat = Context()
    agent = Agent(chat)
    play.begin(agent, "Go.")
    play.turn(agent, "wait", {"seconds": 1}, "Waited.")
    play.tell("agent_init", Agent(chat, 1))  # a subordinate is none
    play.tell("agent_init", Agent(chat))
    (made,) = play.recorded()
    assert made["metadata"]["outcome"]["status"] == "abandoned"


def test_a_chat_that_vanished_is_noticed_at_the_next_request(play):
    gone = Agent(Context())
    play.begin(gone, "Go.")
    play.turn(gone, "wait", {"seconds": 1}, "Waited.")
    Context.remove(gone.context.id)
    agent = Agent(Context())
    play.begin(agent, "Another.")
    play.answer(agent, "Done.")
    lost, made = play.recorded()
    assert lost["metadata"]["outcome"]["status"] == "abandoned"
    assert "outcome" not in made["metadata"]


def test_a_nudge_goes_on_with_the_same_work(play):
    agent = Agent(Context())
    play.begin(agent, "Go.")
    play.turn(agent, "wait", {"seconds": 1}, "Waited.")
    data = {"args": (agent.context,)}
    play.tell("_functions/agent/AgentContext/nudge/start", None, data=data)
    play.tell("_functions/agent/AgentContext/kill_process/start", None, data=data)
    play.begin(agent, "Please continue.")
    play.answer(agent, "Done.")
    (made,) = play.recorded()
    assert made["metadata"]["agent_zero"]["nudges"] == 1
    assert shapes(made)[-1] == ("user_message", "response", None, True)
    assert made["turns"][-1]["observation"]["content"] == "Please continue."


def test_when_the_process_ends_what_is_open_is_nobodys_fault(play):
    agent = Agent(Context())
    play.begin(agent, "Go.")
    play.turn(agent, "wait", {"seconds": 1}, "Waited.")
    play.chats.close()
    (made,) = play.recorded()
    assert made["metadata"]["infra_error"] is True
    assert "outcome" not in made["metadata"]


# --- what the gateway is told ---------------------------------------------------------------


def test_an_agents_call_names_its_episode_and_is_not_recorded_twice(play):
    agent = Agent(Context())
    play.begin(agent, "Go.")
    sent = play.ask(agent, Model(extra_headers={"x-mine": "1"}, metadata={"trace": "t"}))
    assert sent["extra_headers"] == {
        "x-mine": "1",
        "x-record": "off",
        "x-episode-id": f"a0-{agent.context.id}-1",
        "x-agent-id": "agent-zero",
    }
    assert sent["metadata"] == {"trace": "t", "upswing_call": "call-1"}


def test_a_utility_call_and_a_tools_own_call_are_no_turns(play):
    agent = Agent(Context())
    play.begin(agent, "Go.")
    data = {"model": Model()}
    play.tell("util_model_call_before", agent, call_data=data)
    assert data["model"].kwargs["extra_headers"] == {"x-record": "off"}

    def ask_inside():
        sent = play.ask(agent)
        assert sent["extra_headers"] == {"x-record": "off"}
        play.reply(agent, "An excerpt of the document.")

    play.turn(agent, "document_query", {"document": "x"}, "It says so.", between=ask_inside)
    play.answer(agent, "So.")
    (made,) = play.recorded()
    assert len(made["turns"]) == 2


@pytest.mark.parametrize(
    "base", ["https://api.openai.com/v1", None, "http://[bad", "http://127.0.0.1:3001/v1"]
)
def test_models_elsewhere_get_no_header_of_ours(play, base):
    agent = Agent(Context())
    play.begin(agent, "Go.")
    model = Model(api_base=base)
    before = dict(model.kwargs)
    assert play.ask(agent, model) == before
    play.reply(agent, "raw")
    play.use(agent, "response", {"text": "x"}, "x")
    play.tell("monologue_end", agent)
    (made,) = play.recorded()
    assert made["metadata"]["model"] == "openai/upswing", (
        "the name of the model, where no gateway names one"
    )
    assert "policy_version" not in made["metadata"]


def test_two_models_in_one_answer_are_no_evidence(play):
    agent = Agent(Context())
    play.begin(agent, "Go.")
    for model, tool in (("v1", "wait"), ("v2", "response")):
        play.reply(agent, "raw", model=model, sent=play.ask(agent))
        play.use(agent, tool, {"text": "x"}, "x")
    play.tell("monologue_end", agent)
    (made,) = play.recorded()
    assert made["metadata"]["mixed_models"] == ["v1", "v2"]
    assert made["metadata"]["infra_error"] is True


def test_without_the_system_prompt_only_the_request_is_stored(tmp_path):
    play = Play(tmp_path, system_prompt=False, user_id="u-7")
    agent = Agent(Context())
    play.begin(agent, "Go.")
    play.answer(agent, "Done.")
    (made,) = play.recorded()
    assert made["turns"][0]["observation"]["content"] == "Go."
    assert made["metadata"]["user_id"] == "u-7"
    play.recorder.close()


def test_a_second_request_brings_the_chat_before_it_as_context(play):
    agent = Agent(Context())
    play.begin(agent, "Name a colour.")
    play.answer(agent, "Red.")
    agent.hears("Another.")
    agent.loop_data.history_output = [
        {"ai": True, "content": "Hello!"},
        {"ai": False, "content": {"user_message": "Name a colour."}},
        {"ai": True, "content": "Red."},
        {"ai": False, "content": {"user_message": "Another."}},
    ]
    play.tell("monologue_start", agent)
    play.answer(agent, "Blue.")
    _, made = play.recorded()
    said = made["turns"][0]["observation"]["content"]["messages"]
    assert [each["role"] for each in said] == ["system", "assistant", "user", "assistant", "user"]
    assert said[-1]["content"] == "Another."
    assert made["task_context"]["instructions"] == "Another."


def test_what_the_user_writes_next_is_told_as_a_follow_up_once(play):
    agent = Agent(Context())
    play.begin(agent, "Name a colour.")
    play.answer(agent, "Red.")
    play.begin(agent, "No, that is wrong.")
    play.turn(agent, "wait", {"seconds": 1}, "Waited.")
    play.answer(agent, "Blue.")
    first, _ = play.recorded()
    (said,) = play.kept.feedback
    assert said["trajectory_id"] == first["trajectory_id"]
    assert (said["type"], said["comment"]) == ("comment", "No, that is wrong.")
    assert said["metadata"] == {"follow_up": True}


def test_after_a_reset_or_a_failure_nothing_follows_up(play):
    chat = Context()
    agent = Agent(chat)
    play.begin(agent, "One.")
    play.answer(agent, "1")
    play.tell("_functions/agent/AgentContext/reset/start", None, data={"args": (chat,)})
    agent = Agent(chat)
    play.begin(agent, "Two.")
    play.turn(agent, "wait", {"seconds": 1}, "Waited.")
    play.tell("monologue_end", agent)
    play.begin(agent, "Three.")
    play.answer(agent, "3")
    assert len(play.recorded()) == 3
    assert play.kept.feedback == []


def test_a_subordinates_message_is_no_follow_up(play):
    chat = Context()
    boss = Agent(chat)
    play.begin(boss, "One.")
    play.answer(boss, "1")
    play.begin(boss, "Thanks! Now two.")
    worker = Agent(chat, 1, "developer", boss)
    play.turn(
        boss,
        "call_subordinate",
        {"message": "x"},
        "2",
        between=lambda: (play.begin(worker, "x"), play.answer(worker, "2")),
    )
    play.answer(boss, "2")
    play.recorded()
    assert [each["comment"] for each in play.kept.feedback] == ["Thanks! Now two."]


def test_secrets_do_not_leave_the_process(play):
    agent = Agent(Context())
    play.begin(agent, "My key is sk-abcdef123.")
    play.answer(agent, "I keep sk-abcdef123 to myself.")
    assert "sk-abcdef123" not in json.dumps(play.recorded())


# --- an Agent Zero without plugins ----------------------------------------------------------


def test_an_older_one_tells_of_a_model_by_its_settings_and_of_an_answer_by_its_history(play):
    agent = Agent(Context())
    config = Model()
    config.name, config.api_base, config.kwargs = "upswing", "http://localhost:3000/v1", {}
    agent.config.chat_model = config
    play.begin(agent, "Go.")
    for tool, output in (("wait", "Waited."), ("response", "Done.")):
        play.tell("before_main_llm_call", agent)
        sent = agent.config.chat_model.kwargs
        assert sent["extra_headers"]["x-episode-id"] == f"a0-{agent.context.id}-1"
        note = {
            "litellm_params": {"metadata": sent["metadata"]},
            "response_headers": {"x-model-id": "v7"},
        }
        play.calls.note(note)
        raw = json.dumps({"thoughts": [tool], "tool_name": tool, "tool_args": {"text": output}})
        play.tell("hist_add_before", agent, ai=True, content_data={"content": raw})
        play.tell(
            "hist_add_before", agent, ai=False, content_data={"content": "a user's or a tool's"}
        )
        play.use(agent, tool, {"text": output}, output)
    play.tell("monologue_end", agent)
    (made,) = play.recorded()
    assert shapes(made) == [
        ("user_message", "tool_call", "wait", True),
        ("tool_result", "response", None, True),
    ]
    assert [turn["thought_process"] for turn in made["turns"]] == [["wait"], ["response"]]
    assert made["metadata"]["model"] == "v7"


def test_an_older_ones_greeting_is_nobodys_answer(play):
    agent = Agent(Context())
    play.tell("agent_init", agent)
    play.tell("hist_add_before", agent, ai=True, content_data={"content": "Hello!"})
    assert play.recorded() == []


# --- whatever comes, in whatever order ------------------------------------------------------


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.permutations([0] * 4 + [1] * 4 + [2] * 4))
def test_chats_do_not_mix_however_their_moments_interleave(tmp_path_factory, order):
    play = Play(tmp_path_factory.mktemp("mixed"))
    agents = [Agent(Context()) for _ in range(3)]

    def steps(number):
        agent = agents[number]
        yield lambda: play.begin(agent, f"Request {number}")
        yield lambda: play.turn(agent, f"tool{number}", {"n": number}, f"Result {number}")
        yield lambda: play.turn(agent, f"tool{number}", {"n": number}, f"Again {number}")
        yield lambda: play.answer(agent, f"Answer {number}")

    ahead = [steps(number) for number in range(3)]
    for number in order:
        next(ahead[number])()
    found = {each["session_id"]: each for each in play.recorded()}
    for number, agent in enumerate(agents):
        made = found[agent.context.id]
        assert made["task_context"]["instructions"] == f"Request {number}"
        assert [turn["result"]["output"] for turn in made["turns"]] == [
            f"Result {number}",
            f"Again {number}",
            f"Answer {number}",
        ]
    play.recorder.close()


def test_two_hundred_requests_leave_nothing_behind(play):
    for number in range(200):
        agent = Agent(Context())
        play.begin(agent, f"Request {number}")
        play.answer(agent, "Done.")
    assert len(play.recorded()) == 200
    assert play.chats._open == {}
    assert len(play.calls._details) == 0
