"""Do agents work through the gateway by changing their base URL, and nothing else?

Real client packages run an agent with a tool against the labelled scripted backend: it calls the
tool it is offered, and then answers with what the tool returned.
"""

import asyncio
import json

import pytest

from tests.gateway.served import KEY, check

pytestmark = pytest.mark.live


@pytest.mark.parametrize("stream", [False, True])
def test_the_openai_client(served, stream):
    import openai

    client = openai.OpenAI(base_url=served.url, api_key=KEY)
    tools = [
        {
            "type": "function",
            "function": {
                "name": "double",
                "parameters": {"type": "object", "properties": {"number": {"type": "integer"}}},
            },
        }
    ]
    messages = [{"role": "user", "content": "Double 21."}]
    asked = {"model": "agent", "tools": tools}
    if stream:
        with client.chat.completions.stream(messages=messages, **asked) as events:
            for _ in events:
                pass
            first = events.get_final_completion().choices[0].message
    else:
        first = client.chat.completions.create(messages=messages, **asked).choices[0].message
    call = first.tool_calls[0]
    result = str(2 * json.loads(call.function.arguments)["number"])
    messages += [
        {
            "role": "assistant",
            "content": first.content,
            "tool_calls": [call.model_dump(include={"id", "type", "function"})],
        },
        {"role": "tool", "tool_call_id": call.id, "content": result},
    ]
    if stream:
        parts = client.chat.completions.create(messages=messages, stream=True, **asked)
        answer = "".join(p.choices[0].delta.content or "" for p in parts if p.choices)
    else:
        answer = (
            client.chat.completions.create(messages=messages, **asked).choices[0].message.content
        )
    assert {m.id for m in client.models.list()} == {"base", "upswing"}
    client.close()
    check(served, answer)


def test_the_openai_client_reads_our_errors(served):
    import openai

    with openai.OpenAI(base_url=served.url, api_key="wrong", max_retries=0) as client:
        with pytest.raises(openai.AuthenticationError, match="key of this gateway"):
            client.chat.completions.create(model="m", messages=[])
    with openai.OpenAI(base_url=served.url, api_key=KEY, max_retries=0) as client:
        with pytest.raises(openai.BadRequestError, match="messages"):
            client.chat.completions.create(model="m", messages=[], extra_body={"messages": "hi"})


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
        chat = agents.OpenAIChatCompletionsModel(model="agent", openai_client=client)
        agent = agents.Agent(
            name="doubler", instructions="Use the tool.", tools=[double], model=chat
        )
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


def test_pydantic_ai(served):
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    chat = OpenAIChatModel("agent", provider=OpenAIProvider(base_url=served.url, api_key=KEY))
    agent = Agent(chat, instructions="Use the tool.")

    @agent.tool_plain
    def double(number: int) -> int:
        """Twice the number."""
        return 2 * number

    async def run():
        return (await agent.run("Double 21.")).output

    check(served, asyncio.run(run()))


def test_langgraph(served):
    import langchain_openai
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langgraph.graph.state import CompiledStateGraph

    @tool
    def double(number: int) -> int:
        """Twice the number."""
        return 2 * number

    chat = langchain_openai.ChatOpenAI(model="agent", base_url=served.url, api_key=KEY)
    graph = create_agent(chat, [double])
    assert isinstance(graph, CompiledStateGraph)
    answer = graph.invoke({"messages": [{"role": "user", "content": "Double 21."}]})
    check(served, answer["messages"][-1].content)


def test_smolagents(served):
    import smolagents

    @smolagents.tool
    def double(number: int) -> int:
        """Twice the number.

        Args:
            number: What is to be doubled.
        """
        return 2 * number

    chat = smolagents.OpenAIServerModel(model_id="agent", api_base=served.url, api_key=KEY)
    agent = smolagents.ToolCallingAgent(tools=[double], model=chat, verbosity_level=0)
    check(served, agent.run("Double 21."))
