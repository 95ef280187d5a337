/** The last stage: creates the call and its first attempt's request. */
import {
  CALL_ID_HEADER,
  chainCluster,
  Cluster,
  InternalHeader,
  MAX_ATTEMPTS,
  upstreamCluster,
} from "../../envoy/config/names.ts";
import type { HeaderChanges } from "../../envoy/ext-proc/messages.ts";
import { Call } from "../call.ts";
import { FallbackBudgets } from "../attempts/fallback-budgets.ts";
import { prepareAttempt } from "../attempts/prepare.ts";
import { demandOf } from "../settlement/estimate.ts";
import { RetryPlan } from "../attempts/retry-plan.ts";
import { deliveryOf } from "../attempts/upstreams.ts";
import { embeddingsEcho } from "../dialects/embeddings/translate.ts";
import { dialects } from "../dialects/registry.ts";
import { isEmbedding } from "../request/routes.ts";
import type { Authorized } from "./authorize.ts";
import type { RequestContext } from "./context.ts";
import type { Outcome } from "./pipeline.ts";
import type { BodyArrival, ReadBody } from "./read.ts";
import type { Reserved } from "./reserve.ts";
import type { Sized } from "./size.ts";

export interface Prepared {
  readonly call: Call;
  readonly request: {
    readonly headers: HeaderChanges;
    /** undefined if the caller's own bytes are forwarded. */
    readonly body: readonly Buffer[] | undefined;
  };
}

/** @throws BadRequestError */
export function prepare(
  state: BodyArrival & ReadBody & Authorized & Sized & Reserved,
  context: RequestContext,
): Outcome<Prepared> {
  const { route, address, vendorHeaders, subject, entry, body, facts, permit } = state;
  const outputCap = state.size?.outputCap;
  const { stream } = facts;
  const attempt = prepareAttempt(permit, permit.targets[0], {
    route,
    stream,
    body,
    vendorHeaders,
    outputCap,
  });
  const { caller, grant, targets } = permit;
  const fallbackBudgets =
    caller.kind === "key" && targets.length > 1
      ? new FallbackBudgets({
          limits: context.limits,
          id: context.callId,
          requested: grant.provider.key,
          demand: () => demandOf(call),
          admittedAt: context.admittedAt,
        })
      : undefined;
  const call: Call = new Call({
    request: {
      id: context.callId,
      route,
      facts,
      permit,
      vendorHeaders,
      address,
      admittedAt: context.admittedAt,
      startedAt: context.startedAt,
      subject,
      size: state.size,
      bytes: body.raw.length,
      echo: echoOf(state),
    },
    changes: attempt.changes,
    plan: new RetryPlan(targets, context.random, MAX_ATTEMPTS),
    fallbackBudgets,
    original: body,
    entry,
    clock: context.clock,
  });
  call.firstAttemptStarted = !firstAttemptIsInternal(call);
  return {
    call,
    request: {
      body: attempt.body,
      headers: {
        set: [
          ...attempt.set,
          ...routing(call),
          // Envoy compares it with the body that it receives.
          ...(attempt.body === undefined ? [] : [contentLength(attempt.body)]),
        ],
        remove: attempt.remove,
      },
    },
  };
}

function echoOf({
  permit,
  route,
  body,
}: Authorized & BodyArrival & ReadBody): Call["request"]["echo"] {
  const translated = permit.targets.some(
    ({ provider }) => deliveryOf(provider, route)?.kind === "translate",
  );
  if (!translated) return undefined;
  return isEmbedding(route.operation)
    ? embeddingsEcho(body)
    : dialects[route.dialect].readEcho?.(body);
}

/** First-byte timeouts below this value must be exact: see {@link firstAttemptIsInternal}. */
const EXACT_TIMEOUT_BELOW_MS = 120_000;

/**
 * Envoy has one timeout per attempt for the whole chain, which also covers the wait before an
 * attempt: with retries it is the longest timeout of the chain plus the longest wait. An attempt in
 * the internal listener has its own, exact timeout. The first attempt goes directly to the
 * provider, for speed; if a short timeout is set for it, it goes through the internal listener too.
 */
function firstAttemptIsInternal(call: Call): boolean {
  return (
    call.plan.maxAttempts > 1 && call.target.provider.firstByteTimeoutMs < EXACT_TIMEOUT_BELOW_MS
  );
}

function routing(call: Call): (readonly [string, string])[] {
  const { plan, target } = call;
  const { provider } = target;
  const retried = plan.maxAttempts > 1;
  const cluster = firstAttemptIsInternal(call)
    ? Cluster.attempts
    : retried
      ? chainCluster(provider)
      : upstreamCluster(provider);
  return [
    [InternalHeader.cluster, cluster],
    [CALL_ID_HEADER, call.request.id],
    ["x-envoy-max-retries", String(plan.maxAttempts - 1)],
    [
      "x-envoy-upstream-rq-per-try-timeout-ms",
      String(retried ? plan.longestAttemptMs : provider.firstByteTimeoutMs),
    ],
  ];
}

function contentLength(body: readonly Buffer[]): readonly [string, string] {
  return ["content-length", String(body.reduce((sum, { length }) => sum + length, 0))];
}
