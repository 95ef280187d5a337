/**
 * Call is one LLM call, from its permit to its settlement: facts about its request, its attempts,
 * and the state of its answer.
 */
import type { Lease } from "../limits/contract.ts";
import type { PublicError } from "../access/errors.ts";
import type { LimitSubject } from "../limits/subject.ts";
import type { TimeSource } from "../platform/clock.ts";
import type { CallerPolicy, ModelGrant } from "../policy/snapshot.ts";
import type { CallSize } from "./request/call-size.ts";
import type { VendorHeaders } from "./dialects/contract.ts";
import { type Changes, UNCHANGED } from "./dialects/changes.ts";
import type { Usage } from "./dialects/dialect.ts";
import type { RequestEcho } from "./dialects/model.ts";
import type { Entry } from "./request/entry.ts";
import type { RequestFacts } from "./request/facts.ts";
import type { JsonBody } from "./request/json-body.ts";
import type { FallbackBudgets } from "./attempts/fallback-budgets.ts";
import type { Failure, RetryPlan, AttemptTarget } from "./attempts/retry-plan.ts";
import { type Delivery, deliveryOf } from "./attempts/upstreams.ts";
import type { LlmRoute } from "./request/routes.ts";

/**
 * Proof that a caller may use a model, at the providers that the permit names. Only
 * `request/authorize.ts` creates one, and every function that adds a provider's key to a request
 * requires one: code without the check does not compile.
 */
export interface Permit {
  readonly caller: CallerPolicy;
  readonly grant: ModelGrant;
  /** The requested provider, then its fallbacks; at least one. No other may be sent to. */
  readonly targets: readonly [AttemptTarget, ...AttemptTarget[]];
  readonly [permitBrand]: true;
}

declare const permitBrand: unique symbol;

export interface Attempt {
  readonly target: AttemptTarget;
  /** Time when it was sent, or began to wait; milliseconds, monotonic. */
  readonly startedAt: number;
  /** Changes that its provider's dialect required. */
  readonly changes: Changes;
  /** undefined for the current attempt, and for the one that answered. */
  failure?: Failure;
  /** Time when the failure was reported; milliseconds, monotonic. */
  failedAt?: number;
}

/** Failures of attempts that were never sent. */
export const NotSent = {
  /** The provider's dialect cannot express the request. */
  unsupported: { status: 0, retryAfterMs: undefined, flags: "unsupported_by_upstream" },
  /** The provider's external budget has no room for the call. */
  overBudget: { status: 0, retryAfterMs: undefined, flags: "external_tokens_per_day_exceeded" },
} as const satisfies Record<string, Failure>;

const NOT_SENT: ReadonlySet<Failure | undefined> = new Set(Object.values(NotSent));

/** Facts about a call's request. They do not change. */
export interface CallRequest {
  readonly id: string;
  readonly route: LlmRoute;
  readonly facts: RequestFacts;
  readonly permit: Permit;
  readonly vendorHeaders: VendorHeaders;
  /** The client's address, canonical. */
  readonly address: string;
  /** Milliseconds since the epoch: determines the day to which the call belongs. */
  readonly admittedAt: number;
  /** Milliseconds, monotonic. */
  readonly startedAt: number;
  readonly subject: LimitSubject;
  /** undefined if no limit needs it. */
  readonly size: CallSize | undefined;
  /** Length of the caller's body. */
  readonly bytes: number;
  /** Fields of the request that a translated answer repeats; undefined if there are none. */
  readonly echo: RequestEcho | undefined;
}

/** State of a call's answer, which the response path updates. Times are in ms, monotonic. */
export interface CallAnswer {
  /** Whether an upstream has begun an answer that is billed. */
  begun: boolean;
  /** Whether the answer is a stream, whatever was requested; undefined before it begins. */
  streaming: boolean | undefined;
  firstByteAt: number | undefined;
  /** Time of the first content of a streamed answer. */
  firstContentAt: number | undefined;
  /** Time of the last progress of a streamed answer. */
  lastProgressAt: number | undefined;
  /** Final usage reported by the provider. */
  usage: Usage | undefined;
  /**
   * Usage reported by the provider in a stream that broke before the final report: its input is
   * exact.
   */
  partialUsage: Usage | undefined;
  /** Bytes so far, for an estimate if usage is missing. */
  bytes: number;
  /** Events of a streamed answer so far. */
  events: number;
  /** Whether the whole answer has arrived: an estimate then uses only its bytes. */
  receivedWhole: boolean;
}

export interface CallOptions {
  readonly request: CallRequest;
  /** Changes that the translation of the first attempt made. */
  readonly changes: Changes;
  readonly plan: RetryPlan;
  /** undefined if no fallback counts the call by itself. */
  readonly fallbackBudgets?: FallbackBudgets | undefined;
  /** The caller's body. */
  readonly original: JsonBody;
  /** Resources held since admission; the call releases them. */
  readonly entry: Entry;
  readonly clock: TimeSource;
}

export class Call {
  readonly request: CallRequest;
  readonly plan: RetryPlan;
  readonly fallbackBudgets: FallbackBudgets | undefined;
  readonly attempts: Attempt[];
  readonly answer: CallAnswer = {
    begun: false,
    streaming: undefined,
    firstByteAt: undefined,
    firstContentAt: undefined,
    lastProgressAt: undefined,
    usage: undefined,
    partialUsage: undefined,
    bytes: 0,
    events: 0,
    receivedWhole: false,
  };
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
  readonly #clock: TimeSource;
  readonly #entry: Entry;
  #original: JsonBody | undefined;
  #reports = 0;
  readonly #waiting = new Map<number, (failure: Failure) => void>();

  constructor({ request, changes, plan, fallbackBudgets, original, entry, clock }: CallOptions) {
    this.request = request;
    this.plan = plan;
    this.fallbackBudgets = fallbackBudgets;
    this.target = plan.current;
    this.attempts = [{ target: plan.current, startedAt: request.startedAt, changes }];
    this.#original = original;
    this.#entry = entry;
    this.#clock = clock;
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
    const from = modelIdOf(first.target);
    return from === this.modelId ? undefined : from;
  }

  /** How the current target is sent the call. */
  get delivery(): Delivery {
    const delivery = deliveryOf(this.target.provider, this.request.route);
    if (delivery === undefined) throw new Error(`${this.modelId} does not serve the call`);
    return delivery;
  }

  /** `<provider>/<model>` of the current target. */
  get modelId(): string {
    return modelIdOf(this.target);
  }

  begin(target: AttemptTarget, changes: Changes = UNCHANGED): void {
    this.target = target;
    this.attempts.push({ target, startedAt: this.#clock.monotonic(), changes });
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
   * Attempts that were never sent ({@link NotSent}) are not included.
   */
  reportSentFailure(failure: Failure): void {
    let number = 0;
    for (let left = ++this.#reports; left > 0 && number < this.attempts.length; number++) {
      if (!NOT_SENT.has(this.attempts[number]?.failure)) left--;
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

/** Returns `<provider>/<model>`. */
export function modelIdOf({ provider, model }: AttemptTarget): string {
  return `${provider.name}/${model}`;
}
