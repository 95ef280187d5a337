/** The gateway as a client of MCP servers; a server on a Unix socket stands for Envoy. */
import { mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeClock } from "../../platform/testing.ts";
import type { McpServerPolicy } from "../../policy/snapshot.ts";
import { CredentialError, type CredentialHeader } from "./credentials.ts";
import { upstreamTools, UpstreamToolsError } from "./upstream-tools.ts";

const TOKEN = "the-token-of-the-server";

interface Asked {
  readonly request: http.IncomingMessage;
  readonly message: {
    readonly id?: unknown;
    readonly method?: string;
    readonly params?: { readonly cursor?: string };
  };
}

let dir: string;
let envoySocket: string;
let envoy: http.Server;
let clock: FakeClock;
let asked: Asked[];
let refused: string[];
let credential: () => CredentialHeader | undefined;
/** Answers; by default like a server of the revision 2025-11-25 with two pages of tools. */
let answer: (asked: Asked, response: http.ServerResponse) => void;

const reply = (response: http.ServerResponse, id: unknown, result: object): void =>
  void response
    .writeHead(200, { "content-type": "application/json", "mcp-session-id": "s1" })
    .end(JSON.stringify({ jsonrpc: "2.0", id, result }));

const tool = (name: string): object => ({
  name,
  description: `${name}s`,
  inputSchema: { type: "object" },
});

function serve({ request, message }: Asked, response: http.ServerResponse): void {
  const { id, method, params } = message;
  if (request.method !== "POST") return void response.writeHead(405).end();
  if (id === undefined) return void response.writeHead(202).end();
  if (method === "initialize")
    return reply(response, id, {
      protocolVersion: "2025-11-25",
      capabilities: { tools: {} },
      serverInfo: { name: "s", version: "1" },
    });
  if (method !== "tools/list") return void response.writeHead(400).end("no such method");
  const isFirst = params?.cursor === undefined;
  return reply(
    response,
    id,
    isFirst ? { tools: [tool("a")], nextCursor: "2" } : { tools: [tool("b")] },
  );
}

beforeEach(async () => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-tools-"));
  envoySocket = path.join(dir, "envoy.sock");
  clock = new FakeClock();
  asked = [];
  refused = [];
  credential = () => ["x-key", TOKEN];
  answer = serve;
  envoy = http.createServer((request, response) => {
    void text(request).then((body) => {
      const message = (body === "" ? {} : JSON.parse(body)) as Asked["message"];
      asked.push({ request, message });
      return answer({ request, message }, response);
    });
  });
  await new Promise<void>((resolve) => envoy.listen(envoySocket, resolve));
});

afterEach(async () => {
  envoy.closeAllConnections();
  await new Promise((resolve) => envoy.close(resolve));
  rmSync(dir, { recursive: true });
});

function server(transport: McpServerPolicy["transport"] = "http"): McpServerPolicy {
  const open = { allowed: undefined, denied: [] };
  return {
    key: "default/tracker",
    namespace: "default",
    name: "tracker",
    transport,
    endpoint: { tls: true, host: "mcp.example.com", port: 443 },
    path: "/mcp?team=a",
    credential: { kind: "none" },
    lists: { tools: open, prompts: open, resources: open },
    auditOnly: false,
    recordsArguments: false,
    maxRequestsPerDay: undefined,
  };
}

const ask = (transport?: McpServerPolicy["transport"]) =>
  upstreamTools(server(transport), {
    credentials: {
      headerOf: () => credential(),
      refused: ({ name }) => void refused.push(name),
    },
    envoySocket,
    clock,
  });

async function failure(transport?: McpServerPolicy["transport"]): Promise<string> {
  const error: unknown = await ask(transport).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof UpstreamToolsError)) throw new Error("no such error", { cause: error });
  expect(error.message).not.toContain(TOKEN);
  return error.message;
}

test("all pages are read, from the server's cluster, with its credential", async () => {
  expect(await ask()).toEqual([
    { name: "a", description: "as" },
    { name: "b", description: "bs" },
  ]);
  for (const { request } of asked) {
    expect(request.url).toBe("/mcp?team=a");
    expect(request.headers).toMatchObject({
      host: "mcp.example.com",
      "x-key": TOKEN,
      "x-svc-relay": "mcp/default/tracker@https://mcp.example.com:443",
    });
  }
  // The session is ended.
  expect(asked.at(-1)?.request.method).toBe("DELETE");
  expect(clock.pending).toEqual([]);
});

describe("a server that", () => {
  const status =
    (code: number, body = ""): typeof answer =>
    (_asked, response) =>
      void response.writeHead(code).end(body);

  test("does not accept the credential: it is renewed", async () => {
    answer = status(401, TOKEN);
    expect(await failure()).toContain("does not accept the gateway's credential");
    expect(refused).toEqual(["tracker"]);
  });

  test.each<[string, typeof answer, string]>([
    ["quotes the credential", status(500, TOKEN), "answered 500"],
    ["is gone", status(503), "answered 503"],
    ["redirects", status(307), "answered 307"],
    [
      "answers an error",
      ({ message }, response) =>
        void response.writeHead(200, { "content-type": "application/json" }).end(
          JSON.stringify({
            jsonrpc: "2.0",
            id: message.id,
            error: { code: -32_603, message: TOKEN },
          }),
        ),
      "did not tell its tools (-32603)",
    ],
    [
      "ends the connection",
      (_asked, response) => void response.socket?.destroy(),
      "did not tell its tools",
    ],
    [
      "lists no end of pages",
      ({ request, message }, response) =>
        message.method === "tools/list"
          ? reply(response, message.id, {
              tools: [{ ...tool("a"), description: "x".repeat(1 << 20) }],
              nextCursor: `${asked.length}`,
            })
          : serve({ request, message }, response),
      "answered more than 16777216 bytes",
    ],
  ])("%s", async (_name, wrong, message) => {
    answer = wrong;
    expect(await failure()).toContain(message);
  });

  test("does not answer", async () => {
    answer = () => undefined;
    const message = failure();
    await expect.poll(() => asked.length).toBe(1);
    clock.advance(20_000);
    expect(await message).toBe(
      "The MCP server of the Provider tracker did not answer within 20 s.",
    );
  });

  test("names another server as its endpoint (old transport)", async () => {
    answer = (_asked, response) =>
      void response
        .writeHead(200, { "content-type": "text/event-stream" })
        .write("event: endpoint\ndata: https://evil.example.com/message\n\n");
    await failure("sse");
    expect(asked).toHaveLength(1);
  });
});

test("a credential that is not available is explained", async () => {
  credential = () => {
    throw new CredentialError("Provider tracker: no token");
  };
  expect(await failure()).toBe("Provider tracker: no token");
  expect(asked).toEqual([]);
});
