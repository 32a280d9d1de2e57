"""Traceloop's opentelemetry-instrumentation-openai: content in span attributes unless it is switched off."""

from agent import run, send_spans
from opentelemetry.instrumentation.openai import OpenAIInstrumentor

provider = send_spans()
OpenAIInstrumentor().instrument()
run(provider)
