/**
 * Slack's token rotation: a refresh token is exchanged for an access token of twelve hours and a
 * new refresh token. https://docs.slack.dev/authentication/using-token-rotation
 *
 * The new refresh token is kept only in memory. After a restart, the one in the Secret is tried.
 */
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

export class RotatingToken {
  readonly #context: Pick<PluginContext, "fetch" | "clock">;
  readonly #clientId: Secret;
  readonly #clientSecret: Secret;
  #refreshToken: Secret;

  constructor(
    context: Pick<PluginContext, "fetch" | "clock">,
    credential: {
      readonly clientId: Secret;
      readonly clientSecret: Secret;
      readonly refreshToken: Secret;
    },
  ) {
    this.#context = context;
    this.#clientId = credential.clientId;
    this.#clientSecret = credential.clientSecret;
    this.#refreshToken = credential.refreshToken;
  }

  /** @throws TokenExchangeError */
  async fetch(signal: AbortSignal): Promise<FetchedToken> {
    const response = await this.#context.fetch(ADDRESS, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded", "user-agent": "svc" },
      body: new URLSearchParams({
        client_id: this.#clientId.reveal(),
        client_secret: this.#clientSecret.reveal(),
        grant_type: "refresh_token",
        refresh_token: this.#refreshToken.reveal(),
      }).toString(),
      redirect: "error",
      signal,
    });
    if (response.status !== 200) {
      await response.body?.cancel();
      const after = Number(response.headers.get("retry-after") ?? Number.NaN);
      throw new TokenExchangeError(`Slack answered ${response.status} to the refresh token`, {
        retryAfterMs: Number.isFinite(after) ? after * 1_000 : undefined,
      });
    }
    const bytes = new Uint8Array(await response.arrayBuffer());
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
    return { token: new Secret(token), expiresAt: this.#context.clock.now() + seconds * 1_000 };
  }
}

function refusal(error: unknown): TokenExchangeError {
  const code = typeof error === "string" && /^[a-z_]{1,60}$/.test(error) ? error : "an error";
  return new TokenExchangeError(
    `Slack answered ${code} to the refresh token; each works once: after a restart the ` +
      "Secret needs a new one",
    { refused: REFUSALS.has(code) },
  );
}
