"""Do agents work through the gateway by changing their base URL, and nothing else?

Real client packages run an agent with a tool against the labelled scripted backend: it calls the
tool it is offered, and then answers with what the tool returned.
"""

import asyncio
import gc
import json
import threading
import warnings
from random import random
from uuid import uuid4

import pytest

from tests.gateway.conftest import ListKeeper, model, now, plan
from tests.gateway.scripted import Scripted
from upswing.gateway.service import Gateway

pytestmark = pytest.mark.live
KEY = "sk-test-of-the-clients"


class Served:
    """A gateway with the scripted backend, in a thread of its own: clients may block."""

    def __init__(self):
        self.keeper = ListKeeper()
        self._ready, self._stop = threading.Event(), None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    async def _run(self):
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with Scripted() as server:
            self.backend = server
            gateway = Gateway(
                draw=random,
                clock=now, new_id=uuid4, plan=plan(model("base", server.url)), keys={KEY: "tester"},
                keeper=self.keeper,
            )  # fmt: skip
            self.url = await gateway.start(port=0) + "/v1"
            self._ready.set()
            await self._stop.wait()
            await gateway.stop(2)

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_):
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(10)

    def trajectories(self):
        """Everything that was recorded; ends the gateway."""
        self.__exit__()
        return self.keeper.trajectories


@pytest.fixture
def served():
    with Served() as made:
        yield made


def check(served, answer, tool="double", output="42"):
    """The agent used its tool, and the gateway recorded that as one episode."""
    assert output in str(answer)
    told = served.trajectories()
    turns = [turn for trajectory in told for turn in trajectory["turns"]]
    calls = [turn for turn in turns if turn["action"].get("tool_name") == tool]
    assert len(told) == 1, [t["turns"] for t in told]
    assert len(calls) == 1
    assert output in json.dumps(calls[0]["result"]["output"])
    assert told[0]["metadata"]["model"] == "base"


@pytest.fixture(autouse=True)
def _quiet(monkeypatch):
    """Nothing is sent to anybody's tracing, and other people's packages may warn of their affairs."""
    for name in ("OPENAI_AGENTS_DISABLE_TRACING", "LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
        monkeypatch.setenv(name, "1" if name.startswith("OPENAI") else "false")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
        gc.collect()  # what they leave open is closed here, and not in somebody else's test


@pytest.mark.parametrize("stream", [False, True])
def test_the_openai_client(served, stream):
    import openai

    client = openai.OpenAI(base_url=served.url, api_key=KEY)
    tools = [{
        "type": "function",
        "function": {
            "name": "double",
            "parameters": {"type": "object", "properties": {"number": {"type": "integer"}}},
        },
    }]  # fmt: skip
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
    assert {m.id for m in client.models.list()} == {"base"}
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
