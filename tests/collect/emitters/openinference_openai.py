"""OpenInference's instrumentation of openai: messages as flat attributes."""

from agent import run, send_spans
from openinference.instrumentation.openai import OpenAIInstrumentor

provider = send_spans()
OpenAIInstrumentor().instrument(tracer_provider=provider)
run(provider)
