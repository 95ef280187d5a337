/** One LLM call, from its permit to its settlement. */
import type { Lease } from "../limits/contract.ts";
import type { PublicError } from "../access/errors.ts";
import type { LimitSubject } from "../limits/subject.ts";
import type { TimeSource } from "../platform/clock.ts";
import type { CallerPolicy, ModelGrant } from "../policy/snapshot.ts";
import type { CallSize } from "./call-size.ts";
import type { Usage } from "./dialects/dialect.ts";
import type { Entry } from "./entry.ts";
import type { RequestFacts } from "./facts.ts";
import type { JsonBody } from "./json-body.ts";
import type { Failure, RetryPlan, AttemptTarget } from "./retry-plan.ts";
import type { LlmRoute } from "./routes.ts";

/**
 * Proof that a caller may use a model, at the providers that the permit names. Only `authorize.ts`
 * creates one, and every function that adds a provider's key to a request requires one: code without
 * the check does not compile.
 */
export interface Permit {
  readonly caller: CallerPolicy;
  readonly grant: ModelGrant;
  /** The requested provider, then its fallbacks; at least one. No other may be sent to. */
  readonly targets: readonly [AttemptTarget, ...AttemptTarget[]];
  readonly [permitBrand]: true;
}

declare const permitBrand: unique symbol;

/** The caller's headers for an upstream of the same dialect. */
export interface VendorHeaders {
  readonly anthropicVersion: string | undefined;
  readonly anthropicBeta: string | undefined;
}

export interface Attempt {
  readonly target: AttemptTarget;
  /** Time when it was sent, or began to wait; milliseconds, monotonic. */
  readonly startedAt: number;
  /** undefined for the current attempt, and for the one that answered. */
  failure?: Failure;
  /** Time when the failure was reported; milliseconds, monotonic. */
  failedAt?: number;
}

/** Outcome of a call, for the log, the metrics and the audit. */
export interface CallOutcome {
  readonly status: number;
  /**
   * `completed` whole, `failed` with an error to the client, `cut` in the middle, `disconnected` by
   * the client.
   */
  readonly end: "completed" | "failed" | "cut" | "disconnected";
  readonly code: string | undefined;
}

/** Failure of an attempt that was never sent, because its provider cannot express the request. */
export const SKIPPED: Failure = {
  status: 0,
  retryAfterMs: undefined,
  flags: "unsupported_by_upstream",
};

/** Initial data of a call. */
export interface CallInit {
  /** The client's address, canonical. */
  readonly address: string;
  /** Milliseconds since the epoch: determines the day to which the call belongs. */
  readonly admittedAt: number;
  readonly subject: LimitSubject;
  /** Resources held since admission; the call releases them. */
  readonly entry: Entry;
  /** undefined if no limit needs it. */
  readonly size: CallSize | undefined;
  readonly facts: RequestFacts;
  readonly id: string;
  readonly route: LlmRoute;
  readonly permit: Permit;
  readonly clock: TimeSource;
  /** Milliseconds, monotonic. */
  readonly startedAt: number;
  readonly plan: RetryPlan;
  readonly vendorHeaders: VendorHeaders;
  readonly original: JsonBody;
}

export class Call {
  readonly id: string;
  readonly route: LlmRoute;
  readonly permit: Permit;
  readonly address: string;
  readonly admittedAt: number;
  readonly subject: LimitSubject;
  readonly size: CallSize | undefined;
  readonly facts: RequestFacts;
  readonly startedAt: number;
  readonly plan: RetryPlan;
  readonly vendorHeaders: VendorHeaders;
  readonly requestBytes: number;
  readonly attempts: Attempt[];
  /** The provider that answers, or is currently tried. */
  target: AttemptTarget;
  /** Whether the first attempt is under way; true at once if it goes directly to its provider. */
  firstAttemptStarted = true;
  /**
   * An error decided before the end of the chain, e.g. because a wait is too long; sent instead of
   * the last answer.
   */
  plannedError:
    | { readonly error: PublicError; readonly retryAfterMs: number | undefined }
    | undefined;
  /** Time when the answer began; milliseconds, monotonic. */
  firstByteAt: number | undefined;
  /** Time of the first content of a streamed answer; milliseconds, monotonic. */
  firstContentAt: number | undefined;
  /** Time of the last progress of a streamed answer; milliseconds, monotonic. */
  lastProgressAt: number | undefined;
  /** Final usage reported by the provider. */
  usage: Usage | undefined;
  /**
   * Usage reported by the provider in a stream that broke before the final report: its input is
   * exact.
   */
  partialUsage: Usage | undefined;
  /** Bytes of the answer so far, for an estimate if usage is missing. */
  outputBytes = 0;
  /** Events of a streamed answer so far. */
  outputEvents = 0;
  /** Whether an upstream has begun an answer that is billed. */
  answered = false;
  /** Whether the whole answer has arrived: an estimate then uses only its bytes. */
  receivedWhole = false;
  /** Whether the answer is a stream, whatever was requested; undefined before it begins. */
  answersStreaming: boolean | undefined;
  readonly #clock: TimeSource;
  readonly #entry: Entry;
  #original: JsonBody | undefined;
  #reports = 0;
  readonly #waiting = new Map<number, (failure: Failure) => void>();

  constructor(init: CallInit) {
    this.id = init.id;
    this.route = init.route;
    this.permit = init.permit;
    this.address = init.address;
    this.admittedAt = init.admittedAt;
    this.subject = init.subject;
    this.size = init.size;
    this.facts = init.facts;
    this.startedAt = init.startedAt;
    this.plan = init.plan;
    this.vendorHeaders = init.vendorHeaders;
    this.requestBytes = init.original.raw.length;
    this.#clock = init.clock;
    this.#entry = init.entry;
    this.#original = init.original;
    this.target = init.plan.current;
    this.attempts = [{ target: this.target, startedAt: init.startedAt }];
  }

  /** Whether the client requested a stream. */
  get stream(): boolean {
    return this.facts.stream;
  }

  get wantsUsage(): boolean {
    return this.facts.wantsUsage;
  }

  /** Maximum output tokens to request from a provider, if the body contains none. */
  get outputCap(): number | undefined {
    return this.size?.outputCap;
  }

  /** The lease of its reservation; undefined if none was needed. */
  get lease(): Lease | undefined {
    return this.#entry.lease;
  }

  /** The caller's body, for attempts at another provider; undefined once an answer has begun. */
  get original(): JsonBody | undefined {
    return this.#original;
  }

  /** Drops the caller's body: no further attempt will be made. */
  dropOriginal(): void {
    this.#original = undefined;
    this.#entry.bytes.release();
  }

  get retries(): number {
    return this.attempts.length - 1;
  }

  /** The originally requested model, if another one answers. */
  get fellBackFrom(): string | undefined {
    const first = this.attempts[0];
    if (first === undefined) return undefined;
    const from = refOf(first.target);
    return from === this.modelId ? undefined : from;
  }

  /** `<provider>/<model>` of the current target. */
  get modelId(): string {
    return refOf(this.target);
  }

  begin(target: AttemptTarget): void {
    this.target = target;
    this.attempts.push({ target, startedAt: this.#clock.monotonic() });
  }

  /** Notes that attempt `number` (1 is the first) failed. The first report is decisive. */
  reportFailure(number: number, failure: Failure): void {
    const attempt = this.attempts[number - 1];
    if (attempt === undefined || attempt.failure !== undefined) return;
    attempt.failure = failure;
    attempt.failedAt = this.#clock.monotonic();
    this.#waiting.get(number)?.(failure);
    this.#waiting.delete(number);
  }

  /**
   * Notes a failure reported by Envoy's router: once for each attempt that it sent, in order.
   * Attempts that were skipped because their provider cannot express the request are not included.
   */
  reportSentFailure(failure: Failure): void {
    let number = 0;
    for (let left = ++this.#reports; left > 0 && number < this.attempts.length; number++) {
      if (this.attempts[number]?.failure !== SKIPPED) left--;
    }
    this.reportFailure(number, failure);
  }

  /**
   * Calls back with the failure of attempt `number` (1 is the first), immediately if it is known.
   */
  onFailure(number: number, callback: (failure: Failure) => void): void {
    const known = this.attempts[number - 1]?.failure;
    if (known !== undefined) callback(known);
    else this.#waiting.set(number, callback);
  }
}

function refOf({ provider, model }: AttemptTarget): string {
  return `${provider.name}/${model}`;
}
