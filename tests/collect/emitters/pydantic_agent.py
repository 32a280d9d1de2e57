"""pydantic-ai, which traces its own agents, model calls and tools."""

from agent import QUESTION, send_spans
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel

provider = send_spans()
Agent.instrument_all()
agent = Agent(
    OpenAIChatModel("scripted", settings={"temperature": 0.5}),
    name="adder",
    system_prompt="You add numbers with your tool.",
)


@agent.tool_plain
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


print(agent.run_sync(QUESTION).output)
provider.shutdown()
