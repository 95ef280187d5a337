/** The official clients through the gateway, against the official example server. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type EverythingServer, startEverything } from "../support/mcp/everything.ts";
import { mcpKeyYaml, mcpProviderYaml } from "../support/mcp/resources.ts";
import { rawKey } from "../support/resources.ts";
import { Stack } from "../support/stack.ts";

let stack: Stack;
let server: EverythingServer;

beforeAll(async () => {
  server = await startEverything("streamableHttp");
  stack = await Stack.start({
    files: {
      "server.yaml": mcpProviderYaml("everything", {
        url: server.url,
        spec: ["policy: {mcp: {deniedTools: [get-env]}}"],
      }),
      "key.yaml": mcpKeyYaml("laptop", "everything"),
    },
  });
});

afterAll(async () => {
  await stack?.stop();
  await server?.stop();
});

async function connect(): Promise<Client> {
  const client = new Client({ name: "test", version: "1" }, { capabilities: {} });
  const url = new URL(`${stack.externalUrl}/ext/mcp/everything`);
  const headers = { authorization: `Bearer ${rawKey("laptop")}` };
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  return client;
}

test("tools are listed without the denied one, called, and denied", async () => {
  const client = await connect();
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toContain("echo");
  expect(tools.map(({ name }) => name)).not.toContain("get-env");
  const answer = await client.callTool({ name: "echo", arguments: { message: "hello" } });
  expect(JSON.stringify(answer.content)).toContain("hello");
  await expect(client.callTool({ name: "get-env", arguments: {} })).rejects.toThrow(
    /not allowed by the policy/,
  );
  await client.close();
});
