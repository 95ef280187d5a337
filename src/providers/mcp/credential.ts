/** Credentials at MCP servers: a header, or a token by OAuth's client credentials. */
import { Secret } from "../../platform/secret.ts";
import { mcpAuth, type McpAuth } from "../../resources/mcp-server.ts";
import { ConfigError, type PluginContext } from "../contract.ts";
import { type CredentialSource, fixedCredential } from "../credential-source.ts";
import { readToken } from "../fixed-secret.ts";
import { TokenRefresher } from "../token-refresher.ts";
import { exchange } from "./client-credentials.ts";

/** A header with a credential. */
export interface McpCredentialHeader {
  readonly name: string;
  readonly value: Secret;
}

export type McpCredentialSource = CredentialSource<McpCredentialHeader | undefined>;

/** Age at which a token is renewed, and time before its expiry, in milliseconds. */
const MAX_AGE_MS = 45 * 60_000;
const MARGIN_MS = 5 * 60_000;

/** Reads `spec.auth` and `spec.config`. @throws ConfigError */
export function readAuth({ binding, authType, config }: PluginContext): McpAuth {
  const parsed = mcpAuth(authType, config);
  if (parsed.kind === "error") throw new ConfigError(`Provider ${binding}: ${parsed.message}`);
  return parsed.auth;
}

/** @throws ConfigError */
export function credentialSource(context: PluginContext): McpCredentialSource {
  const auth = readAuth(context);
  switch (auth.kind) {
    case "none":
    case "environment":
      return fixedCredential(undefined);
    case "header": {
      const token = readToken(context, "token", "the server's token");
      const value = new Secret(`${auth.prefix}${token.reveal()}`);
      return fixedCredential({ name: auth.header, value });
    }
    case "client-credentials":
      return tokenSource(context, auth);
  }
}

function tokenSource(
  context: PluginContext,
  { tokenUrl, parameters }: Extract<McpAuth, { readonly kind: "client-credentials" }>,
): McpCredentialSource {
  const { binding, clock, random, log } = context;
  const clientId = readToken(context, "clientId", "the client's id");
  const clientSecret = readToken(context, "clientSecret", "the client's secret");
  if (!/^https:/i.test(tokenUrl))
    throw new ConfigError(`Provider ${binding}: spec.config.tokenUrl must be an https URL`);
  const refresher = new TokenRefresher({
    binding,
    clock,
    random,
    log,
    maxAgeMs: MAX_AGE_MS,
    marginMs: MARGIN_MS,
    fetchToken: (signal) =>
      exchange(context, { tokenUrl, parameters, clientId, clientSecret, signal }),
  });
  const header = (token: Secret): McpCredentialHeader => ({
    name: "authorization",
    value: new Secret(`Bearer ${token.reveal()}`),
  });
  return {
    current: () => {
      const token = refresher.current();
      return token instanceof Promise ? token.then(header) : header(token);
    },
    start: () => refresher.start(),
    stop: () => refresher.stop(),
    refresh: () => refresher.refresh(),
  };
}
