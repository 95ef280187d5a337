/**
 * Tokens of an application, by its secret or by a token of the pod that it trusts.
 * https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow
 */
import { readFile } from "node:fs/promises";
import { Secret } from "../../platform/secret.ts";
import { ConfigError, type PluginContext } from "../contract.ts";
import { type FetchedToken, TokenExchangeError } from "../token-refresher.ts";

export interface Application {
  readonly tenantId: string;
  readonly clientId: string;
  readonly proof:
    | { readonly kind: "secret"; readonly value: Secret }
    | { readonly kind: "file"; readonly path: string };
}

const GUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const DEFAULT_FILE = "/var/run/secrets/azure/tokens/azure-identity-token";
const MAX_ANSWER_CHARS = 256 * 1024;

/** @throws ConfigError */
export function readApplication(context: PluginContext): Application {
  const { binding, authType, config, secrets } = context;
  const value = (key: string): string => secrets.get(key)?.reveal().trim() ?? "";
  const wrong = (key: string, fix: string): ConfigError =>
    new ConfigError(`Provider ${binding}: the Secret's key ${key} ${fix}`);
  const [tenantId, clientId] = [value("tenantId"), value("clientId")];
  if (!GUID.test(tenantId))
    throw wrong(
      "tenantId",
      "must be the id of the tenant, as 01234567-89ab-cdef-0123-456789abcdef",
    );
  if (!GUID.test(clientId))
    throw wrong(
      "clientId",
      "must be the application's client id, as 01234567-89ab-cdef-0123-456789abcdef",
    );
  if (authType === "client-secret") {
    const secret = value("clientSecret");
    if (!/^[\x21-\x7e]{8,512}$/.test(secret))
      throw wrong(
        "clientSecret",
        "must be the value of a client secret (not its id), without spaces or line ends",
      );
    return { tenantId, clientId, proof: { kind: "secret", value: new Secret(secret) } };
  }
  if (authType !== "federated-token")
    throw new ConfigError(
      `Provider ${binding}: auth.type of azure is client-secret or federated-token`,
    );
  const path = config["tokenFile"] ?? DEFAULT_FILE;
  if (!path.startsWith("/"))
    throw new ConfigError(`Provider ${binding}: config.tokenFile must be an absolute path`);
  return { tenantId, clientId, proof: { kind: "file", path } };
}

/** @throws TokenExchangeError */
export async function exchange(
  context: Pick<PluginContext, "fetch" | "clock">,
  application: Application,
  audience: string,
  signal: AbortSignal,
): Promise<FetchedToken> {
  const { tenantId, clientId, proof } = application;
  const body = new URLSearchParams({
    grant_type: "client_credentials",
    client_id: clientId,
    scope: audience,
    ...(proof.kind === "secret"
      ? { client_secret: proof.value.reveal() }
      : {
          client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
          client_assertion: await assertion(proof.path),
        }),
  }).toString();
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const response = await context.fetch(
    `https://login.microsoftonline.com/${tenantId}/oauth2/v2.0/token`,
    { method: "POST", headers, body, signal },
  );
  if (!response.ok) {
    const after = Number(response.headers.get("retry-after") ?? Number.NaN);
    const refused =
      response.status >= 400 &&
      response.status < 500 &&
      response.status !== 429 &&
      response.status !== 408;
    const advice =
      proof.kind === "secret"
        ? "check tenantId, clientId and that clientSecret has not expired"
        : "check tenantId, clientId and the application's federated credential";
    throw new TokenExchangeError(
      `login.microsoftonline.com answered ${response.status} to the request for a token of ` +
        `${audience}${refused ? `; ${advice}` : ""}`,
      { refused, retryAfterMs: Number.isFinite(after) ? after * 1000 : undefined },
    );
  }
  return tokenOf(await response.text(), context.clock.now());
}

function tokenOf(text: string, now: number): FetchedToken {
  const wrong = new TokenExchangeError("login.microsoftonline.com's answer holds no token");
  if (text.length > MAX_ANSWER_CHARS) throw wrong;
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    throw wrong;
  }
  const { access_token: token, expires_in: lifetime } = (answer ?? {}) as {
    readonly access_token?: unknown;
    readonly expires_in?: unknown;
  };
  const seconds = Number(lifetime);
  if (typeof token !== "string" || !/^[\x21-\x7e]+$/.test(token) || !(seconds > 0)) throw wrong;
  // Maximum lifetime of Entra's tokens: 28 hours.
  return { token: new Secret(token), expiresAt: now + Math.min(seconds, 28 * 3600) * 1000 };
}

/** Read again for each exchange, because the file is renewed externally. */
async function assertion(path: string): Promise<string> {
  try {
    const text = (await readFile(path, "utf8")).trim();
    if (/^[\x21-\x7e]+$/.test(text)) return text;
  } catch {
    // The operator may see its path.
  }
  throw new TokenExchangeError(`no token can be read from ${path}: is it mounted in the sidecar?`);
}
