"""Do agents work through the gateway whose clients speak OpenAI's Responses or Anthropic's Messages, as they are?

Real client packages at their defaults run an agent with a tool against the labelled scripted backend, which
speaks chat completions alone: what they hear is translated.
"""

import asyncio
import json

import pytest

from tests.gateway.served import KEY, check

pytestmark = pytest.mark.live
TOOL = {
    "name": "double",
    "description": "Twice the number.",
    "parameters": {"type": "object", "properties": {"number": {"type": "integer"}}},
}
FUNCTION = {"type": "function", **TOOL}
MESSAGES_TOOL = {
    "name": "double",
    "description": "Twice the number.",
    "input_schema": TOOL["parameters"],
}


def twice(arguments):
    value = json.loads(arguments) if isinstance(arguments, str) else arguments
    return str(2 * value["number"])


@pytest.mark.parametrize("stream", [False, True])
def test_the_openai_clients_responses(served, stream):
    import openai

    asked = {"model": "agent", "tools": [FUNCTION], "instructions": "Use the tool."}

    def ask(client, items):
        if not stream:
            return client.responses.create(input=items, **asked)
        with client.responses.stream(input=items, **asked) as events:
            kinds = [event.type for event in events]
            assert kinds[:2] == ["response.created", "response.in_progress"]
            assert kinds[-1] == "response.completed"
            return events.get_final_response()

    with openai.OpenAI(base_url=served.url, api_key=KEY) as client:
        items = [{"role": "user", "content": "Double 21."}]
        first = ask(client, items)
        (call,) = first.output
        assert (call.type, call.name) == ("function_call", "double")
        result = {"type": "function_call_output", "call_id": call.call_id}
        items += [call.to_dict(), result | {"output": twice(call.arguments)}]
        second = ask(client, items)
        assert (second.status, second.usage.input_tokens) == ("completed", 20)
        assert client.models.retrieve("base").id == "base"
    check(served, second.output_text)


@pytest.mark.parametrize("streamed", [False, True])
def test_openai_agents(served, streamed):
    import agents
    import openai

    @agents.function_tool
    def double(number: int) -> int:
        """Twice the number."""
        return 2 * number

    async def run():
        client = openai.AsyncOpenAI(base_url=served.url, api_key=KEY)
        agents.set_default_openai_client(client, use_for_tracing=False)
        agent = agents.Agent(name="doubler", instructions="Use the tool.", tools=[double])
        if streamed:
            result = agents.Runner.run_streamed(agent, "Double 21.")
            async for _ in result.stream_events():
                pass
        else:
            result = await agents.Runner.run(agent, "Double 21.")
        await client.close()
        return result.final_output

    agents.set_tracing_disabled(True)
    check(served, asyncio.run(run()))


@pytest.mark.parametrize("streamed", [False, True])
def test_pydantic_ai(served, streamed):
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    responses = OpenAIResponsesModel(
        "agent", provider=OpenAIProvider(base_url=served.url, api_key=KEY)
    )
    agent = Agent(responses, instructions="Use the tool.")

    @agent.tool_plain
    def double(number: int) -> int:
        """Twice the number."""
        return 2 * number

    async def run():
        if not streamed:
            return (await agent.run("Double 21.")).output
        async with agent.run_stream("Double 21.") as result:
            return await result.get_output()

    check(served, asyncio.run(run()))


@pytest.mark.parametrize("streaming", [False, True])
def test_langchain_responses(served, streaming):
    import langchain_openai
    from langchain.agents import create_agent
    from langchain_core.tools import tool

    @tool
    def double(number: int) -> int:
        """Twice the number."""
        return 2 * number

    responses = langchain_openai.ChatOpenAI(
        model="agent",
        base_url=served.url,
        api_key=KEY,
        use_responses_api=True,
        streaming=streaming,
    )
    graph = create_agent(responses, [double])
    answer = graph.invoke({"messages": [{"role": "user", "content": "Double 21."}]})
    check(served, answer["messages"][-1].text)


@pytest.mark.parametrize("header", ["api_key", "auth_token"])
@pytest.mark.parametrize("stream", [False, True])
def test_anthropics_client(served, stream, header):
    import anthropic

    asked = {"model": "agent", "max_tokens": 100, "tools": [MESSAGES_TOOL], "system": "Use it."}

    def ask(client, messages):
        if not stream:
            return client.messages.create(messages=messages, **asked)
        with client.messages.stream(messages=messages, **asked) as events:
            for _ in events:
                pass
            return events.get_final_message()

    url = served.url.removesuffix("/v1")
    with anthropic.Anthropic(base_url=url, **{header: KEY}) as client:
        messages = [{"role": "user", "content": "Double 21."}]
        first = ask(client, messages)
        assert first.stop_reason == "tool_use"
        (call,) = first.content
        block = {"type": "tool_result", "tool_use_id": call.id, "content": twice(call.input)}
        messages += [
            {"role": "assistant", "content": [each.to_dict() for each in first.content]},
            {"role": "user", "content": [block]},
        ]
        second = ask(client, messages)
        assert (second.stop_reason, second.usage.output_tokens) == ("end_turn", 5)
        assert [each.id for each in client.models.list()] == ["base", "upswing"]
        assert client.models.retrieve("base").display_name == "base"
    check(served, second.content[0].text)


def test_anthropics_tool_runner(served):
    import anthropic

    @anthropic.beta_tool
    def double(number: int) -> str:
        """Twice the number."""
        return str(2 * number)

    url = served.url.removesuffix("/v1")
    with anthropic.Anthropic(base_url=url, api_key=KEY) as client:
        runner = client.beta.messages.tool_runner(
            model="agent",
            max_tokens=100,
            tools=[double],
            messages=[{"role": "user", "content": "Double 21."}],
        )
        answer = runner.until_done()
    check(served, answer.content[0].text)


def test_anthropics_client_reads_our_errors(served):
    import anthropic

    url, hi = served.url.removesuffix("/v1"), {"role": "user", "content": "hi"}
    asked = {"model": "m", "max_tokens": 5, "messages": [hi]}
    with anthropic.Anthropic(base_url=url, api_key="wrong", max_retries=0) as client:
        with pytest.raises(anthropic.AuthenticationError, match="key of this gateway") as found:
            client.messages.create(**asked)
        assert found.value.type == "authentication_error"
    with anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0) as client:
        with pytest.raises(anthropic.BadRequestError, match="`role` of a message"):
            client.messages.create(**(asked | {"messages": [hi | {"role": "judge"}]}))
        tool = {"type": "web_search_20250305", "name": "web_search"}
        with pytest.raises(anthropic.BadRequestError, match="web_search"):
            client.messages.create(**asked, tools=[tool])


def test_the_openai_client_hears_that_nothing_is_stored(served):
    import openai

    with openai.OpenAI(base_url=served.url, api_key=KEY, max_retries=0) as client:
        with pytest.raises(openai.BadRequestError, match="send the whole conversation in `input`"):
            client.responses.create(model="m", input="hi", previous_response_id="resp_1")
        with pytest.raises(openai.NotFoundError, match="whoever answers now"):
            client.models.retrieve("org/unknown")
        assert client.models.retrieve("upswing").id == "upswing"
