"""What does the plugin cost Agent Zero, and how soon is a finished request with the loop?

Agent Zero's objects are stood in for; the moments are those of a turn in their order, with a system prompt of 35 KB (what
Agent Zero 1.7 has), an answer of 1 KB and a tool's result of 4 KB. "A turn" is the sum of the plugin's time in the agent's thread,
while nothing else is recorded; "with the loop" is from the end of a request to its arrival at an HTTP server on the same machine:
redacted by the real rules, spooled, sent.
"""

import json
import statistics
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

from bench.harness import Row, versions
from bench.recorder import _p99, _server

REQUESTS, TURNS = 200, 10
_SYSTEM = "You solve tasks with tools; every answer is one JSON object and nothing else. " * 450
_RESULT = "src/upswing/gateway/chat.py: 252 lines, last changed yesterday. " * 64
_RAW = json.dumps({"thoughts": ["I look. " * 100], "tool_name": "search", "tool_args": {"q": "x"}})


class _Context:
    there: ClassVar = {}

    def __init__(self, name):
        self.id, self.data = name, {}
        _Context.there = {name: self}

    @classmethod
    def get(cls, name):
        return cls.there.get(name)


def rows() -> list[Row]:
    from upswing.integrations.agent_zero.connection import FORM
    from upswing.integrations.agent_zero.plugin import AgentZeroPlugin
    from upswing.sdk import Recorder

    arrived: list[float] = []
    server = _server(arrived)
    with tempfile.TemporaryDirectory() as folder:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        plugin = AgentZeroPlugin(
            Path(folder),
            make_recorder=lambda _, place: Recorder(url=url, key="k", spool=place / "spool"),
        )

        def tell(point, agent, **values):
            plugin.tell(FORM, point, agent, values)

        _request(tell, "warm", [])
        plugin.recorder.flush(60)
        arrived.clear()
        turns, waits = [], []
        for number in range(REQUESTS):
            ended = _request(tell, f"chat{number}", turns)
            plugin.recorder.flush(60)
            waits.append(arrived[-1] - ended)
        lost = plugin.recorder.stats.errors + plugin.recorder.stats.dropped
        lost += sum(plugin.stats.errors.values())
        plugin.recorder.close()
    server.shutdown()
    server.server_close()
    failure = f"{lost} requests or moments were lost" if lost else ""
    return [
        _row(
            "Agent Zero: the plugin in a turn, mean", statistics.fmean(turns) * 1000, 2.0, failure
        ),
        _row("Agent Zero: the plugin in a turn, p99", _p99(turns), 2.0, failure),
        _row("Agent Zero: from the answer to the loop, p99", _p99(waits), 100.0, failure),
    ]


def _row(name, value, target, failure):
    return Row(
        name=name,
        value=value,
        target=target,
        better="lower",
        unit="ms",
        versions=versions(),
        failure=failure,
    )


def _request(tell, name, times) -> float:
    """One request of ten turns; when it ended."""
    agent = SimpleNamespace(
        context=_Context(name),
        number=0,
        agent_name="A0",
        config=SimpleNamespace(profile="agent0"),
        data={},
        last_user_message=SimpleNamespace(content={"user_message": "Look for it."}),
    )
    agent.loop_data = SimpleNamespace(
        system=[_SYSTEM],
        history_output=[{"ai": False, "content": "Look for it."}],
        params_temporary={},
        current_tool=None,
    )
    tell("monologue_start", agent, loop_data=agent.loop_data)
    for number in range(TURNS):
        tool = "response" if number == TURNS - 1 else "search"
        began = time.perf_counter()
        model = SimpleNamespace(
            model_name="openai/upswing", kwargs={"api_base": "http://127.0.0.1:3000/v1"}
        )
        tell("chat_model_call_before", agent, call_data={"model": model})
        tell("chat_model_call_after", agent, call_data={}, response=_RAW, reasoning="")
        tell("tool_execute_before", agent, tool_name=tool, tool_args={"q": "x"})
        tell("tool_execute_after", agent, tool_name=tool, response=SimpleNamespace(message=_RESULT))
        tell("message_loop_end", agent)
        times.append(time.perf_counter() - began)
    began = time.perf_counter()
    tell("monologue_end", agent)
    times[-1] += time.perf_counter() - began
    return began
