/** One LLM call, from its permit to its settlement. */
import type { PublicError } from "../access/errors.ts";
import type { Lease } from "../limits/limits.ts";
import type { LimitSubject } from "../limits/subject.ts";
import type { TimeSource } from "../platform/clock.ts";
import type { CallerPolicy, ModelGrant } from "../policy/snapshot.ts";
import type { CallSize } from "./call-size.ts";
import type { Usage } from "./dialects/dialect.ts";
import type { Entry } from "./entry.ts";
import type { RequestFacts } from "./facts.ts";
import type { JsonBody } from "./json-body.ts";
import type { Failure, RetryPlan, Target } from "./retry-plan.ts";
import type { LlmRoute } from "./routes.ts";

/**
 * Proof that a caller may use a model. Only `authorize.ts` makes one, and whatever puts a
 * provider's key on a request takes one: forgetting the check does not compile.
 */
export interface Permit {
  readonly caller: CallerPolicy;
  readonly grant: ModelGrant;
  readonly [permitBrand]: true;
}

declare const permitBrand: unique symbol;

/** The caller's headers that an upstream of the same dialect understands. */
export interface VendorHeaders {
  readonly anthropicVersion: string | undefined;
  readonly anthropicBeta: string | undefined;
}

export interface Attempt {
  readonly target: Target;
  /** Milliseconds, monotonic: when it was sent, or began to wait for its turn. */
  readonly startedAt: number;
  /** undefined while it is the current one, or for the one that answered. */
  failure?: Failure;
  /** When the failure was reported; milliseconds, monotonic. */
  failedAt?: number;
}

/** How a call ended, for the log, the metrics and the audit. */
export interface CallOutcome {
  readonly status: number;
  /**
   * `completed` whole, `failed` with an error to the client, `cut` in the middle, `disconnected` by
   * the client.
   */
  readonly end: "completed" | "failed" | "cut" | "disconnected";
  readonly code: string | undefined;
}

/** The failure of an attempt that was never sent: its provider cannot express the request. */
export const SKIPPED: Failure = {
  status: 0,
  retryAfterMs: undefined,
  flags: "unsupported_by_upstream",
};

/** What a call begins with. */
export interface CallInit {
  /** The client's address, canonical. */
  readonly address: string;
  /** Milliseconds since the epoch: the day that the call counts into. */
  readonly admittedAt: number;
  readonly subject: LimitSubject;
  /** What the request held when it entered; the call gives it back. */
  readonly entry: Entry;
  /** undefined where no limit asks. */
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
  /** The provider that answers, or is being asked. */
  target: Target;
  /** The first attempt is under way: at once where it goes straight to its provider. */
  firstAttemptStarted = true;
  /**
   * Decided before the chain was walked to its end, e.g. a wait that is too long; shown instead of
   * the last answer.
   */
  plannedError:
    | { readonly error: PublicError; readonly retryAfterMs: number | undefined }
    | undefined;
  /** When the answer began; milliseconds, monotonic. */
  firstByteAt: number | undefined;
  /** When the first content of a streamed answer passed; milliseconds, monotonic. */
  firstContentAt: number | undefined;
  /** When a streamed answer last went on; milliseconds, monotonic. */
  lastProgressAt: number | undefined;
  /** As the provider said it, finally. */
  usage: Usage | undefined;
  /** What the provider said of a stream that broke before its final word: its input is exact. */
  partialUsage: Usage | undefined;
  /** Bytes of answer seen, for an estimate when usage never came. */
  outputBytes = 0;
  /** Events of a streamed answer seen. */
  outputEvents = 0;
  /** Whether an upstream has begun an answer that costs. */
  answered = false;
  /** The whole answer was there: an estimate takes its bytes for all that was generated. */
  receivedWhole = false;
  /** The answer is a stream, whatever was asked for; undefined while none has begun. */
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

  /** As the client asked. */
  get stream(): boolean {
    return this.facts.stream;
  }

  get wantsUsage(): boolean {
    return this.facts.wantsUsage;
  }

  /** The most output tokens to ask a provider for, where the body names none. */
  get outputCap(): number | undefined {
    return this.size?.outputCap;
  }

  /** What was reserved for it; undefined where nothing had to be. */
  get lease(): Lease | undefined {
    return this.#entry.lease;
  }

  /** The caller's body, for attempts at another provider; undefined once an answer has begun. */
  get original(): JsonBody | undefined {
    return this.#original;
  }

  /** Lets go of the caller's body: no further attempt will be made. */
  dropOriginal(): void {
    this.#original = undefined;
    this.#entry.bytes.release();
  }

  get retries(): number {
    return this.attempts.length - 1;
  }

  /** The model that was asked first, when another one answers. */
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

  begin(target: Target): void {
    this.target = target;
    this.attempts.push({ target, startedAt: this.#clock.monotonic() });
  }

  /** Attempt `number` (1 is the first) failed. The first report counts. */
  reportFailure(number: number, failure: Failure): void {
    const attempt = this.attempts[number - 1];
    if (attempt === undefined || attempt.failure !== undefined) return;
    attempt.failure = failure;
    attempt.failedAt = this.#clock.monotonic();
    this.#waiting.get(number)?.(failure);
    this.#waiting.delete(number);
  }

  /**
   * Envoy's router reports that an attempt failed: once for each that it sent, in their order. It
   * does not count those that were skipped before they were sent, because their provider cannot
   * express the request.
   */
  reportSentFailure(failure: Failure): void {
    let number = 0;
    for (let left = ++this.#reports; left > 0 && number < this.attempts.length; number++) {
      if (this.attempts[number]?.failure !== SKIPPED) left--;
    }
    this.reportFailure(number, failure);
  }

  /** Calls back with the failure of attempt `number` (1 is the first), at once if it is known. */
  onFailure(number: number, callback: (failure: Failure) => void): void {
    const known = this.attempts[number - 1]?.failure;
    if (known !== undefined) callback(known);
    else this.#waiting.set(number, callback);
  }
}

function refOf({ provider, model }: Target): string {
  return `${provider.name}/${model}`;
}
