/**
 * The official clients of two major versions, over both transports, against the official example
 * server of each transport: everything that passes without a gateway passes through it.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLIENTS, type ClientTransportKind, type TestClient } from "../support/mcp/clients.ts";
import { type EverythingServer, startEverything } from "../support/mcp/everything.ts";
import { mcpKeyYaml, mcpProviderYaml } from "../support/mcp/resources.ts";
import { rawKey } from "../support/resources.ts";
import { Stack } from "../support/stack.ts";

const UPSTREAMS = ["http", "sse"] as const;
const TRANSPORTS: readonly ClientTransportKind[] = ["http", "sse"];
const DENIED = "policy: {mcp: {deniedTools: [get-env]}}";

let stack: Stack;
let servers: Readonly<Record<(typeof UPSTREAMS)[number], EverythingServer>>;

beforeAll(async () => {
  servers = { http: await startEverything("streamableHttp"), sse: await startEverything("sse") };
  const files: Record<string, string> = {};
  for (const transport of UPSTREAMS) {
    const { url } = servers[transport];
    files[`${transport}.yaml`] = mcpProviderYaml(transport, { url, transport, spec: [DENIED] });
    files[`${transport}-key.yaml`] = mcpKeyYaml(`to-${transport}`, transport);
  }
  stack = await Stack.start({ files });
});

afterAll(async () => {
  await stack?.stop();
  for (const server of Object.values(servers ?? {})) await server.stop();
});

const combinations = Object.keys(CLIENTS).flatMap((version) =>
  TRANSPORTS.flatMap((transport) =>
    UPSTREAMS.map((upstream) => [version as keyof typeof CLIENTS, transport, upstream] as const),
  ),
);

describe.each(combinations)("client %s over %s, server over %s", (version, transport, upstream) => {
  let client: TestClient;

  beforeAll(async () => {
    client = await CLIENTS[version]({
      urls: [`${stack.externalUrl}/ext/mcp/${upstream}`],
      key: rawKey(`to-${upstream}`),
      transport,
    });
  });

  afterAll(async () => client?.close());

  test("lists tools without the denied one", async () => {
    const tools = await client.listTools();
    expect(tools).toContain("echo");
    expect(tools).not.toContain("get-env");
  });

  test("calls a tool", async () => {
    expect(await client.callTool("echo", { message: "hello" })).toContain("hello");
    await client.ping();
  });

  test("shows the error of a denied one", async () => {
    await expect(client.callTool("get-env")).rejects.toThrow(
      "The tool get-env is not allowed by the policy of the MCP server",
    );
    expect(await client.callTool("echo", { message: "still here" })).toContain("still here");
  });

  test("gets progress", async () => {
    const seen: number[] = [];
    const onprogress = ({ progress }: { readonly progress: number }): void =>
      void seen.push(progress);
    const args = { duration: 0.4, steps: 4 };
    expect(await client.callTool("trigger-long-running-operation", args, { onprogress })).toContain(
      "completed",
    );
    // Over the old transport the client itself drops a progress that arrives together with the
    // answer, also without a gateway.
    expect(seen.slice(0, 3)).toEqual([1, 2, 3]);
    if (transport === "http") expect(seen).toEqual([1, 2, 3, 4]);
  });

  test("cancels a call", async () => {
    const controller = new AbortController();
    const args = { duration: 600, steps: 1200 };
    const call = client.callTool("trigger-long-running-operation", args, {
      signal: controller.signal,
      onprogress: () => controller.abort("enough"),
    });
    await expect(call).rejects.toThrow(/enough|abort/i);
    expect(await client.callTool("echo", { message: "after" })).toContain("after");
  });

  test("is asked by the server: sampling, elicitation, roots", async () => {
    const sampling = { prompt: "p", maxTokens: 5 };
    expect(await client.callTool("trigger-sampling-request", sampling)).toContain("sampled words");
    expect(await client.callTool("trigger-elicitation-request")).toMatch(/Ada|accept/);
    expect(await client.callTool("get-roots-list")).toContain("file:///work");
  });
});
