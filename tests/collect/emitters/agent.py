"""An agent with one tool, as people write them around the openai client; the instrumentations see what it sends.

It finds the model by OPENAI_BASE_URL, and the loop by the standard's own variables (OTEL_EXPORTER_OTLP_ENDPOINT and
…_HEADERS). Nothing here imports upswing: it runs in an emitter's own environment.
"""

import json
import os

from openai import OpenAI
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Add two numbers.",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                "required": ["a", "b"],
            },
        },
    }
]
QUESTION = "What is 2 + 3? Mail the answer to ann@example.org."


def send_spans():
    """The provider whose spans go to the loop."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider


def work():
    """Ask, add, ask again: two calls of the model, the second with the whole history."""
    client = OpenAI()
    messages = [
        {"role": "system", "content": "You add numbers with your tool."},
        {"role": "user", "content": QUESTION},
    ]
    for _ in range(4):
        answer = client.chat.completions.create(
            model="scripted", messages=messages, tools=TOOLS, temperature=0.5
        )
        message = answer.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            print(message.content)
            return
        for call in message.tool_calls:
            numbers = json.loads(call.function.arguments)
            total = sum(number for number in numbers.values() if isinstance(number, int))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": str(total)})


def run(provider):
    """With a span around the task, unless UPSWING_BARE is set: then each call is a trace of its own."""
    if os.environ.get("UPSWING_BARE"):
        work()
    else:
        with trace.get_tracer("my-agent").start_as_current_span("task"):
            work()
    provider.shutdown()
