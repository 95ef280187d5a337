/**
 * Asks an MCP server for its tools, as the gateway itself: by the official client, which speaks
 * every revision of the protocol, through Envoy, with the Provider's credential.
 */
import http from "node:http";
import { Readable } from "node:stream";
import { InternalHeader, mcpCluster } from "../../envoy/config/names.ts";
import type { Clock } from "../../platform/clock.ts";
import type { McpServerPolicy } from "../../policy/snapshot.ts";
import { CredentialError, type CredentialHeader, type McpCredentials } from "./credentials.ts";

/** A tool that an MCP server offers. */
export interface OfferedTool {
  readonly name: string;
  readonly description: string | undefined;
}

/** UpstreamToolsError is a server that did not tell its tools. The message shows no secret. */
export class UpstreamToolsError extends Error {
  override readonly name = "UpstreamToolsError";
}

export interface UpstreamToolsOptions {
  readonly credentials: McpCredentials;
  /** Envoy's Unix socket that forwards to the cluster that a request names. */
  readonly envoySocket: string;
  readonly clock: Clock;
}

/** Time for everything, in milliseconds. */
const TIMEOUT_MS = 20_000;
/** Maximum size of all answers. */
const MAX_BYTES = 16 * 1_048_576;
/** Maximum size of a description, in characters. */
const MAX_DESCRIPTION = 4_096;

/** @throws UpstreamToolsError */
export async function upstreamTools(
  server: McpServerPolicy,
  options: UpstreamToolsOptions,
): Promise<readonly OfferedTool[]> {
  const { credentials, clock } = options;
  const deadline = new AbortController();
  const late = Promise.withResolvers<never>();
  late.promise.catch(() => undefined);
  const cancel = clock.after(TIMEOUT_MS, () => {
    late.reject(problem(server, `did not answer within ${TIMEOUT_MS / 1_000} s`));
    deadline.abort();
  });
  try {
    const credential = await credentials.headerOf(server);
    const fetch = fetchThroughEnvoy(server, credential, options.envoySocket, deadline.signal);
    return await Promise.race([list(server, fetch), late.promise]);
  } catch (error) {
    if (error instanceof UpstreamToolsError) throw error;
    if (error instanceof CredentialError) throw new UpstreamToolsError(error.message);
    const { status, code } = error as { readonly status?: unknown; readonly code?: unknown };
    if (status === 401 || (error as Error).name === "UnauthorizedError") {
      credentials.refused(server);
      throw problem(server, "does not accept the gateway's credential");
    }
    // The server's own words may contain the credential.
    if (typeof status === "number") throw problem(server, `answered ${status}`);
    const word = typeof code === "string" || typeof code === "number" ? code : "no reason known";
    throw problem(server, `did not tell its tools (${word})`);
  } finally {
    cancel();
    deadline.abort();
  }
}

async function list(
  server: McpServerPolicy,
  fetch: typeof globalThis.fetch,
): Promise<readonly OfferedTool[]> {
  const { Client, SSEClientTransport, StreamableHTTPClientTransport } =
    await import("@modelcontextprotocol/client");
  const url = urlOf(server);
  const isOld = server.transport === "sse";
  const transport = isOld
    ? new SSEClientTransport(url, { fetch })
    : new StreamableHTTPClientTransport(url, { fetch });
  const client = new Client(
    { name: "svc", version: "1" },
    isOld ? {} : { versionNegotiation: { mode: "auto" } },
  );
  try {
    await client.connect(transport, { timeout: TIMEOUT_MS });
    const { tools } = await client.listTools({}, { timeout: TIMEOUT_MS });
    if (transport instanceof StreamableHTTPClientTransport)
      await transport.terminateSession().catch(() => undefined);
    return tools.map(({ name, description }) => ({
      name,
      description: description?.slice(0, MAX_DESCRIPTION),
    }));
  } finally {
    await client.close();
  }
}

/** Returns a `fetch` for one server, which sends the credential and follows no redirect. */
function fetchThroughEnvoy(
  server: McpServerPolicy,
  credential: CredentialHeader | undefined,
  socketPath: string,
  deadline: AbortSignal,
): typeof fetch {
  const base = urlOf(server);
  let left = MAX_BYTES;
  async function* limited(response: http.IncomingMessage): AsyncGenerator<Buffer> {
    for await (const part of response as AsyncIterable<Buffer>) {
      left -= part.length;
      if (left < 0) throw problem(server, `answered more than ${MAX_BYTES} bytes`);
      yield part;
    }
  }
  return async (input, init = {}) => {
    const url = new URL(input instanceof Request ? input.url : input);
    if (url.origin !== base.origin) throw problem(server, "names another server's address");
    const headers = {
      ...Object.fromEntries(new Headers(init.headers)),
      host: base.host,
      [InternalHeader.relay]: mcpCluster(server),
      ...(credential === undefined ? {} : { [credential[0]]: credential[1] }),
    };
    const signals = init.signal ? [deadline, init.signal] : [deadline];
    const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
      const path = `${url.pathname}${url.search}`;
      const signal = AbortSignal.any(signals);
      const request = http.request({
        socketPath,
        path,
        method: init.method ?? "GET",
        headers,
        signal,
      });
      request.on("response", resolve).on("error", reject);
      request.end(typeof init.body === "string" ? init.body : undefined);
    });
    const status = response.statusCode ?? 0;
    const isEmpty = status === 204 || status === 205 || status === 304;
    if (isEmpty) response.resume();
    const names = Object.entries(response.headersDistinct).flatMap(([name, values = []]) =>
      values.map((value): [string, string] => [name, value]),
    );
    return new Response(
      isEmpty ? null : (Readable.toWeb(Readable.from(limited(response))) as ReadableStream),
      { status, headers: names },
    );
  };
}

function urlOf({ endpoint, path }: McpServerPolicy): URL {
  const { tls, host, port } = endpoint;
  const name = host.includes(":") ? `[${host}]` : host;
  return new URL(`${tls ? "https" : "http"}://${name}:${port}${path}`);
}

function problem({ name }: McpServerPolicy, what: string): UpstreamToolsError {
  return new UpstreamToolsError(`The MCP server of the Provider ${name} ${what}.`);
}
