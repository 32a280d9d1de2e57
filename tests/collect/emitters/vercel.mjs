// Vercel's AI SDK: its own spans around the task, each call of the model and each tool.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import { generateText, stepCountIs, tool } from 'ai'
import { z } from 'zod'

const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] })
provider.register()
const models = createOpenAICompatible({ name: 'scripted', baseURL: process.env.OPENAI_BASE_URL, apiKey: process.env.OPENAI_API_KEY })
const { text } = await generateText({
  model: models.chatModel('scripted'),
  system: 'You add numbers with your tool.',
  prompt: 'What is 2 + 3? Mail the answer to ann@example.org.',
  temperature: 0.5,
  stopWhen: stepCountIs(4),
  tools: {
    add: tool({
      description: 'Add two numbers.',
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      execute: async ({ a, b }) => String(a + b),
    }),
  },
  experimental_telemetry: { isEnabled: true, functionId: 'adder' },
})
console.log(text)
await provider.shutdown()
