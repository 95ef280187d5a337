/** Limits of access keys and of the servers that they are for. */
import { limitRefusal } from "../../access/limit-refusal.ts";
import type { Refusal } from "../../access/refusal.ts";
import type { Admission, Check, Limits } from "../../limits/contract.ts";
import {
  externalServiceScope,
  keyAccount,
  keyRateChecks,
  PROVIDER_ACCOUNT,
} from "../../limits/subject.ts";
import type { AccessKeyPolicy, McpServerPolicy } from "../../policy/snapshot.ts";

export interface CountedRequests {
  readonly caller: AccessKeyPolicy;
  readonly server: McpServerPolicy;
  readonly callId: string;
  /** Number of JSON-RPC requests. */
  readonly requests: number;
  /** Milliseconds since the epoch: determines their day. */
  readonly now: number;
}

/**
 * Counts requests, if the limits allow all of them. They count as soon as they are let in, whatever
 * becomes of them, so that no caller gains by ending a request early.
 *
 * @returns undefined if they are allowed
 */
export function admitRequests(
  limits: Limits,
  { caller, server, callId, requests, now }: CountedRequests,
): Refusal | undefined | Promise<Refusal | undefined> {
  const scope = externalServiceScope(server.key);
  const account = keyAccount(caller.name);
  const accounts = [PROVIDER_ACCOUNT, account];
  const used = { tokens: 0, microUsd: 0, requests, unpriced: false };
  const checks: Check[] = [...keyRateChecks(caller)];
  const daily = (one: string, limit: number | undefined): void => {
    if (limit !== undefined) checks.push({ kind: "daily", account: one, unit: "requests", limit });
  };
  daily(account, caller.limits.maxRequestsPerDay);
  daily(PROVIDER_ACCOUNT, server.maxRequestsPerDay);
  if (checks.length === 0) {
    limits.record(scope, accounts, used, now);
    return undefined;
  }
  const reserve = { tokens: 0, microUsd: 0, requests };
  const answer = (admission: Admission): Refusal | undefined => {
    if (admission.kind === "refused") return limitRefusal(admission, undefined);
    limits.settle(admission.lease, used);
    return undefined;
  };
  const admission = limits.admit({ id: callId, scope, accounts, checks, reserve });
  return admission instanceof Promise ? admission.then(answer) : answer(admission);
}
