/**
 * Access tokens: a service account's key signs a JWT, which Google exchanges.
 * https://developers.google.com/identity/protocols/oauth2/service-account
 */
import { createPrivateKey, type KeyObject, sign } from "node:crypto";
import { Secret } from "../../platform/secret.ts";
import { ConfigError, type PluginContext } from "../contract.ts";
import { type FetchedToken, TokenExchangeError } from "../token-refresher.ts";

export const TOKEN_URL = "https://oauth2.googleapis.com/token";
const LIFETIME_S = 3600;
const MAX_ANSWER_CHARS = 256 * 1024;

export interface ServiceAccount {
  readonly email: string;
  readonly keyId: string | undefined;
  readonly key: KeyObject;
}

/** Parses the Secret's JSON, whose members are not checked yet. @throws ConfigError */
export function readJson(context: PluginContext, name: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(context.secrets.get(name)?.reveal() ?? "");
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as Readonly<Record<string, unknown>>;
  } catch {
    // Its content is not shown.
  }
  throw new ConfigError(
    `Provider ${context.binding}: the Secret's key ${name} must be the JSON file that ` +
      "Google Cloud gave, whole",
  );
}

/** @throws ConfigError */
export function readServiceAccount(context: PluginContext): ServiceAccount {
  const json = readJson(context, "serviceAccount");
  const wrong = (fix: string): ConfigError =>
    new ConfigError(`Provider ${context.binding}: the Secret's key serviceAccount ${fix}`);
  const {
    type,
    client_email: email,
    private_key_id: keyId,
    private_key: pem,
    token_uri: tokenUri,
  } = json;
  if (type !== "service_account")
    throw wrong("must be a key of a service account: its type is not service_account");
  if (typeof email !== "string" || !/^[\w.@:-]{3,254}$/.test(email))
    throw wrong("has no client_email");
  // The JWT is equivalent to a token: it is only sent to Google.
  if (tokenUri !== undefined && tokenUri !== TOKEN_URL)
    throw wrong(`has another token_uri than ${TOKEN_URL}`);
  let key: KeyObject;
  try {
    key = createPrivateKey(typeof pem === "string" ? pem : "");
  } catch {
    throw wrong("has no private_key that can be read");
  }
  if (key.asymmetricKeyType !== "rsa") throw wrong("has a private_key that is not RSA");
  return { email, keyId: typeof keyId === "string" ? keyId : undefined, key };
}

/** @throws TokenExchangeError */
export async function exchangeServiceAccount(
  context: PluginContext,
  account: ServiceAccount,
  scopes: string,
  signal: AbortSignal,
): Promise<FetchedToken> {
  const seconds = Math.floor(context.clock.now() / 1000);
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const header = {
    alg: "RS256",
    typ: "JWT",
    ...(account.keyId === undefined ? {} : { kid: account.keyId }),
  };
  const claims = {
    iss: account.email,
    scope: scopes,
    aud: TOKEN_URL,
    iat: seconds,
    exp: seconds + LIFETIME_S,
  };
  const signed = `${part(header)}.${part(claims)}`;
  const signature = sign("RSA-SHA256", Buffer.from(signed), account.key).toString("base64url");
  const assertion = `${signed}.${signature}`;
  const body = new URLSearchParams({
    grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer",
    assertion,
  });
  const answer = await post(context, TOKEN_URL, {
    body,
    signal,
    advice: "check that the key in serviceAccount was not deleted",
  });
  return tokenOf(answer, context.clock.now());
}

export interface TokenExchange {
  readonly body: URLSearchParams | string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** Advice for a refusal. */
  readonly advice: string;
}

/** @throws TokenExchangeError */
export async function post(
  context: Pick<PluginContext, "fetch">,
  url: string,
  exchange: TokenExchange,
): Promise<Readonly<Record<string, unknown>>> {
  const { body, signal, advice } = exchange;
  const type = typeof body === "string" ? "application/json" : "application/x-www-form-urlencoded";
  const response = await context.fetch(url, {
    method: "POST",
    headers: { "content-type": type, ...exchange.headers },
    body: body.toString(),
    signal,
  });
  const { host } = new URL(url);
  if (!response.ok) {
    const after = Number(response.headers.get("retry-after") ?? Number.NaN);
    const refused =
      response.status >= 400 &&
      response.status < 500 &&
      response.status !== 429 &&
      response.status !== 408;
    throw new TokenExchangeError(
      `${host} answered ${response.status} to the request for a ` +
        `token${refused ? `; ${advice}` : ""}`,
      { refused, retryAfterMs: Number.isFinite(after) ? after * 1000 : undefined },
    );
  }
  const text = await response.text();
  try {
    const value: unknown = text.length > MAX_ANSWER_CHARS ? undefined : JSON.parse(text);
    if (typeof value === "object" && value !== null)
      return value as Readonly<Record<string, unknown>>;
  } catch {
    // Its content may be a token.
  }
  throw new TokenExchangeError(`${host} did not answer with JSON`);
}

/**
 * Reads an OAuth2 response: `access_token`, and `expires_in` in seconds. @throws TokenExchangeError
 */
export function tokenOf(answer: Readonly<Record<string, unknown>>, now: number): FetchedToken {
  const { access_token: token, expires_in: lifetime } = answer;
  const seconds = Number(lifetime);
  if (typeof token !== "string" || !/^[\x21-\x7e]+$/.test(token) || !(seconds > 0))
    throw new TokenExchangeError("the token server's answer holds no token");
  // None of Google's tokens is valid for more than half a day.
  return { token: new Secret(token), expiresAt: now + Math.min(seconds, 12 * 3600) * 1000 };
}
