// The client under test of the conformance suite's client scenarios, with the official SDK.
// Arguments: scenario, revision, context (JSON, or empty), URL.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [scenario, revision, context, url] = process.argv.slice(2);
const isStateless = revision === "2026-07-28";
const INFO = { name: "test-client", version: "1.0.0" };

/** Some scenarios have no server/discover: their server is known to be stateless. */
async function knownStateless(input, init) {
  const message = typeof init?.body === "string" ? JSON.parse(init.body) : undefined;
  if (message?.method !== "server/discover") return fetch(input, init);
  const result = {
    supportedVersions: ["2026-07-28"],
    capabilities: { tools: { listChanged: true }, resources: {}, prompts: {} },
    _meta: { "io.modelcontextprotocol/serverInfo": INFO },
  };
  return Response.json({ jsonrpc: "2.0", id: message.id, result });
}

async function connect(capabilities = {}, options = {}) {
  const mode = isStateless ? { versionNegotiation: { mode: "auto" } } : {};
  const client = new Client(INFO, { capabilities, ...mode });
  if (capabilities.elicitation !== undefined) {
    client.setRequestHandler("elicitation/create", () => ({
      action: "accept",
      content: isStateless ? { confirmed: true } : {},
    }));
  }
  await client.connect(new StreamableHTTPClientTransport(new URL(url), options));
  return client;
}

const call = (client, name, args = {}) => client.callTool({ name, arguments: args });

const SCENARIOS = {
  initialize: async () => {
    const client = await connect();
    await client.listTools();
    return client;
  },
  tools_call: async () => {
    const client = await connect();
    await client.listTools();
    await call(client, "add_numbers", { a: 5, b: 3 });
    return client;
  },
  "elicitation-sep1034-client-defaults": async () => {
    const client = await connect({
      elicitation: { applyDefaults: true, form: { applyDefaults: true } },
    });
    const { tools } = await client.listTools();
    for (const { name } of tools) await call(client, name);
    return client;
  },
  "sse-retry": async () => {
    const client = await connect();
    await call(client, "test_reconnection");
    return client;
  },
  "request-metadata": () =>
    connect({ roots: { listChanged: true }, sampling: {}, elicitation: {} }),
  "http-standard-headers": async () => {
    const client = await connect({}, { fetch: knownStateless });
    const { tools } = await client.listTools();
    await call(client, tools[0].name);
    const { resources } = await client.listResources();
    await client.readResource({ uri: resources[0].uri });
    const { prompts } = await client.listPrompts();
    await client.getPrompt({ name: prompts[0].name, arguments: {} });
    return client;
  },
  "http-custom-headers": async () => {
    const client = await connect({}, { fetch: knownStateless });
    await client.listTools();
    const { toolCalls = [] } = context === "" ? {} : JSON.parse(context);
    for (const { name, arguments: args } of toolCalls) await call(client, name, args);
    return client;
  },
  "http-invalid-tool-headers": async () => {
    const client = await connect({}, { fetch: knownStateless });
    const { tools } = await client.listTools();
    for (const { name } of tools)
      await call(client, name, { region: "us-west1" }).catch(() => undefined);
    return client;
  },
  "sep-2322-client-request-state": async () => {
    const client = await connect({ elicitation: {} }, { fetch: knownStateless });
    for (const name of ["echo_state", "no_state", "unrelated", "no_result_type"])
      await call(client, `test_mrtr_${name}`).catch(() => undefined);
    return client;
  },
  "json-schema-ref-no-deref": async () => {
    const client = await connect();
    await client.listTools();
    return client;
  },
  "json-schema-2020-12-preservation": async () => {
    const client = await connect();
    const { tools } = await client.listTools();
    const focal = tools.find(({ name }) => name === "json_schema_2020_12_tool");
    await call(client, "json_schema_echo", { schema: focal.inputSchema });
    return client;
  },
};

const client = await SCENARIOS[scenario]();
await client.close();
