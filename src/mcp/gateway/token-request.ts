/**
 * The request for an access token by OAuth 2.0 client credentials (RFC 6749 section 4.4). It goes
 * to the token endpoint alone, and not through Envoy: no redirect is followed, and no proxy of the
 * environment is used.
 */
import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import https from "node:https";
import tls from "node:tls";
import type { TimeSource } from "../../platform/clock.ts";
import { Secret } from "../../platform/secret.ts";
import { type FetchedToken, TokenExchangeError } from "../../providers/token-refresher.ts";
import type { ClientCredentials } from "./credentials.ts";

const MAX_ANSWER_BYTES = 64 * 1024;
const MAX_TOKEN_CHARS = 16 * 1024;

/** Lifetime of a token whose answer names none, which RFC 6749 section 5.1 allows. */
const DEFAULT_LIFETIME_S = 300;
const MAX_LIFETIME_S = 24 * 3600;

/** Codes of RFC 6749 section 5.2 and RFC 8707; other texts of the server may quote a secret. */
const ERROR_CODES: ReadonlySet<unknown> = new Set([
  "invalid_client",
  "invalid_grant",
  "invalid_request",
  "invalid_scope",
  "invalid_target",
  "unauthorized_client",
  "unsupported_grant_type",
]);

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
  return async (credential, signal) => {
    agent ??= new https.Agent({ secureContext: trusting(options.caFile) });
    const url = new URL(credential.tokenUrl);
    if (url.protocol !== "https:") throw new TokenExchangeError("tokenUrl must be an https URL");
    const { status, retryAfter, text } = await post(url, credential, agent, signal);
    if (status !== 200) throw refusal(url.host, status, retryAfter, text);
    const token = tokenOf(text, options.clock.now());
    if (token === undefined)
      throw new TokenExchangeError(`the answer of ${url.host} contains no bearer token`);
    return token;
  };
}

function trusting(caFile: string): tls.SecureContext {
  try {
    return tls.createSecureContext({ ca: readFileSync(caFile) });
  } catch (error) {
    throw new TokenExchangeError(`the CA bundle ${caFile} cannot be read`, { cause: error });
  }
}

interface TokenAnswer {
  readonly status: number;
  /** Value of the header. */
  readonly retryAfter: string | undefined;
  readonly text: string;
}

async function post(
  url: URL,
  { clientId, clientSecret, parameters }: ClientCredentials,
  agent: https.Agent,
  signal: AbortSignal,
): Promise<TokenAnswer> {
  const body = new URLSearchParams({ ...parameters, grant_type: "client_credentials" }).toString();
  // RFC 6749 section 2.3.1.
  const basic = Buffer.from(
    `${formEncoded(clientId.reveal())}:${formEncoded(clientSecret.reveal())}`,
  );
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const request = https.request(url, {
    method: "POST",
    agent,
    signal,
    headers: {
      accept: "application/json",
      authorization: `Basic ${basic.toString("base64")}`,
      "content-type": "application/x-www-form-urlencoded",
      "content-length": Buffer.byteLength(body),
    },
  });
  request.on("response", resolve).on("error", reject).end(body);
  try {
    const response = await promise;
    return {
      status: response.statusCode ?? 0,
      retryAfter: response.headers["retry-after"],
      text: await read(response, url.host),
    };
  } catch (error) {
    if (error instanceof TokenExchangeError) throw error;
    throw new TokenExchangeError(`${url.host} cannot be reached`, { cause: error });
  } finally {
    request.destroy();
  }
}

async function read(response: IncomingMessage, host: string): Promise<string> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > MAX_ANSWER_BYTES)
      throw new TokenExchangeError(`the answer of ${host} is above ${MAX_ANSWER_BYTES} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

function refusal(
  host: string,
  status: number,
  retryAfter: string | undefined,
  text: string,
): TokenExchangeError {
  const { error } = object(text);
  const code = ERROR_CODES.has(error) ? ` (${String(error)})` : "";
  const isRedirect = status >= 300 && status < 400;
  const refused = status >= 400 && status < 500 && status !== 408 && status !== 429;
  const seconds = Number(retryAfter ?? Number.NaN);
  return new TokenExchangeError(
    `${host} answered ${status}${code} to the request for a token` +
      (refused ? "; check clientId, clientSecret and the parameters in spec.config" : "") +
      (isRedirect ? "; redirects are not followed: name the final URL in tokenUrl" : ""),
    { refused, retryAfterMs: seconds >= 0 ? seconds * 1_000 : undefined },
  );
}

/** Reads a token answer (RFC 6749 section 5.1). Returns undefined if it is none. */
function tokenOf(text: string, now: number): FetchedToken | undefined {
  const { access_token: token, token_type: type, expires_in: lifetime } = object(text);
  if (typeof token !== "string" || token.length > MAX_TOKEN_CHARS) return undefined;
  // RFC 6750 section 2.1.
  if (!/^[A-Za-z0-9._~+/-]+=*$/.test(token)) return undefined;
  if (type !== undefined && (typeof type !== "string" || type.toLowerCase() !== "bearer"))
    return undefined;
  // Some servers send the number as a text.
  const seconds = lifetime === undefined ? DEFAULT_LIFETIME_S : Number(lifetime);
  if (!(seconds > 0)) return undefined;
  return {
    token: new Secret(token),
    expiresAt: now + Math.min(seconds, MAX_LIFETIME_S) * 1_000,
  };
}

/** Parses a JSON object; an empty one if it is none. */
function object(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function formEncoded(text: string): string {
  return new URLSearchParams([["", text]]).toString().slice(1);
}
