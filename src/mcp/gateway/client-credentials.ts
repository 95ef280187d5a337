/**
 * The credentials of MCP servers, including OAuth 2.0 client credentials: their tokens are obtained
 * at the first request to a server, renewed in the background, and kept while the policy has the
 * server with this credential.
 */
import { createHash } from "node:crypto";
import type { Clock } from "../../platform/clock.ts";
import type { Logger } from "../../platform/log.ts";
import type { Secret } from "../../platform/secret.ts";
import type { McpServerPolicy } from "../../policy/snapshot.ts";
import { InjectionError } from "../../providers/contract.ts";
import { TokenExchangeError, TokenRefresher } from "../../providers/token-refresher.ts";
import {
  type ClientCredentials,
  CredentialError,
  type CredentialHeader,
  FIXED_CREDENTIALS,
  type McpCredentials,
} from "./credentials.ts";
import type { TokenFetcher } from "./token-request.ts";

/** Result of a token request, for metrics. */
export type TokenOutcome = "issued" | "refused" | "failed";

export interface TokenCredentialsOptions {
  readonly request: TokenFetcher;
  readonly onRequest: (provider: string, outcome: TokenOutcome) => void;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
}

/** Time before the expiry of a token at which it is renewed. */
const MARGIN_MS = 60_000;
/** Age at which a token is renewed in any case. */
const MAX_AGE_MS = 12 * 3_600_000;
/**
 * Interval between two tokens that are dropped because the MCP server refuses them: a server that
 * refuses each token must not make the gateway flood the token server.
 */
const MIN_REFUSAL_INTERVAL_MS = 30_000;

interface Entry {
  readonly refresher: TokenRefresher;
  /** Monotonic time at which a token was dropped last. */
  droppedAt: number;
}

export class TokenCredentials implements McpCredentials {
  readonly #options: TokenCredentialsOptions;
  /** By {@link idOf}. */
  readonly #entries = new Map<string, Entry>();

  constructor(options: TokenCredentialsOptions) {
    this.#options = options;
  }

  headerOf(
    server: McpServerPolicy,
  ): CredentialHeader | undefined | Promise<CredentialHeader | undefined> {
    const { credential } = server;
    if (credential.kind !== "client-credentials") return FIXED_CREDENTIALS.headerOf(server);
    const id = idOf(server, credential);
    let entry = this.#entries.get(id);
    if (entry === undefined) this.#entries.set(id, (entry = this.#entryOf(server, credential)));
    const token = entry.refresher.current();
    return token instanceof Promise ? token.then(headerOf, unavailable) : headerOf(token);
  }

  refused(server: McpServerPolicy): void {
    const { credential, name } = server;
    if (credential.kind !== "client-credentials") return;
    const entry = this.#entries.get(idOf(server, credential));
    const now = this.#options.clock.monotonic();
    if (entry === undefined || now - entry.droppedAt < MIN_REFUSAL_INTERVAL_MS) return;
    entry.droppedAt = now;
    entry.refresher.drop();
    this.#options.log.warn({ provider: name }, "the MCP server refused its token; it is renewed");
  }

  /** Drops the tokens of all other servers, and those for other credentials of these servers. */
  retain(servers: Iterable<McpServerPolicy>): void {
    const kept = new Set<string>();
    for (const server of servers) {
      const { credential } = server;
      if (credential.kind === "client-credentials") kept.add(idOf(server, credential));
    }
    for (const [id, { refresher }] of this.#entries) {
      if (kept.has(id)) continue;
      this.#entries.delete(id);
      void refresher.stop();
    }
  }

  /** Ends all background work, and drops all tokens. */
  close(): void {
    this.retain([]);
  }

  #entryOf({ name }: McpServerPolicy, credential: ClientCredentials): Entry {
    const { request, onRequest, clock, random, log } = this.#options;
    const refresher = new TokenRefresher({
      binding: name,
      maxAgeMs: MAX_AGE_MS,
      marginMs: MARGIN_MS,
      clock,
      random,
      log,
      fetchToken: async (signal) => {
        try {
          const token = await request(credential, signal);
          onRequest(name, "issued");
          return token;
        } catch (error) {
          const isRefused = error instanceof TokenExchangeError && error.refused;
          onRequest(name, isRefused ? "refused" : "failed");
          throw error;
        }
      },
    });
    return { refresher, droppedAt: Number.NEGATIVE_INFINITY };
  }
}

/** By object, because a compilation makes new ones, and every request asks. */
const DIGESTS = new WeakMap<ClientCredentials, string>();

/** Returns a text that is the same for the same server with the same content of its credential. */
function idOf({ key }: McpServerPolicy, credential: ClientCredentials): string {
  let digest = DIGESTS.get(credential);
  if (digest === undefined) {
    const { tokenUrl, clientId, clientSecret, parameters } = credential;
    const named = Object.entries(parameters).toSorted(([a], [b]) => (a < b ? -1 : 1));
    const content = [tokenUrl, clientId.reveal(), clientSecret.reveal(), named];
    digest = createHash("sha256").update(JSON.stringify(content)).digest("hex");
    DIGESTS.set(credential, digest);
  }
  return `${key} ${digest}`;
}

function headerOf(token: Secret): CredentialHeader {
  return ["authorization", `Bearer ${token.reveal()}`];
}

function unavailable(error: unknown): never {
  if (error instanceof InjectionError) throw new CredentialError(error.message);
  throw error;
}
