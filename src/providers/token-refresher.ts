/**
 * Keeps an expiring token fresh: it is renewed in the background before it expires, by one exchange
 * at a time, and used until it expires while the token server is unavailable. The monotonic clock
 * determines the age, so that a step back of the wall clock does not extend the use of an expired
 * token; the wall clock is checked too, because it continues while a machine sleeps.
 */
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import type { Secret } from "../platform/secret.ts";
import { InjectionError } from "./contract.ts";

export interface FetchedToken {
  readonly token: Secret;
  /**
   * Milliseconds since the epoch, by our clock: if the server returns a lifetime, add it to
   * `clock.now()`.
   */
  readonly expiresAt: number;
}

/**
 * Reason of a failed exchange. The message is for the operator's log: no secret and no response
 * body.
 */
export class TokenExchangeError extends Error {
  override readonly name = "TokenExchangeError";
  /** The server refuses the credential: repeating the request soon does not help. */
  readonly refused: boolean;
  /** Delay requested by the server. */
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    options: {
      readonly refused?: boolean;
      readonly retryAfterMs?: number | undefined;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, { cause: options.cause });
    this.refused = options.refused ?? false;
    this.retryAfterMs = options.retryAfterMs;
  }
}

export interface RefresherOptions {
  /** Name of the Provider, for messages. */
  readonly binding: string;
  /** Performs one exchange. `signal` ends it when it takes too long or is no longer needed. */
  readonly fetchToken: (signal: AbortSignal) => Promise<FetchedToken>;
  /** Age at which it is renewed, or earlier: see `marginMs`. */
  readonly maxAgeMs: number;
  /** Time before the expiry at which it is renewed. */
  readonly marginMs: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  /** Timeout of one exchange; default 10 s. */
  readonly timeoutMs?: number;
}

interface Held {
  readonly token: Secret;
  readonly expiresAt: number;
  readonly expiresAtMonotonic: number;
}

const TIMEOUT_MS = 10_000;
const BACKOFF_BASE_MS = 1_000;
const BACKOFF_MAX_MS = 60_000;
/** Upper bound on the delay that a server can request. */
const RETRY_AFTER_MAX_MS = 10 * 60_000;
const REFRESH_MIN_MS = 1_000;
/**
 * Fraction of a token's age by which renewals are randomized, so that sidecars started together do
 * not renew together.
 */
const SPREAD = 0.05;

export class TokenRefresher {
  readonly #options: RefresherOptions;
  #held: Held | undefined;
  #exchange: Promise<void> | undefined;
  #abort: AbortController | undefined;
  #cancelTimer: (() => void) | undefined;
  #failures = 0;
  /** Error of the last exchange, while it is the reason for the missing token. */
  #failure: TokenExchangeError | undefined;
  #stopped = false;

  constructor(options: RefresherOptions) {
    this.#options = options;
  }

  /**
   * Obtains the first token. An unavailable or refusing token server does not make it fail: the
   * failure is logged, retried in the background, and reported to callers that need the token
   * meanwhile.
   */
  async start(): Promise<void> {
    this.#stopped = false;
    await this.refresh().catch(() => undefined);
  }

  /** Ends the background work and a running exchange; removes the token. */
  stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#held = undefined;
    this.#abort?.abort();
    return Promise.resolve();
  }

  /**
   * Returns the current token. Waits only if there is none and an exchange is running or due.
   * @throws InjectionError if no token is available now
   */
  current(): Secret | Promise<Secret> {
    const held = this.#valid();
    if (held !== undefined) return held.token;
    return this.#awaited();
  }

  /**
   * Obtains a new token now; concurrent callers share the exchange. If it fails, the old one stays
   * in use.
   * @throws InjectionError
   */
  async refresh(): Promise<void> {
    if (this.#stopped) throw this.#unavailable();
    this.#exchange ??= this.#run().finally(() => {
      this.#exchange = undefined;
    });
    await this.#exchange;
    if (this.#failure !== undefined || this.#stopped) throw this.#unavailable();
  }

  /** Forgets the token, because the service refuses it: the next caller obtains a new one. */
  drop(): void {
    this.#held = undefined;
  }

  async #awaited(): Promise<Secret> {
    // After a failure, only the timer retries: requests do not, so that a fast agent cannot flood
    // the token server.
    if (this.#exchange !== undefined || this.#failure === undefined) await this.refresh();
    const held = this.#valid();
    if (held === undefined) throw this.#unavailable();
    return held.token;
  }

  #valid(): Held | undefined {
    const held = this.#held;
    if (held === undefined) return undefined;
    const { clock } = this.#options;
    return clock.monotonic() < held.expiresAtMonotonic && clock.now() < held.expiresAt
      ? held
      : undefined;
  }

  /** Never rejects: the fields hold the result. */
  async #run(): Promise<void> {
    const { clock, binding, log } = this.#options;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    try {
      const fetched = await this.#withTimeout();
      const lifetime = fetched.expiresAt - clock.now();
      if (!(lifetime > 0))
        throw new TokenExchangeError(
          "the token server's token has expired already: is the clock of this machine right?",
        );
      if (this.#stopped) return;
      this.#held = { ...fetched, expiresAtMonotonic: clock.monotonic() + lifetime };
      if (this.#failures > 0)
        log.info({ binding, failures: this.#failures }, "the token server issues tokens again");
      this.#failures = 0;
      this.#failure = undefined;
      this.#schedule(this.#refreshDelay(lifetime));
    } catch (error) {
      if (this.#stopped) return;
      const failure =
        error instanceof TokenExchangeError
          ? error
          : new TokenExchangeError("the token server could not be asked", { cause: error });
      this.#failure = failure;
      this.#failures += 1;
      const delay = this.#retryDelay(failure);
      // The cause's message may quote a response; its code (ECONNREFUSED, ...) cannot.
      log.warn(
        {
          binding,
          reason: failure.message,
          code: codeOf(failure.cause),
          failures: this.#failures,
          retryInMs: Math.round(delay),
        },
        "no new token",
      );
      this.#schedule(delay);
    }
  }

  /** Runs the exchange with a timeout, also if it ignores the signal. */
  async #withTimeout(): Promise<FetchedToken> {
    const { clock, fetchToken, timeoutMs = TIMEOUT_MS } = this.#options;
    const abort = new AbortController();
    this.#abort = abort;
    const late = Promise.withResolvers<never>();
    const cancel = clock.after(timeoutMs, () => {
      late.reject(new TokenExchangeError(`the token server did not answer within ${timeoutMs} ms`));
      abort.abort();
    });
    abort.signal.addEventListener("abort", () => late.reject(new TokenExchangeError("stopped")));
    try {
      return await Promise.race([fetchToken(abort.signal), late.promise]);
    } finally {
      cancel();
      this.#abort = undefined;
    }
  }

  #schedule(delayMs: number): void {
    this.#cancelTimer = this.#options.clock.after(delayMs, () => {
      this.#cancelTimer = undefined;
      void this.refresh().catch(() => undefined);
    });
  }

  #refreshDelay(lifetimeMs: number): number {
    const { maxAgeMs, marginMs, random } = this.#options;
    const latest = lifetimeMs > marginMs ? lifetimeMs - marginMs : lifetimeMs / 2;
    return Math.max(Math.min(maxAgeMs, latest) * (1 - SPREAD * random()), REFRESH_MIN_MS);
  }

  #retryDelay(failure: TokenExchangeError): number {
    const ceiling = failure.refused
      ? BACKOFF_MAX_MS
      : Math.min(BACKOFF_MAX_MS, BACKOFF_BASE_MS * 2 ** Math.min(this.#failures - 1, 16));
    const backoff = (ceiling / 2) * (1 + this.#options.random());
    return Math.max(backoff, Math.min(failure.retryAfterMs ?? 0, RETRY_AFTER_MAX_MS));
  }

  #unavailable(): InjectionError {
    const { binding } = this.#options;
    if (this.#stopped) return new InjectionError(`Provider ${binding} is shutting down`, 503);
    if (this.#failure?.refused === true) {
      return new InjectionError(
        `Provider ${binding}: the service refuses the configured credential; the ` +
          "operator's log has details",
        502,
      );
    }
    return new InjectionError(
      `Provider ${binding}: no access token is available at the moment; try again in a minute`,
      503,
    );
  }
}

function codeOf(cause: unknown): string | undefined {
  if (!(cause instanceof Error)) return undefined;
  const { code } = (cause.cause instanceof Error ? cause.cause : cause) as {
    readonly code?: unknown;
  };
  return typeof code === "string" ? code : cause.name;
}
