/**
 * A token that ages, kept fresh: renewed in the background before it expires, by one exchange at a
 * time, and used to its true end while the token server is away. Of the clock it trusts the
 * monotonic one for age, so that a step back of the wall clock does not keep a dead token alive,
 * and the wall one too, which goes on while a machine sleeps.
 */
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import type { Secret } from "../platform/secret.ts";
import { InjectionError } from "./contract.ts";

export interface FetchedToken {
  readonly token: Secret;
  /**
   * Milliseconds since the epoch, by our clock: where the server says a lifetime, add it to
   * `clock.now()`.
   */
  readonly expiresAt: number;
}

/** Why an exchange failed. The message is for the operator's log: no secret, no answer's body. */
export class TokenExchangeError extends Error {
  override readonly name = "TokenExchangeError";
  /** The server refuses what we are: asking again soon is of no use. */
  readonly refused: boolean;
  /** As the server asks. */
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
  /** One exchange. `signal` ends it when it takes too long or nobody wants it any more. */
  readonly fetchToken: (signal: AbortSignal) => Promise<FetchedToken>;
  /** Renewed at this age, or earlier: see `marginMs`. */
  readonly maxAgeMs: number;
  /** Renewed this long before it expires. */
  readonly marginMs: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  /** For one exchange; 10 s when left out. */
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
/** A server that asks for more than this is asked again nevertheless. */
const RETRY_AFTER_MAX_MS = 10 * 60_000;
const REFRESH_MIN_MS = 1_000;
/**
 * Part of a token's age by which renewals are spread, so that sidecars started together do not
 * renew together.
 */
const SPREAD = 0.05;

export class TokenRefresher {
  readonly #options: RefresherOptions;
  #held: Held | undefined;
  #exchange: Promise<void> | undefined;
  #abort: AbortController | undefined;
  #cancelTimer: (() => void) | undefined;
  #failures = 0;
  /** The last exchange's error, while it is the reason that there is no token. */
  #failure: TokenExchangeError | undefined;
  #stopped = false;

  constructor(options: RefresherOptions) {
    this.#options = options;
  }

  /**
   * Gets the first token. A token server that is away or refuses does not fail it: that is logged,
   * tried again in the background, and told to who asks for the token meanwhile.
   */
  async start(): Promise<void> {
    this.#stopped = false;
    await this.refresh().catch(() => undefined);
  }

  /** Ends the background work and an exchange under way; the token is forgotten. */
  stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#held = undefined;
    this.#abort?.abort();
    return Promise.resolve();
  }

  /**
   * The token to use now. Waits only where there is none and an exchange is under way or due.
   * @throws InjectionError where none can be had now
   */
  current(): Secret | Promise<Secret> {
    const held = this.#valid();
    if (held !== undefined) return held.token;
    return this.#awaited();
  }

  /**
   * Gets a new token now; who asks at the same time shares the exchange. The old one stays in use
   * where it fails.
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

  async #awaited(): Promise<Secret> {
    // After a failure the timer asks again: a request does not, or an agent's haste would become
    // ours.
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

  /** Never rejects: what came of it is in the fields. */
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
        log.info({ binding, failures: this.#failures }, "the token server gives tokens again");
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
      // The cause's message may quote an answer; its code (ECONNREFUSED, ...) cannot.
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

  /** The exchange, or its end when it takes too long: also where it does not heed the signal. */
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
        `Provider ${binding}: the service refuses the credential that it was given; the operator's log says more`,
        502,
      );
    }
    return new InjectionError(
      `Provider ${binding}: no access token can be had at the moment; try again in a minute`,
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
