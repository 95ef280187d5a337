// Uses an MCP server with the official SDK; one line of JSON for each step.
// Arguments: the variable that holds the server's URL, the transport, then steps.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { attempts } from "./attempt.mjs";

const attempt = attempts(({ code, message, data }) => ({ code, message, data }));
const [variable, transport, ...steps] = process.argv.slice(2);
const url = new URL(process.env[variable]);
const options = { requestInit: { headers: { authorization: "Bearer agents-own" } } };

async function connect() {
  const client = new Client(
    { name: "agent", version: "1" },
    { capabilities: { sampling: {}, elicitation: {} } },
  );
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    model: "m",
    role: "assistant",
    content: { type: "text", text: "sampled by the agent" },
  }));
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: "decline" }));
  await client.connect(
    transport === "sse"
      ? new SSEClientTransport(url, options)
      : new StreamableHTTPClientTransport(url, options),
  );
  return client;
}

const text = ({ content }) => content.map((part) => part.text ?? part.type).join("\n");
let client;
const STEPS = {
  connect: async () => {
    client = await connect();
    return client.getServerVersion().name;
  },
  list: async () => (await client.listTools()).tools.map(({ name }) => name),
  echo: async () => text(await client.callTool({ name: "echo", arguments: { message: "hi" } })),
  env: async () => text(await client.callTool({ name: "get-env", arguments: {} })),
  sum: async () => text(await client.callTool({ name: "get-sum", arguments: { a: 1, b: 2 } })),
  status: async () => text(await client.callTool({ name: "status", arguments: {} })),
  sampling: async () =>
    text(
      await client.callTool({
        name: "trigger-sampling-request",
        arguments: { prompt: "p", maxTokens: 5 },
      }),
    ),
  elicitation: async () =>
    text(await client.callTool({ name: "trigger-elicitation-request", arguments: {} })),
  progress: async () => {
    const seen = [];
    const result = await client.callTool(
      { name: "trigger-long-running-operation", arguments: { duration: 0.3, steps: 3 } },
      undefined,
      { onprogress: ({ progress }) => seen.push(progress) },
    );
    return { seen, text: text(result) };
  },
  cancel: async () => {
    const controller = new AbortController();
    const call = client.callTool(
      { name: "trigger-long-running-operation", arguments: { duration: 60, steps: 600 } },
      undefined,
      { signal: controller.signal, onprogress: () => controller.abort(new Error("enough")) },
    );
    return call.then(
      () => "not cancelled",
      () => "cancelled",
    );
  },
  close: async () => client.close(),
};

for (const step of steps) await attempt(step, STEPS[step]);
process.exit(0);
