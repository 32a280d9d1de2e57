"""Which instrumentation wrote this, and which switch turns its content on?

| emitter        | known by its scope                            | content is in                                     |
|----------------|-----------------------------------------------|---------------------------------------------------|
| `genai`        | `opentelemetry.instrumentation.genai.*`        | `gen_ai.input.messages`, `gen_ai.output.messages` |
| `openai-v2`    | `opentelemetry.instrumentation.openai_v2`      | log records                                       |
| `traceloop`    | `opentelemetry.instrumentation.*`, the others  | as `genai`, or `gen_ai.prompt.N.*`                |
| `pydantic-ai`  | `pydantic-ai`                                  | as `genai`                                        |
| `openinference`| `openinference.*`                              | `llm.input_messages.N.*`                          |
| `vercel-ai`    | `ai`                                           | `ai.prompt.messages`, `ai.response.*`             |
| `other`        | anything else                                  | any of these                                      |

What a span holds decides how it is read (`spans`); the emitter only names it, and the switch.
"""

from __future__ import annotations

_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
SWITCHES = {
    "genai": f"set {_CAPTURE}=SPAN_ONLY",
    "openai-v2": f"set {_CAPTURE}=true and export its log records to /v1/logs, too",
    "traceloop": "set TRACELOOP_TRACE_CONTENT=true",
    "pydantic-ai": "Agent.instrument_all(InstrumentationSettings(include_content=True))",
    "openinference": "unset OPENINFERENCE_HIDE_INPUTS, OPENINFERENCE_HIDE_OUTPUTS and OPENINFERENCE_HIDE_INPUT_MESSAGES",
    "vercel-ai": "experimental_telemetry: { isEnabled: true, recordInputs: true, recordOutputs: true }",
    "other": f"look for the instrumentation's switch, often {_CAPTURE}=SPAN_ONLY",
}
EMITTERS = tuple(SWITCHES)
LIMIT_SWITCH = (
    "set OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=10000 (the SDK's default of 128 cuts long conversations)"
)


def emitter_of(scope: str) -> str:
    """The emitter of an instrumentation scope.

    >>> [emitter_of(scope) for scope in ("opentelemetry.instrumentation.genai.openai 1.3b0", "ai", "my-agent")]
    ['genai', 'vercel-ai', 'other']
    >>> emitter_of("opentelemetry.instrumentation.openai_v2"), emitter_of("opentelemetry.instrumentation.openai.v1 0.62")
    ('openai-v2', 'traceloop')
    """
    name = scope.partition(" ")[0].lower()
    if name == "ai":
        return "vercel-ai"
    if name.startswith("pydantic-ai"):
        return "pydantic-ai"
    if name.startswith("openinference"):
        return "openinference"
    if name.endswith("_v2"):
        return "openai-v2"
    if name.startswith(("opentelemetry.instrumentation.genai", "opentelemetry.util.genai")):
        return "genai"
    if name.startswith("opentelemetry.instrumentation."):
        return "traceloop"
    return "other"


def missing_content(emitter: str, spans: int) -> str:
    """What to do so that the calls of a model can be recorded."""
    what = "1 call of a model has" if spans == 1 else f"{spans} calls of models have"
    return (
        f"{what} no messages in it, so nothing of it is recorded: {SWITCHES[emitter]} ({emitter})."
    )
