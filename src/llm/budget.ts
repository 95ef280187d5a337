/**
 * Limits of a call: what is asked of the counters before it goes upstream, in words a caller understands, and what is
 * given back after it. Budgets are reserved at their worst: the prompt, estimated, and the most the answer may be.
 */
import type {
  Admission,
  Amounts,
  Check,
  Lease,
  Limits,
  Usage as CountedUsage,
} from "../limits/limits.ts";
import type { CallerPolicy, PolicySnapshot } from "../policy/snapshot.ts";
import { costOf, formatUsd, toMicrodollars } from "../pricing/cost.ts";
import type { PriceBook } from "../pricing/price-book.ts";
import type { PublicError } from "./dialects/dialect.ts";
import { type ErrorCode, publicError } from "./errors.ts";

/** Of a request that names no maximum, and whose caller has none: what its answer is reserved as, tokens. */
export const ASSUMED_OUTPUT_TOKENS = 4_096;

const MINUTE_MS = 60_000;

/** What a call may come to. */
export interface Demand {
  readonly promptTokens: number;
  /** 0 where the operation has no answer to pay for. */
  readonly outputTokens: number;
  /** undefined where the model has no price: its cost is not counted. */
  readonly microUsd: number | undefined;
}

/** Where a caller's counters are. */
export interface Books {
  readonly scope: string;
  readonly accounts: readonly string[];
  readonly checks: readonly Check[];
}

/** @param snapshot the one that the request reads */
export function booksOf(caller: CallerPolicy, snapshot: PolicySnapshot): Books {
  const checks: Check[] = [];
  const daily = (
    account: string,
    unit: "tokens" | "requests" | "microUsd",
    limit: number | undefined,
  ): void => {
    if (limit !== undefined) checks.push({ kind: "daily", account, unit, limit });
  };
  if (caller.kind === "agent") {
    const { limits } = caller;
    const account = AGENT_ACCOUNT;
    if (limits.maxConcurrentRequests !== undefined)
      checks.push({ kind: "concurrency", account, limit: limits.maxConcurrentRequests });
    if (limits.requestsPerMinute !== undefined)
      checks.push({ kind: "rate", account, limit: limits.requestsPerMinute, windowMs: MINUTE_MS });
    daily(account, "tokens", limits.maxTokensPerDay);
    daily(account, "microUsd", limits.maxMicroUsdPerDay);
    return { scope: agentScope(caller.namespace, caller.name), accounts: [account], checks };
  }
  const account = keyAccount(caller.name);
  daily(account, "requests", caller.limits.maxRequestsPerDay);
  daily(account, "tokens", caller.limits.maxTokensPerDay);
  daily(
    PROVIDER_ACCOUNT,
    "tokens",
    snapshot.providers.get(caller.providerKey)?.external?.maxTokensPerDay,
  );
  return {
    scope: externalScope(caller.providerKey),
    accounts: [PROVIDER_ACCOUNT, account],
    checks,
  };
}

export const AGENT_ACCOUNT = "agent";
export const PROVIDER_ACCOUNT = "provider";

export function agentScope(namespace: string, name: string): string {
  return `agent/${namespace}/${name}`;
}

/** @param providerKey `<namespace>/<name>` of the ModelProvider */
export function externalScope(providerKey: string): string {
  return `external/${providerKey}`;
}

export function keyAccount(name: string): string {
  return `key/${name}`;
}

/** The cost of a demand, rounded up to micro-dollars; undefined where the model has no price. */
export function priceDemand(
  prices: PriceBook,
  model: string,
  promptTokens: number,
  outputTokens: number,
): number | undefined {
  const price = prices.priceOf(model);
  if (price === undefined) return undefined;
  const counts = {
    inputTokens: promptTokens,
    cachedInputTokens: 0,
    cacheWrite5mTokens: 0,
    cacheWrite1hTokens: 0,
    outputTokens,
  };
  return Number(toMicrodollars(costOf(price, counts).total));
}

export type Reservation =
  /** To be settled with `lease`, or without one where nothing was to be checked. */
  | { readonly kind: "reserved"; readonly lease: Lease | undefined }
  | { readonly kind: "refused"; readonly error: PublicError; readonly retryAfterMs: number };

/** @returns at once where no store is asked, or nothing is to be checked */
export function reserve(
  limits: Limits,
  id: string,
  books: Books,
  demand: Demand | undefined,
): Reservation | Promise<Reservation> {
  if (books.checks.length === 0 || demand === undefined)
    return { kind: "reserved", lease: undefined };
  const amounts: Amounts = {
    tokens: demand.promptTokens + demand.outputTokens,
    microUsd: demand.microUsd ?? 0,
    requests: 1,
  };
  const admission = limits.admit({ id, ...books, reserve: amounts });
  return admission instanceof Promise
    ? admission.then((known) => reservation(known, amounts))
    : reservation(admission, amounts);
}

function reservation(admission: Admission, asked: Amounts): Reservation {
  if (admission.kind === "admitted") return { kind: "reserved", lease: admission.lease };
  return {
    kind: "refused",
    error: limitError(admission, asked),
    retryAfterMs: admission.retryAfterMs,
  };
}

/** Gives back what was not used. */
export function settleReservation(
  limits: Limits,
  {
    books,
    lease,
    admittedAt,
  }: { readonly books: Books; readonly lease: Lease | undefined; readonly admittedAt: number },
  used: CountedUsage,
): void {
  if (lease !== undefined) limits.settle(lease, used);
  else if (used.requests > 0 || used.tokens > 0)
    limits.record(books.scope, books.accounts, used, admittedAt);
}

/** Names the limit, its value, and when it resets. */
function limitError(
  { check, used, reserved, retryAfterMs }: Extract<Admission, { kind: "refused" }>,
  asked: Amounts,
): PublicError {
  const seconds = retryAfterSeconds(retryAfterMs);
  switch (check.kind) {
    case "rate":
      return publicError(
        "requests_per_minute_exceeded",
        `The limit requestsPerMinute of ${check.limit} is reached; a request is possible again in ${seconds} s.`,
      );
    case "concurrency":
      return publicError(
        "concurrent_requests_exceeded",
        `The limit maxConcurrentRequests of ${check.limit} is reached: that many requests are in flight. Wait for one to end.`,
      );
    case "daily": {
      const { code, name } =
        DAILY[check.account === PROVIDER_ACCOUNT ? "provider" : "caller"][check.unit];
      const amount = (value: number): string =>
        check.unit === "microUsd" ? `${formatUsd(BigInt(value) * 1_000_000n)} USD` : String(value);
      return publicError(
        code,
        `The limit ${name} of ${amount(check.limit)} does not allow this request: ${amount(used)} used today, ${amount(reserved)} reserved ` +
          `by calls under way, up to ${amount(asked[check.unit])} asked for. It resets at 00:00 UTC, in ${seconds} s.`,
      );
    }
  }
}

const DAILY: Readonly<
  Record<
    "caller" | "provider",
    Record<"tokens" | "requests" | "microUsd", { code: ErrorCode; name: string }>
  >
> = {
  caller: {
    tokens: { code: "tokens_per_day_exceeded", name: "maxTokensPerDay" },
    requests: { code: "requests_per_day_exceeded", name: "maxRequestsPerDay" },
    microUsd: { code: "cost_per_day_exceeded", name: "maxCostPerDayUSD" },
  },
  provider: {
    tokens: { code: "external_tokens_per_day_exceeded", name: "externalAccess.maxTokensPerDay" },
    requests: { code: "requests_per_day_exceeded", name: "externalAccess.maxRequestsPerDay" },
    microUsd: { code: "cost_per_day_exceeded", name: "maxCostPerDayUSD" },
  },
};

/** Whole seconds, never sooner than asked, and 1 at least. */
export function retryAfterSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}
