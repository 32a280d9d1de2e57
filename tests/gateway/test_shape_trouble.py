"""Trouble in other shapes than chat: streams cut in the middle of a call, secrets, floods. Is it told, bounded, and kept out?"""

import asyncio
import contextlib
import gc
import json
import tracemalloc

import pytest

from tests.gateway.conftest import model, plan, started, user
from tests.gateway.scripted import Misbehaving, Scripted, chunk, sse
from tests.gateway.served import KEY, Served
from tests.gateway.test_request_cost import CONSTANT, PARTS, filled, peak_of
from tests.gateway.test_shapes import ask
from tests.support import until
from upswing.anthropic.request import translate_message_request
from upswing.errors import Rejected
from upswing.openai.responses_request import translate_response_request

pytestmark = pytest.mark.live
MB = 1024 * 1024
FUNCTION = {"name": "double", "parameters": {"type": "object", "properties": {"number": {}}}}
CALL = {"index": 0, "id": "call_1", "type": "function"}


class CutsCalls(Scripted):
    """A labelled double: its first stream ends in the middle of a call; from then on it behaves."""

    async def answer(self, request, reader, writer):
        if len(self.requests) > 1:
            return await super().answer(request, reader, writer)
        call = {**CALL, "function": {"name": "double", "arguments": '{"num'}}
        events = [chunk({"role": "assistant", "content": ""}), chunk({"tool_calls": [call]})]
        pieces = [sse(event, done=False) for event in events]
        return await self.stream(writer, pieces, end=False, pause=0.01)


@pytest.fixture
def cutting(quiet):
    with Served(CutsCalls) as made:
        yield made


def recorded(served):
    """One episode: what was cut was tried again, and is no fault of it."""
    (made,) = served.trajectories()
    assert [turn["action"]["tool_name"] for turn in made["turns"]] == ["double"]
    assert made["metadata"]["gateway"]["failures"] == 1
    assert "infra_error" not in made["metadata"]


def test_openais_client_hears_that_a_call_was_cut_and_asks_again(cutting):
    import openai

    asked = {"model": "m", "input": "Double 21.", "tools": [{"type": "function", **FUNCTION}]}
    with openai.OpenAI(base_url=cutting.url, api_key=KEY, max_retries=0) as client:
        with (
            pytest.raises(openai.APIError, match="half-way"),
            client.responses.stream(**asked) as s,
        ):
            for _ in s:
                pass
        assert client.responses.create(**asked).output[0].name == "double"
    recorded(cutting)


def test_anthropics_client_hears_that_a_call_was_cut_and_asks_again(cutting):
    import anthropic

    tool = {"name": "double", "input_schema": FUNCTION["parameters"]}
    asked = {"model": "m", "max_tokens": 9, "messages": [user("Double 21.")], "tools": [tool]}
    url = cutting.url.removesuffix("/v1")
    with anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0) as client:
        with (
            pytest.raises(anthropic.APIError, match="half-way"),
            client.messages.stream(**asked) as s,
        ):
            s.until_done()
        assert client.messages.create(**asked).content[0].name == "double"
    recorded(cutting)


def test_an_agent_of_openai_agents_hears_it_too(cutting):
    import agents
    import openai

    @agents.function_tool
    def double(number: int) -> int:
        """Twice the number."""
        return 2 * number

    async def run():
        client = openai.AsyncOpenAI(base_url=cutting.url, api_key=KEY, max_retries=0)
        agents.set_default_openai_client(client, use_for_tracing=False)
        agent = agents.Agent(name="doubler", tools=[double])
        result = agents.Runner.run_streamed(agent, "Double 21.")
        try:
            async for _ in result.stream_events():
                pass
        finally:
            await client.close()

    agents.set_tracing_disabled(True)
    with pytest.raises(
        (openai.APIError, agents.exceptions.AgentsException), match=r"half-way|fail"
    ):
        asyncio.run(run())


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/messages"])
async def test_an_episode_whose_last_stream_a_server_cut_is_an_infrastructure_fault(path):
    async with CutsCalls() as server, started(plan(model("base", server.url))) as gateway:
        await ask(gateway, path, "X-Episode-Id: e1")
        server.requests.clear()
        status, _, told = await ask(gateway, path, "X-Episode-Id: e1", stream=True)
        assert status == 200
        assert told[-1]["type"] == "error"
        assert "half-way" in json.dumps(told[-1])
        assert (await gateway.close("e1"))[0] == 200
    if gateway.recorder.trajectories:  # of an episode in which something was answered
        (made,) = gateway.recorder.trajectories
        assert made["metadata"]["infra_error"] is True


# --- nothing unredacted --------------------------------------------------------------------------

SECRET = "ann.lee@example.com"
PLANTED = {
    "/v1/responses": {
        "instructions": f"Write to {SECRET}.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": f"I am {SECRET}"}]},
            {
                "type": "function_call",
                "call_id": "c",
                "name": "mail",
                "arguments": json.dumps({"to": SECRET}),
            },
            {"type": "function_call_output", "call_id": "c", "output": f"sent to {SECRET}"},
        ],
        "metadata": {"environment": {"owner": SECRET}, "task_id": SECRET, "user_id": SECRET},
    },
    "/v1/messages": {
        "system": [{"type": "text", "text": f"Write to {SECRET}."}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": f"I am {SECRET}"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "c", "name": "mail", "input": {"to": SECRET}}
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c", "content": f"sent to {SECRET}"}
                ],
            },
        ],
        "metadata": {"user_id": SECRET, "environment": {"owner": SECRET}},
    },
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PLANTED)
async def test_a_secret_in_any_place_of_any_shape_is_not_published(path, stream):
    """The scripted backend repeats what the tool returned, so it is in the answer, too."""
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        fields = {**PLANTED[path], "stream": stream}
        status, _, told = await ask(gateway, path, "X-Episode-Id: e1", **fields)
        assert status == 200
        assert "ann.lee@example" in json.dumps(told) or stream
        assert (await gateway.close("e1"))[0] == 200
    (made,) = gateway.recorder.trajectories
    assert len(made["turns"]) == 1
    assert "ann.lee" not in json.dumps(made)
    assert "<email-1>" in json.dumps(made["turns"])


# --- what it costs, and what stays ---------------------------------------------------------------

SIZE = 3 * MB
WHERE = {
    "input": lambda fill: (translate_response_request, b'{"input":%s}' % fill(SIZE)),
    "instructions": lambda fill: (
        translate_response_request,
        b'{"input":"hi","instructions":%s}' % fill(SIZE),
    ),
    "an item": lambda fill: (
        translate_response_request,
        b'{"input":[{"role":"user","content":%s}]}' % fill(SIZE),
    ),
    "an output": lambda fill: (
        translate_response_request,
        b'{"input":[{"type":"function_call_output","call_id":"c","output":%s}]}' % fill(SIZE),
    ),
    "other fields": lambda fill: (
        translate_response_request,
        b'{"input":"hi","tools":%s,"x":%s}' % (fill(MB // 2), fill(MB // 3)),
    ),
    "messages": lambda fill: (
        translate_message_request,
        b'{"max_tokens":1,"messages":%s}' % fill(SIZE),
    ),
    "system": lambda fill: (
        translate_message_request,
        b'{"max_tokens":1,"messages":[],"system":%s}' % fill(SIZE),
    ),
    "blocks": lambda fill: (
        translate_message_request,
        b'{"max_tokens":1,"messages":[{"role":"user","content":%s}]}' % fill(SIZE),
    ),
    "an input": lambda fill: (
        translate_message_request,
        b'{"max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":%s}]}]}'
        % fill(SIZE),
    ),
}
MORE_PARTS = {
    **PARTS,
    "items": b'{"role":"user","content":"a"}',
    "texts": b'{"type":"text","text":"a"}',
    "input texts": b'{"type":"input_text","text":"a"}',
    "braces in texts": b'"{{{{{{{{"',
}


@pytest.mark.parametrize("part", MORE_PARTS)
@pytest.mark.parametrize("where", WHERE)
def test_a_translation_makes_no_more_objects_than_its_bytes_allow(where, part):
    translate, body = WHERE[where](lambda size: filled(MORE_PARTS[part], size))

    def work():
        with contextlib.suppress(Rejected):
            translate(body)

    assert peak_of(work) < 4 * len(body) + 2 * CONSTANT


CARRIED = {
    "metadata": {"metadata": {"environment": {"a": ["x" * 2000] * 100}}},
    "a user": {"metadata": {"user_id": "u" * 900_000}},
    "a long text": {},
}


@pytest.mark.parametrize("carried", CARRIED)
@pytest.mark.parametrize("how", ["well", "refuses", "error_500"])
@pytest.mark.parametrize("path", ["/v1/responses", "/v1/messages"])
async def test_what_stays_of_a_request_of_any_shape_is_counted(path, how, carried):
    async with Misbehaving(how) as server, started(plan(model("base", server.url))) as gateway:
        recorder = gateway.gateway.recorder

        async def flood():
            for number in range(4):
                long = "m" * 900_000 if carried == "a long text" else "hi"
                said = {"input": f"{number} {long}"}
                if path == "/v1/messages":
                    said = {"messages": [user(f"{number} {long}")]}
                await ask(gateway, path, **said, **CARRIED[carried])
                server.requests.clear()

        await flood()
        for episode in recorder.episode_table.open_episodes():
            recorder.end_episode(episode, "idle")
        await until(lambda: recorder.backlog_bytes == 0, 60)
        gateway.recorder.trajectories.clear()
        gc.collect()
        before = recorder.held_bytes
        tracemalloc.start()
        try:
            await flood()
            recorder.process_inbox()
            gc.collect()
            stays = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        counted = recorder.held_bytes - before
        assert stays <= 1.5 * counted + 2 * MB, (stays, counted)


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/messages"])
async def test_a_prompt_of_20_mb_goes_through_and_one_of_50_does_not(path):
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        for size, status in ((20_000_000, 200), (50_000_000, 413)):
            long = "x" * size
            said = {"input": long} if path == "/v1/responses" else {"messages": [user(long)]}
            body = {"model": "m", "max_tokens": 9, **said}
            assert (await gateway.client("POST", path, body))[0] == status
        assert len(server.requests[0]["body"]["messages"][0]["content"]) == 20_000_000
