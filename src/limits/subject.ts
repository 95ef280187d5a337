/** LimitSubject: the counters of a caller, and the limits that apply to it. */
import type { AccessKeyPolicy, CallerPolicy, PolicySnapshot } from "../policy/snapshot.ts";
import type { Check } from "./contract.ts";

const MINUTE_MS = 60_000;

export interface LimitSubject {
  /** Scope in the store: see `limits/contract.ts`. */
  readonly scope: string;
  /** All accounts that count a call of this caller. */
  readonly accounts: readonly string[];
  readonly checks: readonly Check[];
  /** Maximum tokens of one request, prompt and answer; undefined for no limit. */
  readonly maxTokensPerRequest: number | undefined;
}

/** @param snapshot the snapshot that the request uses */
export function subjectOf(caller: CallerPolicy, snapshot: PolicySnapshot): LimitSubject {
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
      checks.push({
        kind: "rate",
        account,
        limit: limits.requestsPerMinute,
        windowMs: MINUTE_MS,
      });
    daily(account, "tokens", limits.maxTokensPerDay);
    daily(account, "microUsd", limits.maxMicroUsdPerDay);
    return {
      scope: agentScope(caller.namespace, caller.name),
      accounts: [account],
      checks,
      maxTokensPerRequest: limits.maxTokensPerRequest,
    };
  }
  const account = keyAccount(caller.name);
  checks.push(...keyRateChecks(caller));
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
    maxTokensPerRequest: undefined,
  };
}

/** Returns the check of an access key's requests per minute, if it has this limit. */
export function keyRateChecks({ name, limits }: AccessKeyPolicy): readonly Check[] {
  const { requestsPerMinute: limit } = limits;
  return limit === undefined
    ? []
    : [{ kind: "rate", account: keyAccount(name), limit, windowMs: MINUTE_MS }];
}

/** Returns whether a limit counts tokens or money: the cost of a call must then be known. */
export function countsCost({ checks, maxTokensPerRequest }: LimitSubject): boolean {
  return (
    maxTokensPerRequest !== undefined ||
    checks.some((check) => check.kind === "daily" && check.unit !== "requests")
  );
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

/** @param providerKey `<namespace>/<name>` of the Provider */
export function externalServiceScope(providerKey: string): string {
  return `external-service/${providerKey}`;
}

export function keyAccount(name: string): string {
  return `key/${name}`;
}
