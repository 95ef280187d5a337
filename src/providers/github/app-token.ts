/**
 * Installation tokens of a GitHub App: a JWT, signed with the app's key, is exchanged for a token
 * of one hour. https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app
 */
import { createPrivateKey, type KeyObject, sign } from "node:crypto";
import { ConfigError, type PluginContext, type TokenResponse } from "../contract.ts";
import { Secret } from "../../platform/secret.ts";
import { type FetchedToken, TokenExchangeError } from "../token-refresher.ts";

/** Subtracted for the case that GitHub's clock is behind ours. */
const ISSUED_BEFORE_S = 60;
/** GitHub accepts at most ten minutes. */
const LIFETIME_S = 9 * 60;
const MAX_ANSWER_BYTES = 256 * 1024;

export interface AppCredential {
  readonly appId: string;
  readonly installationId: string;
  readonly key: KeyObject;
}

/** @throws ConfigError */
export function readAppCredential(context: PluginContext): AppCredential {
  const value = (key: string): string => context.secrets.get(key)?.reveal().trim() ?? "";
  const [appId, installationId] = [value("appId"), value("installationId")];
  const wrong = (key: string, fix: string): ConfigError =>
    new ConfigError(`Provider ${context.binding}: the Secret's key ${key} ${fix}`);
  if (!/^[A-Za-z0-9._-]{1,100}$/.test(appId))
    throw wrong("appId", "must be the app's id or client id, as its settings page shows it");
  if (!/^\d{1,20}$/.test(installationId))
    throw wrong("installationId", "must be a number: the end of the installation's address");
  let key: KeyObject;
  try {
    key = createPrivateKey(value("privateKey"));
  } catch {
    throw wrong(
      "privateKey",
      "is no private key: it must be the whole PEM file that GitHub generated, with its " +
        "line breaks",
    );
  }
  if (key.asymmetricKeyType !== "rsa")
    throw wrong(
      "privateKey",
      `must be an RSA key, as GitHub generates; it is ${key.asymmetricKeyType ?? "another"}`,
    );
  return { appId, installationId, key };
}

/** @param nowMs milliseconds since the epoch */
export function appJwt(credential: AppCredential, nowMs: number): string {
  const seconds = Math.floor(nowMs / 1_000);
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = {
    iat: seconds - ISSUED_BEFORE_S,
    exp: seconds + LIFETIME_S,
    iss: credential.appId,
  };
  const signed = `${part({ alg: "RS256", typ: "JWT" })}.${part(claims)}`;
  return (
    `${signed}.` + sign("RSA-SHA256", Buffer.from(signed), credential.key).toString("base64url")
  );
}

/** @throws TokenExchangeError */
export async function fetchInstallationToken(
  context: Pick<PluginContext, "fetch" | "clock">,
  apiBase: string,
  credential: AppCredential,
  signal: AbortSignal,
): Promise<FetchedToken> {
  const { clock } = context;
  // Redirects are not followed: the JWT is only sent to GitHub.
  const response = await context.fetch(
    `${apiBase}/app/installations/${credential.installationId}/access_tokens`,
    {
      method: "POST",
      headers: {
        accept: "application/vnd.github+json",
        authorization: `Bearer ${appJwt(credential, clock.now())}`,
        "user-agent": "svc",
        "x-github-api-version": "2022-11-28",
      },
      signal,
    },
  );
  if (response.status !== 201) {
    throw refusal(response);
  }
  const answer = parseAnswer(await response.text());
  const serverNow = Date.parse(response.headers.get("date") ?? "");
  // Computed from the server's own clock, because ours may be wrong.
  const lifetime = answer.expiresAt - (Number.isNaN(serverNow) ? clock.now() : serverNow);
  return { token: answer.token, expiresAt: clock.now() + lifetime };
}

function refusal(response: TokenResponse): TokenExchangeError {
  const after = Number(response.headers.get("retry-after") ?? Number.NaN);
  const retryAfterMs = Number.isFinite(after) ? after * 1_000 : undefined;
  const limited =
    response.status === 429 ||
    retryAfterMs !== undefined ||
    response.headers.get("x-ratelimit-remaining") === "0";
  const refused =
    response.status >= 400 && response.status < 500 && response.status !== 408 && !limited;
  const advice = refused
    ? "; check appId, installationId and privateKey, and that the installation is not suspended"
    : "";
  return new TokenExchangeError(
    `GitHub answered ${response.status} to the request for an installation token${advice}`,
    { refused, retryAfterMs },
  );
}

function parseAnswer(text: string): { readonly token: Secret; readonly expiresAt: number } {
  const wrong = new TokenExchangeError("GitHub's answer holds no installation token");
  if (text.length > MAX_ANSWER_BYTES) throw wrong;
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    throw wrong;
  }
  const { token, expires_at: expires } = (answer ?? {}) as {
    readonly token?: unknown;
    readonly expires_at?: unknown;
  };
  const expiresAt = typeof expires === "string" ? Date.parse(expires) : Number.NaN;
  if (typeof token !== "string" || !/^[\x21-\x7e]+$/.test(token) || Number.isNaN(expiresAt))
    throw wrong;
  return { token: new Secret(token), expiresAt };
}
