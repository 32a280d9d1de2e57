"""Requests of every shape: are they routed, answered, recorded and refused as chat completions are?"""

import json
from typing import ClassVar

import pytest

from tests.gateway.conftest import assistant, model, plan, started, user
from tests.gateway.scripted import Misbehaving, Scripted, Server, chunk, completion, sse
from tests.gateway.talking import raw, request, unchunked
from upswing.gateway.core.serving_policy import ServingPolicy

pytestmark = pytest.mark.live
ASKED = {
    "/v1/chat/completions": {"model": "m", "messages": [user("hi")]},
    "/v1/responses": {"model": "m", "input": "hi"},
    "/v1/messages": {"model": "m", "max_tokens": 9, "messages": [user("hi")]},
}
PATHS = tuple(ASKED)
TOKENS = {"logprobs": True, "return_token_ids": True}


async def ask(gateway, path, *headers, **fields):
    """(status, headers, answer or events)"""
    body = {**ASKED.get(path, {}), **fields}
    whole = await raw(gateway, request(body, *headers, path=path))
    head, _, rest = whole.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    named = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
    data = unchunked(rest) if named.get("transfer-encoding") == "chunked" else rest
    if named["content-type"].startswith("text/event-stream"):
        payloads = [line[6:] for line in data.decode().splitlines() if line.startswith("data: ")]
        told = [json.loads(each) for each in payloads if each != "[DONE]"]
    else:
        told = json.loads(data)
    return int(lines[0].split()[1]), named, told


def text_of(path, told, *, stream):
    """What the model said, as a client of this shape puts it together."""
    match path, stream:
        case "/v1/chat/completions", False:
            return told["choices"][0]["message"]["content"]
        case "/v1/chat/completions", True:
            return "".join(c["delta"].get("content") or "" for e in told for c in e["choices"])
        case "/v1/responses", False:
            return told["output"][0]["content"][0]["text"]
        case "/v1/responses", True:
            return "".join(e["delta"] for e in told if e["type"] == "response.output_text.delta")
        case "/v1/messages", False:
            return told["content"][0]["text"]
        case _:
            deltas = [e["delta"] for e in told if e["type"] == "content_block_delta"]
            return "".join(delta["text"] for delta in deltas)


# --- the same as chat ----------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_a_request_of_any_shape_is_an_episode_with_its_ids_and_its_record(path, stream):
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        status, headers, told = await ask(gateway, path, "X-Episode-Id: e1", stream=stream)
        assert status == 200
        assert text_of(path, told, stream=stream) == "scripted says: the tool returned nothing"
        assert (headers["x-episode-id"], headers["x-model-id"]) == ("e1", "base")
        assert (await gateway.close("e1"))[0] == 200
    (made,) = gateway.recorder.trajectories
    assert made["turns"][0]["observation"]["content"] == "hi"
    assert made["metadata"]["inference_ids"] == [headers["x-inference-id"]]
    assert made["metadata"]["total_tokens"] == 25, "counted, though nobody asked"


@pytest.mark.parametrize("path", PATHS)
async def test_a_conversation_of_any_shape_is_known_by_what_was_said(path):
    name = "input" if path == "/v1/responses" else "messages"
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        told = (await ask(gateway, path, **{name: [user("hi")]}))[2]
        said = text_of(path, told, stream=False)
        then = [user("hi"), assistant(said), user("And then?")]
        assert (await ask(gateway, path, **{name: then}))[0] == 200
        await gateway.gateway.recorder.flush(60)
    (made,) = gateway.recorder.trajectories
    assert len(made["turns"]) == 2
    assert "rewritten" not in made["metadata"]["gateway"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_a_failing_candidate_is_answered_by_the_baseline_in_every_shape(path, stream):
    async with Misbehaving("error_500") as bad, Scripted() as good:
        made = plan(model("base", good.url), (model("new", bad.url), 1.0))
        async with started(made, policy=ServingPolicy(fallback=True)) as gateway:
            status, headers, told = await ask(gateway, path, stream=stream)
            assert (status, headers["x-model-id"]) == (200, "base")
            assert text_of(path, told, stream=stream).startswith("scripted says")
            assert gateway.gateway.counters.models["new"].fallbacks == 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("how", ["error_500", "refuses", "error_in_200", "html", "never_answers"])
@pytest.mark.parametrize("path", PATHS)
async def test_an_error_is_told_in_the_words_of_the_shape(path, how, stream):
    async with Misbehaving(how) as server, started(plan(model("base", server.url))) as gateway:
        status, _, told = await ask(gateway, path, stream=stream)
    assert status >= 400
    assert told["error"]["message"]
    if path == "/v1/messages":
        assert told["type"] == "error"
        assert told["error"]["type"] in {"invalid_request_error", "api_error"}


@pytest.mark.parametrize("path", PATHS)
async def test_a_key_may_come_as_x_api_key(path):
    async with Scripted() as server:
        made = plan(model("base", server.url))
        async with started(made, client_keys={"sk-1": "ann"}) as gateway:
            assert (await ask(gateway, path, "x-api-key: sk-1", "X-Episode-Id: e1"))[0] == 200
            status, headers, told = await ask(gateway, path, "x-api-key: sk-2")
            assert (status, headers["www-authenticate"]) == (401, "Bearer")
            assert "x-api-key" in told["error"]["message"]
            closed = request(b"", "x-api-key: sk-1", path="/v1/episodes/e1/close")
            assert (await raw(gateway, closed)).startswith(b"HTTP/1.1 200")


async def test_a_model_is_found_by_its_id_with_slashes_too():
    async with Scripted() as server, started(plan(model("org/base", server.url))) as gateway:
        for path in ("/v1/models/org/base", "/v1/models/org%2Fbase", "/v1/models/upswing"):
            assert (await gateway.client("GET", path))[0] == 200
        status, told = await gateway.client("GET", "/v1/models/gpt-9")
    assert (status, told["error"]["type"]) == (404, "not_found_error")


# --- what we add is ours -------------------------------------------------------------------------


class Counting(Server):
    """A labelled double: logprobs, token ids and usage where they are asked for, as vLLM has them."""

    async def answer(self, request, reader, writer):
        asked = request["body"]
        ids = {"token_ids": [7, 8]} if asked.get("return_token_ids") else {}
        prompt = {"prompt_token_ids": [1, 2]} if ids else {}
        pair = [{"token": "o", "logprob": -0.1}, {"token": "k", "logprob": -0.2}]
        logprobs = {"content": pair} if asked.get("logprobs") else None
        if not asked.get("stream"):
            whole = completion({"content": "ok"}, **ids) | prompt
            whole["choices"][0]["logprobs"] = logprobs
            return await self.send(writer, whole)
        counted = (asked.get("stream_options") or {}).get("include_usage")
        null = {"usage": None} if counted else {}
        first = chunk({"role": "assistant", "content": ""}, **prompt, **null)
        words = chunk({"content": "ok"}, **null)
        words["choices"][0] |= {**ids, "logprobs": logprobs}
        events = [first, words, chunk({}, "stop", **null)]
        if counted:
            usage = {"prompt_tokens": 2, "completion_tokens": 2, "total_tokens": 4}
            events.append(chunk(usage=usage) | {"choices": []})
        return await self.stream(writer, [sse(each, done=False) for each in events] + [sse()])


OURS = ("token_ids", "prompt_token_ids", "-0.1")


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_what_training_needs_is_recorded_and_not_shown_to_who_did_not_ask(
    path, stream, together
):
    class Together(Counting):
        async def stream(self, writer, pieces, **options):
            return await super().stream(writer, [b"".join(pieces)], **options)

    async with (Together if together else Counting)() as server:
        made = plan(model("base", server.url, extra=TOKENS))
        async with started(made) as gateway:
            _, _, told = await ask(gateway, path, "X-Episode-Id: e1", stream=stream, logprobs=False)
            assert (await gateway.close("e1"))[0] == 200
    assert text_of(path, told, stream=stream) == "ok"
    assert not [each for each in OURS if each in json.dumps(told)]
    if stream and path == "/v1/chat/completions":
        assert all(event["choices"] for event in told), "a chunk without a choice is a surprise"
        assert not any("usage" in event for event in told)
    (trajectory,) = gateway.recorder.trajectories
    assert trajectory["metadata"]["tokens"] == [
        {"turn_id": 1, "ids": [1, 2, 7, 8], "logprobs": [-0.1, -0.2]}
    ]
    assert trajectory["metadata"]["total_tokens"] == (4 if stream else 25)


async def test_who_asks_for_them_gets_them():
    wanted = {**TOKENS, "stream": True, "stream_options": {"include_usage": True, "x": 1}}
    async with Counting() as server:
        made = plan(model("base", server.url, extra=TOKENS))
        async with started(made) as gateway:
            _, _, told = await ask(gateway, "/v1/chat/completions", **wanted)
    assert told[0]["prompt_token_ids"] == [1, 2]
    assert told[1]["choices"][0]["token_ids"] == [7, 8]
    assert told[-1]["usage"]["total_tokens"] == 4
    assert server.requests[0]["body"]["stream_options"] == {"include_usage": True, "x": 1}


async def test_a_server_that_refuses_stream_options_is_not_sent_any():
    async with Counting() as server:
        made = plan(model("base", server.url, extra={"stream_options": None}))
        async with started(made) as gateway:
            assert (await ask(gateway, "/v1/chat/completions", stream=True))[0] == 200
    assert "stream_options" not in server.requests[0]["body"]


# --- not recorded --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "fields"),
    [
        ("X-Record: off", {}),
        ("X-Nothing: 1", {"metadata": {"record": False}}),
        ("X-Nothing: 1", {"metadata": {"record": "off"}}),
        ("X-Record: off", {"metadata": {"record": True, "session_id": "s"}}),
    ],
)
@pytest.mark.parametrize("path", PATHS)
async def test_a_utility_call_is_answered_by_the_baseline_and_leaves_no_trace(path, header, fields):
    async with Scripted() as server:
        made = plan(model("base", server.url), (model("new", server.url), 1.0))
        async with started(made) as gateway:
            status, headers, _ = await ask(gateway, path, header, **fields)
            assert (status, headers["x-model-id"]) == (200, "base")
            assert len(gateway.gateway.recorder.episode_table) == 0
            assert gateway.gateway.counters.encode() == b"{}"
            assert gateway.gateway.counters.outcomes == {"unrecorded": 1}
        assert gateway.recorder.trajectories == []


async def test_an_episode_keeps_its_model_in_calls_that_are_not_recorded():
    """An agent that records by itself sends each call so: it draws like everybody, and is nobody's evidence."""
    async with Scripted() as server:
        made = plan(model("base", server.url), (model("new", server.url), 0.5))
        async with started(made, draw=iter([0.1, 0.9]).__next__) as gateway:
            quiet = ("X-Record: off", "X-Episode-Id: e1")
            models = [(await ask(gateway, PATHS[0], *quiet))[1]["x-model-id"] for _ in range(3)]
            assert len(set(models)) == 1
            assert gateway.gateway.counters.encode() == b"{}"
            status, told = await gateway.close("e1")
            assert (status, told["recorded"]) == (200, False)
            other = (await ask(gateway, PATHS[0], "X-Record: off", "X-Episode-Id: e2"))[1]
            assert {models[0], other["x-model-id"]} == {"base", "new"}


async def test_an_unrecorded_call_within_a_recorded_episode_is_left_out_of_it():
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        await ask(gateway, PATHS[0], "X-Episode-Id: e1")
        await ask(gateway, PATHS[0], "X-Episode-Id: e1", "X-Record: off", messages=[user("name")])
        assert (await gateway.close("e1"))[0] == 200
    (made,) = gateway.recorder.trajectories
    assert len(made["turns"]) == 1
    assert made["metadata"]["gateway"]["rollout"] == "rollout-1"


async def test_who_saw_the_model_before_anything_counted_is_nobodys_evidence():
    async with Scripted() as server:
        made = plan(model("base", server.url), (model("new", server.url), 1.0))
        async with started(made) as gateway:
            await ask(gateway, PATHS[0], "X-Episode-Id: e1", "X-Record: off")
            await ask(gateway, PATHS[0], "X-Episode-Id: e1")
            assert gateway.gateway.counters.encode() == b"{}"
            assert (await gateway.close("e1"))[0] == 200
    (recorded,) = gateway.recorder.trajectories
    assert recorded["metadata"]["gateway"]["rollout"] == ""


async def test_an_episode_that_nobody_wanted_recorded_says_so_when_it_is_closed():
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        await ask(gateway, PATHS[0], "X-Episode-Id: e1", "X-Record: off")
        status, told = await gateway.close("e1")
    assert (status, told["recorded"]) == (200, False)
    assert "x-record: off" in json.dumps(told)
    assert gateway.recorder.trajectories == []


async def test_a_failure_of_an_unrecorded_call_is_nobodys_error():
    async with Misbehaving("error_500") as server:
        made = plan(model("base", server.url), (model("new", server.url), 1.0))
        async with started(made, policy=ServingPolicy(fallback=False)) as gateway:
            await ask(gateway, PATHS[0], "X-Episode-Id: e1", "X-Record: off")
            assert gateway.gateway.counters.encode() == b"{}"


async def test_what_x_record_means_is_not_guessed():
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        status, _, told = await ask(gateway, PATHS[0], "X-Record: perhaps")
        assert status == 400
        assert told["error"]["message"] == "`x-record` is `on` or `off`."
        assert (await ask(gateway, PATHS[0], metadata={"record": "Abbey Road"}))[0] == 200


# --- several choices -----------------------------------------------------------------------------


class Choosing(Server):
    """A labelled double: as many choices as are asked for, each another word."""

    async def answer(self, request, reader, writer):
        asked = request["body"]
        words = [f"word {number}" for number in range(asked.get("n", 1))]
        if not asked.get("stream"):
            whole = completion({"content": words[0]})
            first = whole["choices"][0]
            message = {"role": "assistant"}
            whole["choices"] = [
                {**first, "index": at, "message": message | {"content": word}}
                for at, word in reversed([*enumerate(words)])
            ]
            return await self.send(writer, whole)
        events = [chunk({"content": word}) for word in words] + [chunk({}, "stop") for _ in words]
        for at, event in enumerate(events):
            event["choices"][0]["index"] = at % len(words)
        return await self.stream(writer, [sse(*events)])


@pytest.mark.parametrize("stream", [False, True])
async def test_of_several_choices_the_one_that_is_gone_on_with_is_the_turn(stream):
    async with Choosing() as server, started(plan(model("base", server.url))) as gateway:
        await ask(gateway, PATHS[0], n=3, stream=stream)
        then = [user("hi"), assistant("word 2"), user("And then?")]
        await ask(gateway, PATHS[0], messages=then, n=2, stream=stream)
        await gateway.gateway.recorder.flush(60)
    (made,) = gateway.recorder.trajectories
    assert [turn["action"]["raw_response"] for turn in made["turns"]] == ["word 2", "word 0"]
    assert made["metadata"]["choices"] == [3, 2]
    assert "rewritten" not in made["metadata"]["gateway"]


# --- completions and embeddings ------------------------------------------------------------------


class Old(Server):
    """A labelled double: a server that has completions and embeddings beside chat."""

    async def answer(self, request, reader, writer):
        match request["path"]:
            case "/v1/completions" if request["body"].get("stream"):
                event = {"object": "text_completion", "choices": [{"index": 0, "text": "on"}]}
                return await self.stream(writer, [sse(event)])
            case "/v1/completions":
                return await self.send(writer, {"choices": [{"index": 0, "text": "on"}]})
            case "/v1/embeddings":
                data = [{"object": "embedding", "index": 0, "embedding": [0.5]}]
                return await self.send(writer, {"object": "list", "data": data})
        return await self.send(writer, completion({"content": "ok"}))


@pytest.mark.parametrize("stream", [False, True])
async def test_completions_pass_and_are_nobodys_episode(stream):
    async with Old() as server, started(plan(model("base", server.url))) as gateway:
        asked = {"model": "m", "prompt": "go", "max_tokens": 3, "stream": stream}
        status, headers, told = await ask(gateway, "/v1/completions", **asked)
        assert (status, headers["x-model-id"]) == (200, "base")
        assert (told[0] if stream else told)["choices"][0]["text"] == "on"
        assert len(gateway.gateway.recorder.episode_table) == 0
    assert server.requests[0]["body"] == {**asked, "model": "base"}


@pytest.mark.parametrize(
    ("named", "sent"), [("text-embedding-3", "text-embedding-3"), ("base", "b1")]
)
async def test_embeddings_are_of_the_model_that_they_name(named, sent):
    async with Old() as server:
        async with started(plan(model("base", server.url, called="b1"))) as gateway:
            asked = {"model": named, "input": ["a", "b"]}
            status, _, told = await ask(gateway, "/v1/embeddings", "X-Episode-Id: e1", **asked)
    assert (status, told["data"][0]["embedding"]) == (200, [0.5])
    assert server.requests[0]["body"] == {"model": sent, "input": ["a", "b"]}
    assert gateway.recorder.trajectories == []


class Without(Server):
    """A labelled double: a server that has chat completions alone."""

    async def answer(self, request, reader, writer):
        missing = {"detail": "Not Found"}
        return await self.send(writer, missing, status="404 Not Found")


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/embeddings"])
async def test_where_the_backend_has_none_its_404_is_told(path):
    async with Without() as server, started(plan(model("base", server.url))) as gateway:
        status, _, told = await ask(gateway, path, model="m", input="a", prompt="a")
    assert (status, told["error"]["message"]) == (404, f"The model's server has no path {path}.")


# --- servers that speak the shape themselves -----------------------------------------------------


class Native(Server):
    """A labelled double: speaks all shapes itself, and says in which it was asked."""

    RESPONSE: ClassVar = {
        "id": "resp_n",
        "status": "completed",
        "output": [
            {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]},
            {
                "type": "message",
                "id": "msg_n",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "native"}],
            },
        ],
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }
    MESSAGE: ClassVar = {
        "id": "msg_n",
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "native"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }

    async def answer(self, request, reader, writer):
        shape, stream = request["path"].removeprefix("/v1/"), request["body"].get("stream")
        if shape == "chat/completions":
            return await Scripted().answer(request, reader, writer)
        whole = self.RESPONSE if shape == "responses" else self.MESSAGE
        if not stream:
            return await self.send(writer, whole)
        return await self.stream(writer, [b"".join(self.events(shape))])

    def events(self, shape):
        if shape == "responses":
            told = [
                {"type": "response.output_text.delta", "item_id": "msg_n", "delta": "native"},
                {"type": "response.completed", "response": self.RESPONSE},
            ]
        else:
            start = {**self.MESSAGE, "content": [], "stop_reason": None}
            told = [
                {"type": "message_start", "message": start},
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}},
                {
                    "type": "content_block_delta",
                    "index": 0,
                    "delta": {"type": "text_delta", "text": "native"},
                },
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
                {"type": "message_stop"},
            ]
        for each in told:
            yield f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode()


BOTH = ("responses", "messages")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS[1:])
async def test_a_server_that_speaks_the_shape_is_asked_in_it_and_recorded(path, stream):
    async with Native() as server:
        made = plan(model("base", server.url, called="b1", shapes=BOTH))
        keys = {server.url: "sk-theirs"}
        async with started(made, backend_keys=keys) as gateway:
            _, _, told = await ask(
                gateway, path, "X-Episode-Id: e1", "anthropic-beta: b", stream=stream, new_field=1
            )
            assert text_of(path, _without_reasoning(told), stream=stream) == "native"
            assert (await gateway.close("e1"))[0] == 200
    asked = server.requests[0]
    assert asked["path"] == path
    assert asked["body"] == {**ASKED[path], "model": "b1", "stream": stream, "new_field": 1}
    if path == "/v1/messages":
        assert asked["headers"]["anthropic-version"] == "2023-06-01"
        assert (asked["headers"]["anthropic-beta"], asked["headers"]["x-api-key"]) == (
            "b",
            "sk-theirs",
        )
    (made,) = gateway.recorder.trajectories
    assert made["turns"][0]["action"]["raw_response"] == "native"
    assert (made["metadata"]["total_tokens"], made["metadata"]["finish_reasons"]) == (5, ["stop"])


def _without_reasoning(told):
    if isinstance(told, dict) and "output" in told:
        return {**told, "output": told["output"][1:]}
    return told


SEARCH = {
    "/v1/responses": {"tools": [{"type": "web_search"}]},
    "/v1/messages": {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
}


@pytest.mark.parametrize("path", PATHS[1:])
async def test_where_chat_gives_token_ids_only_what_chat_cannot_say_is_asked_natively(path):
    async with Native() as server:
        made = plan(model("base", server.url, shapes=BOTH, extra=TOKENS))
        async with started(made) as gateway:
            assert (await ask(gateway, path))[0] == 200
            assert (await ask(gateway, path, **SEARCH[path]))[0] == 200
    assert [each["path"] for each in server.requests] == ["/v1/chat/completions", path]


@pytest.mark.parametrize("path", PATHS[1:])
async def test_what_no_server_here_can_take_is_refused_by_its_name(path):
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        status, _, told = await ask(gateway, path, **SEARCH[path])
    assert status == 400
    assert told["error"]["message"].startswith("A tool of type `web_search")
    assert server.requests == []


@pytest.mark.parametrize("path", PATHS[1:])
async def test_a_native_candidate_that_fails_is_answered_by_a_baseline_that_is_not(path):
    async with Misbehaving("error_500") as bad, Scripted() as good:
        made = plan(model("base", good.url), (model("new", bad.url, shapes=BOTH), 1.0))
        async with started(made, policy=ServingPolicy(fallback=True)) as gateway:
            _, headers, told = await ask(gateway, path)
            assert headers["x-model-id"] == "base"
            assert text_of(path, told, stream=False).startswith("scripted says")
            status, headers, _ = await ask(gateway, path, **SEARCH[path])
            assert (status, headers["x-model-id"]) == (500, "new"), "nobody else could take it"
