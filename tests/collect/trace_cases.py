"""Traces of agents as each instrumentation writes them: one conversation, told in every dialect."""

import json
from dataclasses import dataclass, field

from hypothesis import strategies as st

BEGIN = 1_770_000_000 * 10**9
STEP = 10**9


@dataclass
class Call:
    """What a model was asked and what it answered; the tool's results follow in the next call."""

    answer: dict
    results: list = field(default_factory=list)
    follow_up: str | None = None


@dataclass
class Talk:
    """One conversation of one agent."""

    system: str
    question: str
    calls: list

    def histories(self):
        """What each call read, without the instructions, and what it answered."""
        read = [{"role": "user", "content": self.question}]
        for call in self.calls:
            yield list(read), call.answer
            read += [call.answer, *call.results]
            if call.follow_up:
                read.append({"role": "user", "content": call.follow_up})


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=20)
NAMED = st.sampled_from(["add", "search", "buy"])
ARGUMENTS = st.dictionaries(st.sampled_from("abc"), st.integers(-9, 9) | WORDS, max_size=2)


@st.composite
def talks(draw, most=4):
    """Conversations whose messages all differ, so that a turn that is there twice is seen."""
    calls, count = [], draw(st.integers(1, most))
    for number in range(count):
        last = number == count - 1
        tools = [] if last else draw(st.lists(st.tuples(NAMED, ARGUMENTS), max_size=2))
        answer = {"role": "assistant", "content": f"{draw(WORDS)} a{number}"}
        if tools:
            answer["tool_calls"] = [
                {
                    "id": f"call_{number}_{place}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(arguments)},
                }
                for place, (name, arguments) in enumerate(tools)
            ]
        results = [
            {
                "role": "tool",
                "tool_call_id": call["id"],
                "content": f"{draw(WORDS)} r{number}{place}",
            }
            for place, call in enumerate(answer.get("tool_calls", ()))
        ]
        follow_up = None if tools or last else f"{draw(WORDS)} f{number}"
        calls.append(Call(answer, results, follow_up))
    return Talk(draw(st.sampled_from(["", "Be brief."])), f"{draw(WORDS)} q", calls)


# --- dialects ------------------------------------------------------------------------------------


def parts(message):
    if message["role"] == "tool":
        made = [
            {
                "type": "tool_call_response",
                "id": message["tool_call_id"],
                "response": message["content"],
            }
        ]
        return {"role": "tool", "parts": made}
    made = [{"type": "text", "content": message["content"]}] if message["content"] else []
    for call in message.get("tool_calls", ()):
        arguments = json.loads(call["function"]["arguments"])
        made.append(
            {
                "type": "tool_call",
                "id": call["id"],
                "name": call["function"]["name"],
                "arguments": arguments,
            }
        )
    return {"role": message["role"], "parts": made}


def conventions(system, read, answer):
    before = [{"role": "system", "content": system}] if system else []
    return "opentelemetry.instrumentation.genai.openai", {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps([parts(each) for each in [*before, *read]]),
        "gen_ai.output.messages": json.dumps([{**parts(answer), "finish_reason": "stop"}]),
    }


def instructions_apart(system, read, answer):
    """As pydantic-ai does."""
    _, about = conventions("", read, answer)
    if system:
        about["gen_ai.system_instructions"] = json.dumps([{"type": "text", "content": system}])
    return "pydantic-ai", about


def flat(prefix, messages):
    about = {}
    for number, each in enumerate(messages):
        base = f"{prefix}.{number}.message"
        about[f"{base}.role"] = each["role"]
        if each["content"]:
            about[f"{base}.content"] = each["content"]
        if "tool_call_id" in each:
            about[f"{base}.tool_call_id"] = each["tool_call_id"]
        for place, call in enumerate(each.get("tool_calls", ())):
            where = f"{base}.tool_calls.{place}.tool_call"
            about[f"{where}.id"] = call["id"]
            about[f"{where}.function.name"] = call["function"]["name"]
            about[f"{where}.function.arguments"] = call["function"]["arguments"]
    return about


def openinference(system, read, answer):
    before = [{"role": "system", "content": system}] if system else []
    return "openinference.instrumentation.openai", {
        "openinference.span.kind": "LLM",
        **flat("llm.input_messages", [*before, *read]),
        **flat("llm.output_messages", [answer]),
    }


def vercel_message(each):
    if each["role"] == "tool":
        output = {"type": "text", "value": each["content"]}
        part = {"type": "tool-result", "toolCallId": each["tool_call_id"], "output": output}
        return {"role": "tool", "content": [part]}
    made = [{"type": "text", "text": each["content"]}] if each["content"] else []
    made += [
        {
            "type": "tool-call",
            "toolCallId": call["id"],
            "toolName": call["function"]["name"],
            "input": json.loads(call["function"]["arguments"]),
        }
        for call in each.get("tool_calls", ())
    ]
    return {"role": each["role"], "content": made}


def vercel(system, read, answer):
    before = [{"role": "system", "content": system}] if system else []
    calls = [
        {
            "toolCallId": call["id"],
            "toolName": call["function"]["name"],
            "input": call["function"]["arguments"],
        }
        for call in answer.get("tool_calls", ())
    ]
    return "ai", {
        "ai.prompt.messages": json.dumps([*before, *map(vercel_message, read)]),
        "ai.response.text": answer["content"],
        **({"ai.response.toolCalls": json.dumps(calls)} if calls else {}),
    }


DIALECTS = {
    "conventions": (conventions, "chat m"),
    "instructions apart": (instructions_apart, "chat m"),
    "openinference": (openinference, "ChatCompletion"),
    "vercel": (vercel, "ai.generateText.doGenerate"),
}


# --- spans ---------------------------------------------------------------------------------------


def span(
    trace_id, span_id, parent=None, *, scope="my-agent", name="task", about=None, at=0, **more
):
    """A span in OTLP's JSON, and the scope that it belongs to."""
    return scope, {
        "traceId": trace_id,
        "spanId": span_id,
        **({"parentSpanId": parent} if parent else {}),
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(BEGIN + at * STEP),
        "endTimeUnixNano": str(BEGIN + at * STEP + STEP // 2),
        "attributes": [{"key": key, "value": value(each)} for key, each in (about or {}).items()],
        **more,
    }


def value(each):
    match each:
        case bool():
            return {"boolValue": each}
        case int():
            return {"intValue": str(each)}
        case float():
            return {"doubleValue": each}
        case list():
            return {"arrayValue": {"values": [value(part) for part in each]}}
        case dict():
            pairs = [{"key": key, "value": value(part)} for key, part in each.items()]
            return {"kvlistValue": {"values": pairs}}
        case _:
            return {"stringValue": str(each)}


def spans_of(talk, dialect="conventions", trace_id="a" * 32, root="f" * 16, first=1):
    """The root of a trace and a span for each call, children first, as they come."""
    tell, name = DIALECTS[dialect]
    made = []
    for number, (read, answer) in enumerate(talk.histories()):
        scope, about = tell(talk.system, read, answer)
        about |= {"gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 7}
        about |= {"gen_ai.usage.output_tokens": 3}
        made.append(
            span(
                trace_id,
                f"{first + number:016x}",
                root,
                scope=scope,
                name=name,
                about=about,
                at=1 + 2 * number,
            )
        )
    return [*made, span(trace_id, root, at=0)]


def export(spans, service="shop"):
    """OTLP's JSON of these spans."""
    return {
        "resourceSpans": [
            {
                "resource": {
                    "attributes": [{"key": "service.name", "value": {"stringValue": service}}]
                },
                "scopeSpans": [
                    {"scope": {"name": scope}, "spans": [each]} for scope, each in spans
                ],
            }
        ]
    }
