"""Does a trajectory tell what happened? Exchanges in, trajectory.v1 out."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.scripted import Scripted, chunk, completion, sse, tool_call
from upswing.contracts import Trajectory, from_builtins
from upswing.dataset.model_answer import AnswerToolCall
from upswing.dataset.transcript import observation_of, result_of
from upswing.errors import Rejected
from upswing.gateway.core.answers import read_answer
from upswing.gateway.core.episode_redaction import redact_episode
from upswing.gateway.core.frames import ConversationFrame, EpisodeFrame, ExchangeFrame, TokenPrice
from upswing.gateway.core.sse import SseChecker, StreamProblem, event_payloads
from upswing.gateway.core.trajectory import build_trajectory
from upswing.redact import Redactor

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def user(text):
    return {"role": "user", "content": text}


def js(value):
    return json.dumps(value).encode()


class Talk:
    """An episode being made."""

    def __init__(self, *messages, **options):
        self.messages, self.options = list(messages), options
        self.exchanges, self.at = [], 1_700_000_000.0

    def answers(self, message, finish="stop", *, stream=False, model="base", **choice):
        body = js(completion(message, finish, **choice))
        if stream:
            script = Scripted()
            body = sse(*script.events({"content": None, **message}, finish))
        if prompt := choice.pop("prompt_token_ids", None):
            tree = completion(message, finish, **choice)
            body = js({**tree, "prompt_token_ids": prompt})
        self.exchanges.append(
            ExchangeFrame(
                self.at,
                20.0,
                len(js(self.messages)),
                [body],
                stream,
                model,
                f"i.{len(self.exchanges)}",
            )
        )
        self.messages.append({"role": "assistant", **message})
        self.at += 1
        return self

    def then(self, *messages):
        self.messages += messages
        return self

    def frame(self, **changes):
        asked = self.messages[:-1]
        request = js({"model": "m", "messages": asked, **self.options})
        fields = {
            "trajectory_id": "0d4c7a52-7f2e-4c39-9a4e-6f8d2f0b8a11",
            "episode_id": "e",
            "agent_id": "a",
            "session_id": "s",
            "source": "given",
            "ended_by": "close",
            "model_id": "base",
            "candidate": False,
            "rollout": "r",
            "models": ["base"],
            "conversations": [ConversationFrame(request, self.exchanges)],
            **changes,
        }
        return EpisodeFrame(**fields)

    def tree(self, **changes):
        made = build_trajectory(self.frame(**changes))
        from_builtins(Trajectory, made)
        return made


CALL = {"content": None, "tool_calls": [tool_call("weather", {"city": "Paris"})]}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "sunny"}


@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_call_and_its_result_are_one_turn_and_the_next_turn_sees_it(stream):
    talk = Talk(
        {"role": "system", "content": "Be brief."},
        user("Weather?"),
        temperature=0.5,
        top_p=0.9,
        max_tokens=12,
    )
    talk.answers(CALL, "tool_calls", stream=stream).then(RESULT).answers(
        {"content": "Sunny."}, stream=stream
    )
    made = talk.tree(prices={"base": TokenPrice(2.0, 4.0)})
    first, second = made["turns"]
    assert first["observation"] == {"type": "user_message", "content": "Weather?"}
    assert first["action"] == {
        "type": "tool_call",
        "tool_name": "weather",
        "tool_args": {"city": "Paris"},
    }
    assert first["result"] == {"success": True, "output": "sunny", "execution_time_ms": 980.0}
    assert second["observation"] == {"type": "tool_result", "content": "sunny"}
    assert second["action"] == {"type": "response", "raw_response": "Sunny."}
    assert made["task_context"]["instructions"] == "Be brief."
    drawn = [made["metadata"][name] for name in ("temperature", "top_p", "max_tokens")]
    assert drawn == [0.5, 0.9, 12]
    assert made["metadata"]["total_tokens"] == 50
    assert made["metadata"]["total_cost_usd"] == pytest.approx(2 * (20 * 2 + 5 * 4) / 1e6)


def test_several_calls_at_once_are_one_turn_with_all_results():
    calls = {
        "content": "Let me see.",
        "tool_calls": [tool_call("a", {"x": 1}, "c1"), tool_call("b", {}, "c2")],
    }
    results = [{"role": "tool", "tool_call_id": f"c{n}", "content": f"r{n}"} for n in (1, 2)]
    made = (
        Talk(user("go"))
        .answers(calls, "tool_calls")
        .then(*results)
        .answers({"content": "done"})
        .tree()
    )
    first, second = made["turns"]
    assert first["action"]["tool_name"] == "a+b"
    assert [c["args"] for c in first["action"]["tool_args"]["calls"]] == [{"x": 1}, {}]
    assert first["result"]["output"] == {"results": {"c1": "r1", "c2": "r2"}}
    assert [m["content"] for m in second["observation"]["content"]["messages"]] == ["r1", "r2"]


def test_a_tool_that_fails_and_an_answer_that_is_cut_are_no_success():
    failed = {**RESULT, "content": "Error: no such city"}
    talk = Talk(user("go")).answers(CALL, "tool_calls").then(failed)
    made = talk.answers({"content": "I do not"}, "length").tree()
    assert made["turns"][0]["result"]["success"] is False
    assert made["turns"][0]["result"]["error"] == "Error: no such city"
    assert made["turns"][1]["result"] == {
        "success": False,
        "output": "I do not",
        "error": "The answer ended by length.",
        "execution_time_ms": 20.0,
    }


def test_results_told_as_the_user_count_as_results():
    made = (
        Talk(user("go"))
        .answers(CALL, "tool_calls")
        .then(user("Observation: sunny"))
        .answers({"content": "ok"})
        .tree()
    )
    assert made["turns"][0]["result"]["output"] == "Observation: sunny"


def test_an_episode_that_got_two_models_is_marked():
    talk = (
        Talk(user("go"))
        .answers({"content": "a"}, model="new")
        .then(user("on"))
        .answers({"content": "b"})
    )
    about = talk.tree(models=["new", "base"], model_id="new")["metadata"]
    assert (about["mixed_models"], about["infra_error"], about["model"]) == (
        ["new", "base"],
        True,
        "new",
    )
    assert "mixed_models" not in talk.tree()["metadata"]


def test_an_episode_whose_last_request_failed_is_an_infrastructure_fault():
    talk = Talk(user("go")).answers({"content": "a"})
    assert talk.tree(broken=True)["metadata"]["infra_error"] is True


def logprobs(*values):
    return {"content": [{"token": "t", "logprob": value} for value in values]}


def test_token_ids_are_those_new_since_the_turn_before():
    talk = Talk(user("go"))
    talk.answers(
        {"content": "a"}, prompt_token_ids=[1, 2], token_ids=[3, 4], logprobs=logprobs(-0.1, -0.2)
    )
    talk.then(user("on")).answers(
        {"content": "b"}, prompt_token_ids=[1, 2, 3, 4, 5], token_ids=[6], logprobs=logprobs(-0.3)
    )
    assert talk.tree()["metadata"]["tokens"] == [
        {"turn_id": 1, "ids": [1, 2, 3, 4], "logprobs": [-0.1, -0.2]},
        {"turn_id": 2, "ids": [5, 6], "logprobs": [-0.3]},
    ]


def test_token_ids_end_where_a_prompt_does_not_go_on_from_what_was_said():
    talk = Talk(user("go"))
    talk.answers({"content": "a"}, prompt_token_ids=[1, 2], token_ids=[3, 4])
    talk.then(user("on")).answers({"content": "b"}, prompt_token_ids=[1, 2, 9], token_ids=[6])
    assert [part["turn_id"] for part in talk.tree()["metadata"]["tokens"]] == [1]


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 99), min_size=1, max_size=5),
            st.lists(st.integers(0, 99), min_size=1, max_size=5),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_the_ids_of_all_turns_together_are_what_the_model_has_seen(turns):
    talk, seen = Talk(user("0")), []
    for number, (prompt, said) in enumerate(turns):
        if number:
            talk.then(user(str(number)))
        seen = seen + prompt
        talk.answers({"content": "x"}, prompt_token_ids=list(seen), token_ids=said)
        seen = seen + said
    told = talk.tree()["metadata"]["tokens"]
    assert [token for part in told for token in part["ids"]] == seen


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=6), st.booleans())
def test_every_answer_is_a_turn_and_time_goes_forward(pairs, stream):
    talk = Talk(user(pairs[0][0]))
    for number, (asked, said) in enumerate(pairs):
        if number:
            talk.then(user(asked))
        talk.answers({"content": said}, stream=stream)
    made = talk.tree()
    assert len(made["turns"]) == len(pairs)
    assert [t["action"]["raw_response"] for t in made["turns"]] == [said for _, said in pairs]
    assert [t["observation"]["content"] for t in made["turns"]] == [asked for asked, _ in pairs]
    stamps = [turn["timestamp"] for turn in made["turns"]]
    assert stamps == sorted(stamps)


def test_conversations_beside_each_other_are_told_in_the_order_of_time():
    one, two = Talk(user("main")).answers({"content": "m1"}), Talk(user("helper"))
    two.at += 0.5
    two.answers({"content": "h1"})
    one.then(user("more")).answers({"content": "m2"})
    conversations = [talk.frame().conversations[0] for talk in (one, two)]
    made = one.tree(conversations=conversations)
    assert [t["action"]["raw_response"] for t in made["turns"]] == ["m1", "h1", "m2"]


def test_a_picture_is_remembered_by_its_hash():
    content = [
        {"type": "text", "text": "what?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 5000}},
    ]
    seen = observation_of([{"role": "user", "content": content}], first=True)
    url = seen["content"]["parts"][1]["image_url"]["url"]
    assert (url["kind"], url["bytes"]) == ("image/png", 5022)


def test_nothing_that_must_not_be_stored_is_published():
    secret = "sk-proj-" + "aB3dE5gH7jK9mN1pQ3sT5vW7xY9zA1cD3fG5hJ7k"
    talk = Talk(user(f"my key is {secret}")).answers({"content": f"noted: {secret}"})
    body = redact_episode(talk.frame(), Redactor()).body
    assert secret.encode() not in body


def test_an_episode_without_a_readable_answer_is_refused():
    talk = Talk(user("go")).answers({"content": "a"})
    spoilt = [
        ExchangeFrame(
            h.started_at, h.latency_ms, h.messages_size, [b"<html>"], h.stream, h.model_id, "i"
        )
        for h in talk.exchanges
    ]
    with pytest.raises(Rejected, match="No answer"):
        build_trajectory(
            talk.frame(
                conversations=[ConversationFrame(talk.frame().conversations[0].request, spoilt)]
            )
        )


# --- streams -------------------------------------------------------------------------------------


@given(
    st.lists(TEXT, max_size=6),
    st.lists(st.integers(1, 40), max_size=30),
    st.sampled_from(["\n", "\r\n"]),
)
def test_a_stream_cut_anywhere_goes_through_whole_and_in_whole_events(texts, cuts, newline):
    stream = b": hello\n\n" + sse(*(chunk({"content": text}) for text in texts))
    stream = stream.replace(b"\n", newline.encode())
    check, out, place = SseChecker(), b"", 0
    for cut in [*cuts, len(stream)]:
        out += check.feed(stream[place : place + cut])
        assert out == b"" or out.endswith(2 * newline.encode())
        place += cut
    assert (out, check.problem, check.done) == (stream, None, True)
    assert check.events == len(texts) + 1


@given(st.binary(max_size=60))
def test_garbage_never_goes_through(garbage):
    check = SseChecker()
    out = check.feed(sse(chunk({"content": "a"}), done=False)) + check.feed(
        b"data: {oops " + garbage + b"\n\n"
    )
    assert out == sse(chunk({"content": "a"}), done=False)
    assert check.problem is StreamProblem.GARBAGE


@given(
    TEXT, TEXT, st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(), max_size=3)
)
def test_a_streamed_answer_reads_like_a_whole_one(text, name, arguments):
    message = {"content": text, "tool_calls": [tool_call(name or "f", arguments)]}
    streamed = read_answer([sse(*Scripted().events(message, "tool_calls"))], stream=True)
    whole = read_answer([js(completion(message, "tool_calls"))], stream=False)
    assert streamed == whole
    assert whole.tool_calls == [AnswerToolCall("call_1", name or "f", json.dumps(arguments))]


def test_logprobs_and_ids_of_a_stream_are_put_together():
    one = chunk({"content": "a"}, prompt_token_ids=[1, 2])
    one["choices"][0] |= {"token_ids": [3], "logprobs": logprobs(-0.5)}
    two = chunk({"content": "b"}, "stop")
    two["choices"][0] |= {"token_ids": [4], "logprobs": logprobs(-0.25)}
    answer = read_answer([sse(one), sse(two)], stream=True)
    assert (answer.prompt_token_ids, answer.token_ids, answer.logprobs) == (
        [1, 2],
        [3, 4],
        [-0.5, -0.25],
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"7",
        b'{"choices": 7}',
        b'{"choices": [7]}',
        b'{"choices": [{"message": 7}]}',
        b'{"choices": [{}]}',
        b"\xff",
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_of_any_shape_is_read_or_none(body, stream):
    read_answer([b"data: " + body + b"\n\n" if stream else body], stream=stream)


def test_the_data_of_events_is_found():
    assert event_payloads(sse({"a": 1})) == [b'{"a": 1}', b"[DONE]"]


def test_a_result_that_never_came_is_unknown():
    answer = read_answer([js(completion(CALL, "tool_calls"))], stream=False)
    assert result_of(answer, []) == {"success": True, "output": None}
