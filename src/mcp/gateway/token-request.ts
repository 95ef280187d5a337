/**
 * The gateway's requests to token servers. They go to the token endpoint alone, and not through
 * Envoy: no redirect is followed, and no proxy of the environment is used.
 */
import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import https from "node:https";
import tls from "node:tls";
import type { TimeSource } from "../../platform/clock.ts";
import type { TokenFetch } from "../../providers/contract.ts";
import { exchange } from "../../providers/mcp/client-credentials.ts";
import { type FetchedToken, TokenExchangeError } from "../../providers/token-refresher.ts";
import type { ClientCredentials } from "./credentials.ts";

const MAX_ANSWER_BYTES = 64 * 1024;

/** Performs one request. @throws TokenExchangeError */
export type TokenFetcher = (
  credential: ClientCredentials,
  signal: AbortSignal,
) => Promise<FetchedToken>;

/** @param options.caFile PEM bundle against which token servers are verified; read once */
export function createTokenRequest(options: {
  readonly caFile: string;
  readonly clock: TimeSource;
}): TokenFetcher {
  let agent: https.Agent | undefined;
  const fetch: TokenFetch = async (url, request) => {
    agent ??= new https.Agent({ secureContext: trusting(options.caFile) });
    return post(new URL(url), request, agent);
  };
  return async (credential, signal) =>
    exchange({ fetch, clock: options.clock }, { ...credential, signal });
}

function trusting(caFile: string): tls.SecureContext {
  try {
    return tls.createSecureContext({ ca: readFileSync(caFile) });
  } catch (error) {
    throw new TokenExchangeError(`the CA bundle ${caFile} cannot be read`, { cause: error });
  }
}

async function post(
  url: URL,
  { method, headers = {}, body = "", signal }: Parameters<TokenFetch>[1],
  agent: https.Agent,
): ReturnType<TokenFetch> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const request = https.request(url, {
    method,
    agent,
    signal,
    headers: { ...headers, "content-length": Buffer.byteLength(body) },
  });
  request.on("response", resolve).on("error", reject).end(body);
  try {
    const response = await promise;
    const bytes = await read(response, url.host);
    const status = response.statusCode ?? 0;
    return {
      ok: status >= 200 && status < 300,
      status,
      headers: new Headers(response.headers as Record<string, string>),
      text: () => Promise.resolve(bytes.toString("utf8")),
      bytes: () => Promise.resolve(bytes),
    };
  } catch (error) {
    if (error instanceof TokenExchangeError) throw error;
    throw new TokenExchangeError(`${url.host} cannot be reached`, { cause: error });
  } finally {
    request.destroy();
  }
}

async function read(response: IncomingMessage, host: string): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > MAX_ANSWER_BYTES)
      throw new TokenExchangeError(`the answer of ${host} is above ${MAX_ANSWER_BYTES} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}
