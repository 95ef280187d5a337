/**
 * Processes attempts after the first. When Envoy detects that an attempt failed, it sends the
 * request into its internal listener. This processor then waits for the delay of the retry plan,
 * and rebuilds the request for the next provider from the caller's original, without any header or
 * body of an earlier attempt.
 */
import { CALL_ID_HEADER, InternalHeader, upstreamCluster } from "../../envoy/config/names.ts";
import type { Exchange, Processor } from "../../envoy/ext-proc/server.ts";
import type { Phase } from "../../envoy/ext-proc/messages.ts";
import type { FairShare } from "../../limits/load/fair-share.ts";
import { retryAfterSeconds } from "../../access/refusal.ts";
import { type Call, NotSent } from "../call.ts";
import type { CallRegistry } from "../call-registry.ts";
import { BadRequestError } from "../dialects/dialect.ts";
import { callerName } from "../../access/caller.ts";
import { publicError } from "../../access/errors.ts";
import type { JsonBody } from "../request/json-body.ts";
import { type AttemptRequest, prepareAttempt } from "./prepare.ts";
import type { AttemptTarget, Failure, NextAttempt } from "./retry-plan.ts";

export interface AttemptProcessorOptions {
  readonly calls: CallRegistry;
  readonly share: FairShare;
}

/**
 * The router's report of the failed attempt and the next attempt travel on different connections.
 * This is the maximum time that the attempt waits for the report before it continues without the
 * cause of the failure.
 */
const REPORT_TIMEOUT_MS = 250;

const UNKNOWN_FAILURE: Failure = { status: 0, retryAfterMs: undefined, flags: "" };

/** A status that Envoy's retry policy does not retry: the router-level processor replaces it. */
const NOT_RETRIED = 421;

/** A request with its body, because Envoy still has the body of an earlier attempt. */
type WholeRequest = AttemptRequest & { readonly body: readonly Buffer[] };

export class AttemptProcessor implements Processor {
  readonly #exchange: Exchange;
  readonly #options: AttemptProcessorOptions;
  #cancel: (() => void) | undefined;
  #closed = false;

  constructor(exchange: Exchange, options: AttemptProcessorOptions) {
    this.#exchange = exchange;
    this.#options = options;
  }

  phase(phase: Phase): void {
    if (phase.kind !== "request_headers") return this.#exchange.fail();
    const call = this.#options.calls.get(phase.headers.get(CALL_ID_HEADER) ?? "");
    // Without its call there is no permit: the attempt is refused.
    if (call === undefined) return this.#exchange.respond({ status: NOT_RETRIED, body: "" });
    const caller = callerName(call.request.permit.caller);
    this.#exchange.chargeTo((ms) => this.#options.share.charge(caller, ms));
    if (!call.firstAttemptStarted) {
      // Envoy sent the first attempt here too (see llm/pipeline/prepare.ts). It is already
      // prepared.
      call.firstAttemptStarted = true;
      return this.#sendAsItIs(call);
    }
    this.#awaitFailure(call);
  }

  closed(): void {
    this.#closed = true;
    this.#cancel?.();
  }

  #awaitFailure(call: Call): void {
    const failed = call.attempts.length;
    this.#cancel = this.#exchange.after(REPORT_TIMEOUT_MS, () =>
      call.reportFailure(failed, UNKNOWN_FAILURE),
    );
    const decide = (failure: Failure): void => {
      if (this.#closed) return;
      this.#cancel?.();
      this.#schedule(call, failure);
    };
    call.onFailure(failed, this.#exchange.guard(decide));
  }

  #schedule(call: Call, failure: Failure): void {
    const next = call.plan.next(failure);
    if (next.kind === "exhausted") return this.#giveUp(call, failure);
    this.#cancel = this.#exchange.after(next.waitMs, () => this.#start(call, next, failure));
  }

  /** @param failure of the last attempt that was sent */
  #start(call: Call, next: NextAttempt, failure: Failure): void {
    if (next.kind === "exhausted") return this.#giveUp(call, failure);
    const { target } = next;
    const hasRoom = call.fallbackBudgets?.enter(target) ?? true;
    if (hasRoom instanceof Promise) {
      this.#exchange.when(hasRoom, (known) => this.#begin(call, target, known, failure));
    } else this.#begin(call, target, hasRoom, failure);
  }

  #begin(call: Call, target: AttemptTarget, hasRoom: boolean, failure: Failure): void {
    if (this.#closed || call.original === undefined) return;
    const request = hasRoom
      ? this.#prepare(call, call.original, target)
      : { notSent: NotSent.overBudget };
    if (!("notSent" in request)) {
      call.begin(target, request.changes);
      return this.#send(call, request);
    }
    call.begin(target);
    call.reportFailure(call.attempts.length, request.notSent);
    this.#start(call, call.plan.nextTarget(), failure);
  }

  #prepare(
    call: Call,
    body: JsonBody,
    target: AttemptTarget,
  ): WholeRequest | { readonly notSent: Failure } {
    try {
      const request = prepareAttempt(call.request.permit, target, {
        body,
        route: call.request.route,
        stream: call.request.facts.stream,
        vendorHeaders: call.request.vendorHeaders,
        outputCap: call.request.size?.outputCap,
      });
      return { ...request, body: request.body ?? [body.raw] };
    } catch (error) {
      if (error instanceof BadRequestError) return { notSent: NotSent.unsupported };
      throw error;
    } finally {
      body.forgetValue();
    }
  }

  #sendAsItIs(call: Call): void {
    this.#exchange.proceed("request_headers", {
      headers: { set: routing(call) },
      clearRouteCache: true,
    });
  }

  #send(call: Call, request: WholeRequest): void {
    this.#exchange.proceed("request_headers", {
      headers: {
        set: [...request.set, ...routing(call)],
        remove: request.remove,
      },
      body: request.body,
      replaceAll: true,
      clearRouteCache: true,
    });
  }

  #giveUp(call: Call, failure: Failure): void {
    const wait = failure.retryAfterMs;
    const seconds = wait === undefined ? undefined : retryAfterSeconds(wait);
    const error =
      failure.status === 429
        ? publicError(
            "upstream_rate_limited",
            `The provider asks to wait ${seconds ?? "some"} seconds.`,
          )
        : publicError(
            "upstream_unavailable",
            `The provider answered ${failure.status || "nothing"}; no attempt is left.`,
          );
    call.plannedError = { error, retryAfterMs: wait };
    this.#exchange.respond({ status: NOT_RETRIED, body: "" });
  }
}

/** Returns the headers for the attempt's destination and first-byte timeout. */
function routing(call: Call): (readonly [string, string])[] {
  const { provider } = call.target;
  return [
    [InternalHeader.upstream, upstreamCluster(provider)],
    ["x-envoy-upstream-rq-per-try-timeout-ms", String(provider.firstByteTimeoutMs)],
  ];
}
