/**
 * OAuth 2.0 client credentials: https://www.rfc-editor.org/rfc/rfc6749#section-4.4. For the sidecar
 * and the gateway, which fetch in different ways.
 */
import type { TimeSource } from "../../platform/clock.ts";
import { Secret } from "../../platform/secret.ts";
import type { TokenFetch } from "../contract.ts";
import { type FetchedToken, TokenExchangeError } from "../token-refresher.ts";

export interface ClientCredentialsRequest {
  readonly tokenUrl: string;
  readonly clientId: Secret;
  readonly clientSecret: Secret;
  /** `scope`, `audience`, `resource`. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

const MAX_ANSWER_CHARS = 64 * 1024;
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

/**
 * Obtains a token.
 * @throws TokenExchangeError
 */
export async function exchange(
  { fetch, clock }: { readonly fetch: TokenFetch; readonly clock: TimeSource },
  { tokenUrl, clientId, clientSecret, parameters, signal }: ClientCredentialsRequest,
): Promise<FetchedToken> {
  const url = new URL(tokenUrl);
  if (url.protocol !== "https:") throw new TokenExchangeError("tokenUrl must be an https URL");
  // RFC 6749 section 2.3.1: both parts are form-encoded first.
  const pair = [clientId, clientSecret].map((part) => formEncoded(part.reveal())).join(":");
  const response = await fetch(tokenUrl, {
    method: "POST",
    headers: {
      accept: "application/json",
      authorization: `Basic ${Buffer.from(pair).toString("base64")}`,
      "content-type": "application/x-www-form-urlencoded",
    },
    body: new URLSearchParams({ ...parameters, grant_type: "client_credentials" }).toString(),
    signal,
  });
  const text = await response.text();
  if (response.status !== 200) {
    throw refusal(url.host, response.status, response.headers.get("retry-after"), text);
  }
  const token = tokenOf(text, clock.now());
  if (token === undefined)
    throw new TokenExchangeError(`the answer of ${url.host} contains no bearer token`);
  return token;
}

function refusal(
  host: string,
  status: number,
  retryAfter: string | null,
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
  if (text.length > MAX_ANSWER_CHARS) return undefined;
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
