"""Real llama.cpp behind a gateway: schemas and forced calls through every shape, and its own shapes passed through."""

import json

import pytest
from tests.gateway.conftest import model, plan, started
from tests.serve import gguf_cases as cases

from upswing.serve.probing import list_models, probe

pytest.importorskip("xllamacpp", reason="llama.cpp is not installed: pip install '.[llama]'")
pytestmark = pytest.mark.live
SWITCH = {
    "type": "object",
    "properties": {"on": {"type": "boolean"}, "which": {"enum": ["left", "right"]}},
    "required": ["on", "which"],
    "additionalProperties": False,
}
TOKENS = {"return_token_ids": True, "logprobs": True}
ROOM = 600
"""Tokens for an answer: a model of random weights likes the blanks that JSON allows."""


@pytest.fixture
async def gateway(serve, tmp_path):
    base = cases.make_base(tmp_path / "base", endless=True)
    url = await serve(base=base.name, cache=tmp_path / "cache", slots=2)
    made = plan(model("base", f"{url}/v1", called=base.name, extra=TOKENS))
    async with started(made) as gateway:
        yield gateway


async def test_a_schema_holds_in_every_shape_and_its_tokens_are_recorded(gateway):
    """A model of random weights writes what it is held to."""
    wanted = {"type": "json_schema", "name": "switch", "schema": SWITCH}
    asked = {"model": "m", "input": "go", "text": {"format": wanted}, "max_output_tokens": ROOM}
    headers = ("X-Episode-Id: e1",)
    status, told = await gateway.client("POST", "/v1/responses", asked, headers=headers)
    assert status == 200, told
    assert told["status"] == "completed"
    assert set(json.loads(told["output"][0]["content"][0]["text"])) == {"on", "which"}
    assert (await gateway.close("e1"))[0] == 200
    (made,) = gateway.recorder.trajectories
    (kept,) = made["metadata"]["tokens"]
    assert len(kept["logprobs"]) == told["usage"]["output_tokens"]

    config = {"format": {"type": "json_schema", "schema": SWITCH}}
    asked = {"model": "m", "max_tokens": ROOM, "output_config": config}
    asked["messages"] = [{"role": "user", "content": "go"}]
    status, told = await gateway.client("POST", "/v1/messages", asked)
    assert status == 200, told
    assert set(json.loads(told["content"][0]["text"])) == {"on", "which"}
    status, told = await gateway.chat(response_format={"type": "json_object"}, max_tokens=40, n=2)
    assert status == 200, told
    assert all(choice["message"]["content"].startswith("{") for choice in told["choices"])
    assert [choice["index"] for choice in told["choices"]] == [0, 1]


async def test_a_call_that_has_to_be_made_is_made_in_every_shape(gateway):
    function = {"name": "turn", "description": "Turn.", "parameters": SWITCH}
    asked = {"model": "m", "input": "go", "tools": [{"type": "function", **function}]}
    asked |= {"tool_choice": "required", "max_output_tokens": ROOM}
    status, told = await gateway.client("POST", "/v1/responses", asked)
    assert status == 200, told
    (call,) = told["output"]
    assert (call["type"], call["name"]) == ("function_call", "turn")
    assert set(json.loads(call["arguments"])) == {"on", "which"}
    tool = {"name": "turn", "input_schema": SWITCH}
    asked = {"model": "m", "max_tokens": ROOM, "tools": [tool], "tool_choice": {"type": "any"}}
    asked["messages"] = [{"role": "user", "content": "go"}]
    status, told = await gateway.client("POST", "/v1/messages", asked)
    assert status == 200, told
    assert told["stop_reason"] == "tool_use"
    assert set(told["content"][0]["input"]) == {"on", "which"}


async def test_a_schema_that_cannot_be_followed_is_refused_through_the_gateway(gateway):
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"not": {}}}}
    status, told = await gateway.chat(response_format=wanted)
    assert status == 400
    assert "cannot hold an answer to this schema" in told["error"]["message"]


async def test_llama_cpps_own_server_is_spoken_to_in_its_own_shapes(tmp_path):
    """It has Responses and Messages itself: real clients hear it through the gateway, and all is recorded."""
    import anthropic
    import openai

    from upswing.serve.engines.llama_engine import LlamaEngine, LlamaOptions

    base = cases.make_base(tmp_path / "base", endless=True)
    options = LlamaOptions(slots=2, context=2048, threads=1)
    engine = await LlamaEngine.start(base, tmp_path / "cache", options)
    try:
        runner = next(iter(engine._processes.values()))
        url = f"{runner.address}/v1"
        (name,) = await list_models(url, runner.key)
        found = await probe(url, name, runner.key)
        upstream = model("base", url, called=name, shapes=found.shapes)
        keys = {url: runner.key}
        async with started(plan(upstream), backend_keys=keys) as gateway:
            async with openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key="any") as client:
                whole = await client.responses.create(model="m", input="hi", max_output_tokens=16)
                stream = await client.responses.create(
                    model="m", input="hi", max_output_tokens=16, stream=True
                )
                streamed = [event async for event in stream][-1].response
            assert whole.usage.output_tokens == streamed.usage.output_tokens == 16
            asked = {"model": "m", "max_tokens": 8, "messages": [{"role": "user", "content": "hi"}]}
            async with anthropic.AsyncAnthropic(base_url=gateway.url, api_key="any") as client:
                message = await client.messages.create(**asked)
                async with client.messages.stream(**asked) as stream:
                    again = await stream.get_final_message()
            assert message.usage.output_tokens == again.usage.output_tokens == 8
            assert await gateway.gateway.recorder.flush(60)
    finally:
        await engine.close()
    turns = [turn for made in gateway.recorder.trajectories for turn in made["turns"]]
    assert len(turns) == 4
    reasons = {
        r for made in gateway.recorder.trajectories for r in made["metadata"]["finish_reasons"]
    }
    assert "length" in reasons
    assert reasons <= {"length", "stop"}, "its Responses call a full answer completed"
