/** One LLM call, from its permit to its settlement. */
import type { Lease } from "../limits/limits.ts";
import type { CallerPolicy, ModelGrant } from "../policy/snapshot.ts";
import type { Books, Demand } from "./budget.ts";
import type { PublicError, Usage } from "./dialects/dialect.ts";
import type { Failure, RetryPlan, Target } from "./retry-plan.ts";
import type { LlmRoute } from "./routes.ts";

/**
 * Proof that a caller may use a model. Only `authorize.ts` makes one, and whatever puts a provider's key on a request
 * takes one: forgetting the check does not compile.
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
  readonly provider: string;
  readonly model: string;
  /** undefined while it is the current one, or for the one that answered. */
  failure?: Failure;
}

/** How a call ended, for the log, the metrics and the audit. */
export interface CallOutcome {
  readonly status: number;
  /** `completed` whole, `failed` with an error to the client, `cut` in the middle, `disconnected` by the client. */
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
  /** Of the client, canonical. */
  readonly address: string;
  /** Milliseconds since the epoch: the day that the call counts into. */
  readonly admittedAt: number;
  readonly books: Books;
  readonly demand: Demand | undefined;
  /** The most output tokens to ask a provider for, where the body names none. */
  readonly outputCap: number | undefined;
  readonly id: string;
  readonly route: LlmRoute;
  readonly permit: Permit;
  /** Milliseconds, monotonic. */
  readonly startedAt: number;
  readonly plan: RetryPlan;
  readonly vendorHeaders: VendorHeaders;
  /** As the client asked. */
  readonly stream: boolean;
  readonly wantsUsage: boolean;
  readonly original: { readonly raw: Buffer; readonly body: unknown };
}

export class Call {
  readonly id: string;
  readonly route: LlmRoute;
  readonly permit: Permit;
  readonly address: string;
  readonly admittedAt: number;
  readonly books: Books;
  /** What it may come to; undefined where no limit asks. */
  readonly demand: Demand | undefined;
  readonly outputCap: number | undefined;
  /** What was reserved for it; undefined where nothing had to be. */
  lease: Lease | undefined;
  readonly startedAt: number;
  readonly plan: RetryPlan;
  readonly vendorHeaders: VendorHeaders;
  /** As the client asked. */
  readonly stream: boolean;
  readonly wantsUsage: boolean;
  /** The caller's body, for attempts at another provider; dropped once an answer has begun. */
  original: { readonly raw: Buffer; readonly body: unknown } | undefined;
  readonly requestCharacters: number;
  readonly attempts: Attempt[];
  /** Who answers, or is being asked. */
  target: Target;
  /** The first attempt is under way: at once where it goes straight to its provider. */
  firstAttemptStarted = true;
  /** Decided before the chain was walked to its end, e.g. a wait that is too long; shown instead of the last answer. */
  plannedError:
    | { readonly error: PublicError; readonly retryAfterMs: number | undefined }
    | undefined;
  firstByteAt: number | undefined;
  /** As the provider said it, finally. */
  usage: Usage | undefined;
  /** What the provider said of a stream that broke before its final word: its input is exact. */
  partialUsage: Usage | undefined;
  /** Characters of the answer seen, for an estimate when usage never came. */
  outputCharacters = 0;
  /** Whether an upstream has begun an answer that costs. */
  answered = false;
  #reports = 0;
  readonly #waiting = new Map<number, (failure: Failure) => void>();

  constructor(init: CallInit) {
    this.id = init.id;
    this.route = init.route;
    this.permit = init.permit;
    this.address = init.address;
    this.admittedAt = init.admittedAt;
    this.books = init.books;
    this.demand = init.demand;
    this.outputCap = init.outputCap;
    this.startedAt = init.startedAt;
    this.plan = init.plan;
    this.vendorHeaders = init.vendorHeaders;
    this.stream = init.stream;
    this.wantsUsage = init.wantsUsage;
    this.original = init.original;
    this.requestCharacters = init.original.raw.length;
    this.target = init.plan.current;
    this.attempts = [{ provider: this.target.provider.name, model: this.target.model }];
  }

  get retries(): number {
    return this.attempts.length - 1;
  }

  /** The model that was asked first, when another one answers. */
  get fellBackFrom(): string | undefined {
    const first = this.attempts[0];
    if (first === undefined) return undefined;
    const { provider, model } = this.target;
    return first.provider === provider.name && first.model === model
      ? undefined
      : `${first.provider}/${first.model}`;
  }

  get modelId(): string {
    return `${this.target.provider.name}/${this.target.model}`;
  }

  begin(target: Target): void {
    this.target = target;
    this.attempts.push({ provider: target.provider.name, model: target.model });
  }

  /** Attempt `number` (1 is the first) failed. The first word counts. */
  reportFailure(number: number, failure: Failure): void {
    const attempt = this.attempts[number - 1];
    if (attempt === undefined || attempt.failure !== undefined) return;
    attempt.failure = failure;
    this.#waiting.get(number)?.(failure);
    this.#waiting.delete(number);
  }

  /**
   * Envoy's router reports that an attempt failed: once for each that it sent, in their order. It does not count those
   * that were skipped before they were sent, because their provider cannot express the request.
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
