/** Converts refusals of the counters to errors for the caller, on every surface of the gateway. */
import type { Admission, Amounts } from "../limits/contract.ts";
import { PROVIDER_ACCOUNT } from "../limits/subject.ts";
import { formatUsd } from "../pricing/cost.ts";
import { type ErrorCode, publicError, type PublicError } from "./errors.ts";
import { Refusal, retryAfterSeconds } from "./refusal.ts";

type RefusedAdmission = Extract<Admission, { kind: "refused" }>;

/** @param asked undefined before the body is read: the error then contains no amount */
export function limitRefusal(refused: RefusedAdmission, asked: Amounts | undefined): Refusal {
  return new Refusal(limitError(refused, asked), { retryAfterMs: refused.retryAfterMs });
}

/** Returns an error that names the limit, its value, and when it resets. */
function limitError(
  { check, used, reserved, retryAfterMs }: RefusedAdmission,
  asked: Amounts | undefined,
): PublicError {
  const seconds = retryAfterSeconds(retryAfterMs);
  switch (check.kind) {
    case "rate":
      return publicError(
        "requests_per_minute_exceeded",
        `The limit requestsPerMinute of ${check.limit} is reached; a request is possible ` +
          `again in ${seconds} s.`,
      );
    case "concurrency":
      return publicError(
        "concurrent_requests_exceeded",
        `The limit maxConcurrentRequests of ${check.limit} is reached: that many requests ` +
          "are in flight. Wait for one to end.",
      );
    case "daily": {
      const { code, name } =
        DAILY[check.account === PROVIDER_ACCOUNT ? "provider" : "caller"][check.unit];
      const amount = (value: number): string =>
        check.unit === "microUsd" ? `${formatUsd(BigInt(value) * 1_000_000n)} USD` : String(value);
      const wanted = asked === undefined ? "" : `, up to ${amount(asked[check.unit])} asked for`;
      return publicError(
        code,
        `The limit ${name} of ${amount(check.limit)} does not allow this request: ` +
          `${amount(used)} used today, ${amount(reserved)} reserved ` +
          `by calls under way${wanted}. It resets at 00:00 UTC, in ${seconds} s.`,
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
    tokens: {
      code: "external_tokens_per_day_exceeded",
      name: "externalAccess.maxTokensPerDay",
    },
    requests: { code: "requests_per_day_exceeded", name: "externalAccess.maxRequestsPerDay" },
    microUsd: { code: "cost_per_day_exceeded", name: "maxCostPerDayUSD" },
  },
};
