/** OAuth's client credentials: https://www.rfc-editor.org/rfc/rfc6749#section-4.4 */
import { Secret } from "../../platform/secret.ts";
import type { PluginContext } from "../contract.ts";
import { type FetchedToken, TokenExchangeError } from "../token-refresher.ts";

export interface ClientCredentials {
  readonly tokenUrl: string;
  readonly clientId: Secret;
  readonly clientSecret: Secret;
  /** `scope`, `audience`, `resource`. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

const MAX_ANSWER_CHARS = 256 * 1024;
/** Assumed lifetime of a token whose answer states none, and the longest that is believed. */
const DEFAULT_SECONDS = 300;
const MAX_SECONDS = 24 * 3_600;

/** @throws TokenExchangeError */
export async function exchange(
  { fetch, clock }: Pick<PluginContext, "fetch" | "clock">,
  { tokenUrl, clientId, clientSecret, parameters, signal }: ClientCredentials,
): Promise<FetchedToken> {
  // Section 2.3.1: both parts are form-encoded first.
  const pair = [clientId, clientSecret].map((part) => encodeURIComponent(part.reveal())).join(":");
  const { host } = new URL(tokenUrl);
  const response = await fetch(tokenUrl, {
    method: "POST",
    headers: {
      authorization: `Basic ${Buffer.from(pair).toString("base64")}`,
      "content-type": "application/x-www-form-urlencoded",
      accept: "application/json",
    },
    body: new URLSearchParams({ grant_type: "client_credentials", ...parameters }).toString(),
    signal,
  });
  if (!response.ok) {
    const { status } = response;
    const after = Number(response.headers.get("retry-after") ?? Number.NaN);
    const refused = status >= 400 && status < 500 && status !== 429 && status !== 408;
    const advice = refused ? "; check clientId, clientSecret and spec.config" : "";
    throw new TokenExchangeError(`${host} answered ${status} to the request for a token${advice}`, {
      refused,
      retryAfterMs: Number.isFinite(after) ? after * 1_000 : undefined,
    });
  }
  return tokenOf(await response.text(), host, clock.now());
}

function tokenOf(text: string, host: string, now: number): FetchedToken {
  const wrong = new TokenExchangeError(`the answer of ${host} holds no bearer token`);
  if (text.length > MAX_ANSWER_CHARS) throw wrong;
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    throw wrong;
  }
  const {
    access_token: token,
    token_type: type = "bearer",
    expires_in: lifetime = DEFAULT_SECONDS,
  } = (answer ?? {}) as Readonly<Record<string, unknown>>;
  const seconds = Number(lifetime);
  const isBearer = typeof type === "string" && type.toLowerCase() === "bearer";
  if (typeof token !== "string" || !/^[\x21-\x7e]+$/.test(token) || !isBearer || !(seconds > 0))
    throw wrong;
  return { token: new Secret(token), expiresAt: now + Math.min(seconds, MAX_SECONDS) * 1_000 };
}
