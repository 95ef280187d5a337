/** The official TypeScript client, of the present and of the next major version. */
import { Client as NextClient } from "@modelcontextprotocol/client";
import {
  SSEClientTransport as NextSseTransport,
  StreamableHTTPClientTransport as NextHttpTransport,
} from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";

export type ClientTransportKind = "http" | "sse";

export interface ConnectOptions {
  /** `.../ext/mcp/{name}`, of each replica; requests go to them in turn. */
  readonly urls: readonly string[];
  readonly key: string;
  readonly transport: ClientTransportKind;
}

const INFO = { name: "test", version: "1.0.0" };

const CAPABILITIES = {
  capabilities: { sampling: {}, elicitation: {}, roots: { listChanged: true } },
};

/** Answers of the client to the server's questions. */
const SAMPLED = {
  model: "m",
  role: "assistant",
  content: { type: "text", text: "sampled words" },
} as const;
const ELICITED = { action: "accept", content: { name: "Ada", check: true } } as const;
const ROOTS = { roots: [{ uri: "file:///work", name: "work" }] };

/** A fetch that sends each request to the next of several addresses of one service. */
export function alternating(urls: readonly string[], start = 0): typeof fetch {
  let next = start;
  return (input, init) => {
    const target = new URL(input instanceof Request ? input.url : input);
    const origin = new URL(urls[next % urls.length] as string);
    next += 1;
    target.protocol = origin.protocol;
    target.host = origin.host;
    return fetch(target, init);
  };
}

function settings({ urls, key, transport }: ConnectOptions) {
  const url = new URL(`${urls[0]}${transport === "sse" ? "/sse" : ""}`);
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  return { url, options: { requestInit, fetch: alternating(urls) } };
}

/** What tests do with a client, in the words of both versions. */
export interface TestClient {
  readonly listTools: () => Promise<readonly string[]>;
  /** @returns the text of the content */
  readonly callTool: (
    name: string,
    args?: Readonly<Record<string, unknown>>,
    options?: CallOptions,
  ) => Promise<string>;
  readonly ping: () => Promise<void>;
  /** Ends the session at the server, and closes the client. */
  readonly close: () => Promise<void>;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onprogress?: (progress: { readonly progress: number }) => void;
}

const textOf = (result: { readonly content?: unknown }): string => {
  const content = (result.content ?? []) as readonly { readonly text?: string }[];
  return content.map(({ text = "" }) => text).join("\n");
};

/** The client of the present major version. */
export async function connectPresent(connect: ConnectOptions): Promise<TestClient> {
  const client = new Client(INFO, CAPABILITIES);
  client.setRequestHandler(CreateMessageRequestSchema, () => SAMPLED);
  client.setRequestHandler(ElicitRequestSchema, () => ELICITED);
  client.setRequestHandler(ListRootsRequestSchema, () => ROOTS);
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => undefined);
  const { url, options } = settings(connect);
  const http =
    connect.transport === "http" ? new StreamableHTTPClientTransport(url, options) : undefined;
  await client.connect(http ?? new SSEClientTransport(url, options));
  return {
    listTools: async () => (await client.listTools()).tools.map(({ name }) => name),
    callTool: async (name, args = {}, more = {}) =>
      textOf((await client.callTool({ name, arguments: args }, undefined, more)) as never),
    ping: async () => void (await client.ping()),
    close: async () => {
      await http?.terminateSession();
      await client.close();
    },
  };
}

/** The client of the next major version. */
export async function connectNext(connect: ConnectOptions): Promise<TestClient> {
  const client = new NextClient(INFO, CAPABILITIES);
  client.setRequestHandler("sampling/createMessage", () => SAMPLED as never);
  client.setRequestHandler("elicitation/create", () => ELICITED as never);
  client.setRequestHandler("roots/list", () => ROOTS as never);
  const { url, options } = settings(connect);
  const http = connect.transport === "http" ? new NextHttpTransport(url, options) : undefined;
  await client.connect(http ?? new NextSseTransport(url, options));
  return {
    listTools: async () => (await client.listTools()).tools.map(({ name }) => name),
    callTool: async (name, args = {}, more = {}) =>
      textOf(await client.callTool({ name, arguments: args }, more)),
    ping: async () => void (await client.ping()),
    close: async () => {
      await http?.terminateSession();
      await client.close();
    },
  };
}

export const CLIENTS = { present: connectPresent, next: connectNext } as const;
