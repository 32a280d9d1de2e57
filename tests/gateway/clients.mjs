// Real JavaScript clients at their defaults: what each of them made of the scripted backend, as JSON.
//
//   node clients.mjs CLIENT URL KEY     in a folder where the packages are installed
import { createRequire } from "node:module";
import path from "node:path";

const [client, url, key] = process.argv.slice(2);
const root = createRequire(path.join(process.cwd(), "package.json"));
const load = async (name) => {
  const found = await import(root.resolve(name));
  return found.default && found.default.__esModule ? found.default : found;
};
const double = (number) => String(2 * number);
const question = "Double 21.";
const schema = {
  type: "object",
  properties: { number: { type: "integer" } },
  required: ["number"],
  additionalProperties: false,
};

async function openaiResponses(stream) {
  const { OpenAI } = await load("openai");
  const openai = new OpenAI({ baseURL: url, apiKey: key });
  const tools = [{ type: "function", name: "double", description: "Twice.", parameters: schema, strict: true }];
  const input = [{ role: "user", content: question }];
  const ask = async () =>
    stream
      ? await openai.responses.stream({ model: "agent", input, tools }).finalResponse()
      : await openai.responses.create({ model: "agent", input, tools });
  const first = await ask();
  const call = first.output.find((item) => item.type === "function_call");
  input.push(...first.output);
  const output = double(JSON.parse(call.arguments).number);
  input.push({ type: "function_call_output", call_id: call.call_id, output });
  const second = await ask();
  return { answer: second.output_text, usage: second.usage.total_tokens };
}

async function aiSdk(stream) {
  const { generateText, streamText, tool, stepCountIs, jsonSchema } = await load("ai");
  const { createOpenAI } = await load("@ai-sdk/openai");
  const model = createOpenAI({ baseURL: url, apiKey: key })("agent");
  const tools = {
    double: tool({
      description: "Twice the number.",
      inputSchema: jsonSchema(schema),
      execute: async ({ number }) => double(number),
    }),
  };
  const ask = async (messages) => {
    const asked = { model, messages, tools, stopWhen: stepCountIs(3) };
    if (!stream) return await generateText(asked);
    const streamed = streamText(asked);
    await streamed.consumeStream({ onError: (error) => { throw error; } });
    return { text: await streamed.text, response: await streamed.response, usage: await streamed.usage };
  };
  const messages = [{ role: "user", content: question }];
  const first = await ask(messages);
  // The next turn of the same chat: by default it refers to the answer before by its id.
  messages.push(...first.response.messages, { role: "user", content: "Again?" });
  const second = await ask(messages);
  return { answer: first.text, again: second.text, usage: first.usage.totalTokens };
}

async function anthropic(stream) {
  const { default: Anthropic } = await load("@anthropic-ai/sdk");
  const client = new Anthropic({ baseURL: url.replace(/\/v1$/, ""), apiKey: key });
  const tools = [{ name: "double", description: "Twice.", input_schema: schema }];
  const messages = [{ role: "user", content: question }];
  const ask = async () => {
    const asked = { model: "agent", max_tokens: 100, tools, messages };
    return stream ? await client.messages.stream(asked).finalMessage() : await client.messages.create(asked);
  };
  const first = await ask();
  const call = first.content.find((block) => block.type === "tool_use");
  messages.push({ role: "assistant", content: first.content });
  const content = double(call.input.number);
  messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content }] });
  const second = await ask();
  return { answer: second.content[0].text, usage: second.usage.output_tokens };
}

const runs = {
  "openai": () => openaiResponses(false),
  "openai-stream": () => openaiResponses(true),
  "ai-sdk": () => aiSdk(false),
  "ai-sdk-stream": () => aiSdk(true),
  "anthropic": () => anthropic(false),
  "anthropic-stream": () => anthropic(true),
};
console.log(JSON.stringify(await runs[client]()));
