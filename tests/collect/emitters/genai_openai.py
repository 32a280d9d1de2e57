"""opentelemetry-instrumentation-genai-openai: content in span attributes."""

from agent import run, send_spans
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor

provider = send_spans()
OpenAIInstrumentor().instrument()
run(provider)
