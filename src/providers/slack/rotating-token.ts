/**
 * Slack's token rotation: a refresh token is exchanged for an access token of twelve hours and a
 * new refresh token. https://docs.slack.dev/authentication/using-token-rotation
 *
 * A refresh token works once. Both tokens are therefore kept: a restarted sidecar, and the sidecars
 * of other agents with the same Provider, use the kept access token while it is valid, and the kept
 * refresh token after that. What is kept belongs to the Secret's refresh token, so that a new
 * Secret replaces it.
 */
import { createHash } from "node:crypto";
import * as z from "zod";
import { Secret } from "../../platform/secret.ts";
import type { PluginContext } from "../contract.ts";
import { isJsonObject, parseStrictJson } from "../strict-json.ts";
import { type FetchedToken, TokenExchangeError } from "../token-refresher.ts";

const ADDRESS = "https://slack.com/api/oauth.v2.access";
const MAX_ANSWER_BYTES = 256 * 1024;
/** Slack's errors that a retry does not fix. */
const REFUSALS = new Set([
  "invalid_refresh_token",
  "invalid_client_id",
  "bad_client_secret",
  "token_expired",
  "token_revoked",
  "invalid_auth",
  "account_inactive",
]);
const TOKEN = /^[\x21-\x7e]+$/;

const keptSchema = z.strictObject({
  version: z.literal(1),
  /** Names the Secret: see {@link originOf}. */
  origin: z.string(),
  refreshToken: z.string().regex(TOKEN),
  accessToken: z.string().regex(TOKEN),
  /** Milliseconds since the epoch. */
  expiresAt: z.number(),
});

type Kept = z.output<typeof keptSchema>;

type Context = Pick<PluginContext, "binding" | "fetch" | "clock" | "log" | "state">;

export interface RotatingCredential {
  readonly clientId: Secret;
  readonly clientSecret: Secret;
  readonly refreshToken: Secret;
}

export class RotatingToken {
  readonly #context: Context;
  readonly #credential: RotatingCredential;
  readonly #origin: string;
  /** Remaining lifetime in milliseconds below which a kept access token is not used. */
  readonly #marginMs: number;
  #refreshToken: Secret;
  /** The access token of the last {@link fetch}. */
  #last: Secret | undefined;

  constructor(context: Context, credential: RotatingCredential, marginMs: number) {
    this.#context = context;
    this.#credential = credential;
    this.#origin = originOf(credential);
    this.#marginMs = marginMs;
    this.#refreshToken = credential.refreshToken;
  }

  /** @throws TokenExchangeError */
  async fetch(signal: AbortSignal): Promise<FetchedToken> {
    const { state } = this.#context;
    const token =
      state === undefined
        ? await this.#exchange(signal)
        : await state.exclusively(signal, () => this.#keptOrExchanged(signal));
    this.#last = token.token;
    return token;
  }

  async #keptOrExchanged(signal: AbortSignal): Promise<FetchedToken> {
    const kept = this.#readKept();
    if (kept !== undefined) {
      const { accessToken, expiresAt, refreshToken } = kept;
      this.#refreshToken = new Secret(refreshToken);
      const isValid = expiresAt - this.#context.clock.now() > this.#marginMs;
      if (isValid && accessToken !== this.#last?.reveal())
        return { token: new Secret(accessToken), expiresAt };
    }
    return this.#exchange(signal);
  }

  async #exchange(signal: AbortSignal): Promise<FetchedToken> {
    const { clientId, clientSecret } = this.#credential;
    const response = await this.#context.fetch(ADDRESS, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded", "user-agent": "svc" },
      body: new URLSearchParams({
        client_id: clientId.reveal(),
        client_secret: clientSecret.reveal(),
        grant_type: "refresh_token",
        refresh_token: this.#refreshToken.reveal(),
      }).toString(),
      signal,
    });
    if (response.status !== 200) {
      const after = Number(response.headers.get("retry-after") ?? Number.NaN);
      throw new TokenExchangeError(`Slack answered ${response.status} to the refresh token`, {
        retryAfterMs: Number.isFinite(after) ? after * 1_000 : undefined,
      });
    }
    const bytes = await response.bytes();
    const parsed = bytes.length > MAX_ANSWER_BYTES ? undefined : parseStrictJson(bytes);
    const answer = parsed?.kind === "parsed" && isJsonObject(parsed.value) ? parsed.value : {};
    if (answer["ok"] === false) throw refusal(answer["error"]);
    const { access_token: token, refresh_token: next, expires_in: seconds } = answer;
    if (
      typeof token !== "string" ||
      !TOKEN.test(token) ||
      typeof next !== "string" ||
      !TOKEN.test(next) ||
      typeof seconds !== "number"
    ) {
      throw new TokenExchangeError(
        "Slack's answer holds no tokens: is token rotation on for the app?",
      );
    }
    // Stored before anything else can fail, because the old one has been used.
    this.#refreshToken = new Secret(next);
    const expiresAt = this.#context.clock.now() + seconds * 1_000;
    this.#keep({
      version: 1,
      origin: this.#origin,
      refreshToken: next,
      accessToken: token,
      expiresAt,
    });
    return { token: new Secret(token), expiresAt };
  }

  /** Returns undefined if nothing is kept for this Secret. */
  #readKept(): Kept | undefined {
    const { state, binding, log } = this.#context;
    const text = state?.read();
    if (text === undefined) return undefined;
    const parsed = keptSchema.safeParse(parseJson(text));
    if (parsed.success) return parsed.data.origin === this.#origin ? parsed.data : undefined;
    // Without the issues, which may quote a token.
    log.warn({ binding }, "the kept tokens cannot be read; those of the Secret are used");
    return undefined;
  }

  #keep(kept: Kept): void {
    const { state, binding, log } = this.#context;
    try {
      state?.write(JSON.stringify(kept));
    } catch (error) {
      log.error(
        { binding, error: (error as Error).message },
        "the new refresh token could not be kept: after a restart the Secret needs a new one",
      );
    }
  }
}

/** Names a Secret without revealing it. */
function originOf({ clientId, refreshToken }: RotatingCredential): string {
  const parts = [clientId.reveal(), refreshToken.reveal()];
  return createHash("sha256").update(JSON.stringify(parts)).digest("base64url");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function refusal(error: unknown): TokenExchangeError {
  const code = typeof error === "string" && /^[a-z_]{1,60}$/.test(error) ? error : "an error";
  return new TokenExchangeError(
    `Slack answered ${code} to the refresh token; each works once: if it was used elsewhere, ` +
      "the Secret needs a new one",
    { refused: REFUSALS.has(code) },
  );
}
