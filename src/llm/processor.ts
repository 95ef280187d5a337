/**
 * LlmProcessor is the LLM pipeline as Envoy's router-level external processor: one stream a
 * request.
 *
 *   request headers   identify, share, enter: who calls, is there room    -> go on, or refuse
 *   request body      read ... prepare: which model, may they, the budget -> send it on its way
 *   response headers  whole or streamed, which headers                    -> go on
 *   response body     translate, count                                    -> settle at the end
 *
 * `pipeline/stages.ts` lists the stages. Attempts after the first are made ready by
 * `attempts/attempt-processor.ts`.
 */
import { ANONYMOUS, callerName } from "../access/caller.ts";
import { type ClientAddress, UNKNOWN_ADDRESS } from "../access/client-address.ts";
import { InternalHeader } from "../envoy/config/names.ts";
import type { Exchange, Processor } from "../envoy/ext-proc/server.ts";
import type { HeaderMap, Phase } from "../envoy/ext-proc/messages.ts";
import type { CallerPolicy, PolicySnapshot } from "../policy/snapshot.ts";
import type { AuditTrail } from "./settlement/audit-trail.ts";
import type { WireFormat } from "./dialects/dialect.ts";
import { dialects } from "./dialects/registry.ts";
import { publicError } from "../access/errors.ts";
import type { RequestFacts } from "./request/facts.ts";
import { totalsHeaders } from "./settlement/accounting.ts";
import { modelIdOf, type Permit } from "./call.ts";
import type { LlmMetrics } from "./settlement/metrics.ts";
import type { PipelineServices, RequestContext } from "./pipeline/context.ts";
import type { Entered } from "./pipeline/enter.ts";
import type { Arrival, Identified } from "./pipeline/identify.ts";
import type { Prepared } from "./pipeline/prepare.ts";
import { BODY_STAGES, HEADER_STAGES } from "./pipeline/stages.ts";
import { bodyWithDetail, Refusal, refusalHeaders, type RequestOrigin } from "../access/refusal.ts";
import { CallResponse, localReplyError, type ResponseOptions } from "./answer/response.ts";
import { dialectOfPath, type LlmRoute, parseRoute } from "./request/routes.ts";
import { MAX_REQUEST_BODY_BYTES } from "./surface.ts";

export interface LlmProcessorOptions
  extends ResponseOptions, Omit<PipelineServices, "auditRefuses"> {
  readonly policy: () => PolicySnapshot;
  readonly metrics: LlmMetrics;
  readonly audit: AuditTrail;
  readonly clientAddress: ClientAddress;
  readonly newCallId: () => string;
  /** Time that every upload has, in milliseconds: see {@link uploadDeadlineMs}. */
  readonly uploadIdleMs: number;
}

/** Data about a request while its stages run. */
interface Known {
  readonly address?: string;
  readonly route?: LlmRoute | undefined;
  readonly caller?: CallerPolicy;
  readonly facts?: RequestFacts;
  readonly permit?: Permit;
}

export class LlmProcessor implements Processor {
  readonly #exchange: Exchange;
  readonly #options: LlmProcessorOptions;
  readonly #context: RequestContext;
  #path = "";
  #dialect: WireFormat = "openai";
  #known: Known = {};
  #entered: (Arrival & Identified & Entered) | undefined;
  #cancelDeadline: (() => void) | undefined;
  #response: CallResponse | undefined;
  #closed = false;

  constructor(exchange: Exchange, options: LlmProcessorOptions) {
    this.#exchange = exchange;
    this.#options = options;
    const { audit, bytes, clock, expected, guards, limits, newCallId, policy, prices } = options;
    const { random, share } = options;
    this.#context = {
      snapshot: policy(),
      callId: newCallId(),
      admittedAt: clock.now(),
      startedAt: clock.monotonic(),
      chargeTo: (name) => exchange.chargeTo((ms) => share.charge(name, ms)),
      share,
      auditRefuses: () => audit.refusing,
      clock,
      limits,
      bytes,
      expected,
      guards,
      prices,
      random,
    };
  }

  phase(phase: Phase): void {
    switch (phase.kind) {
      case "request_headers":
        return this.#requestHeaders(phase.headers, phase.endOfStream);
      case "request_body":
        return this.#requestBody(phase.body);
      case "response_headers":
        if (this.#response === undefined) return this.#replyBeforeTheCall(phase.headers);
        return this.#response.headers(phase.headers, phase.endOfStream);
      case "response_body":
        if (this.#response === undefined) return this.#exchange.pass(phase.kind);
        return this.#response.body(phase.body, phase.endOfStream);
      case "request_trailers":
      case "response_trailers":
        return this.#exchange.pass(phase.kind);
    }
  }

  closed(): void {
    this.#closed = true;
    this.#cancelDeadline?.();
    if (this.#response === undefined) this.#leave();
    else this.#response.closed();
  }

  #requestHeaders(headers: HeaderMap, endOfStream: boolean): void {
    const path = headers.get(":path") ?? "";
    this.#path = path.split("?", 1)[0] ?? "";
    const route = parseRoute(path);
    this.#dialect = route?.dialect ?? dialectOfPath(path);
    const address = this.#options.clientAddress(
      headers.get(InternalHeader.peer),
      headers.get("x-forwarded-for"),
    );
    this.#known = { route, address };
    HEADER_STAGES.run({ headers, endOfStream, route, address }, this.#context, {
      when: (promise, callback) => this.#exchange.when(promise, callback),
      done: (entered) => this.#awaitBody(entered),
      refused: (refusal, known) => {
        if (known.caller === undefined) this.#refuseStranger(refusal, known);
        else this.#refuse(refusal, known);
      },
    });
  }

  /** Refuses a request of an unknown caller; after a delay if there are too many of them. */
  #refuseStranger(refusal: Refusal, known: Known): void {
    this.#context.chargeTo(ANONYMOUS);
    const turn = this.#options.share.enter(ANONYMOUS, 0);
    if (turn === undefined) this.#refuse(refusal, known);
    else this.#exchange.when(turn, () => this.#refuse(refusal, known));
  }

  #awaitBody(entered: Arrival & Identified & Entered): void {
    this.#known = entered;
    this.#entered = entered;
    // The client disconnected while the counters were asked.
    if (this.#closed) return this.#leave();
    const bytes = Number(entered.headers.get("content-length") ?? MAX_REQUEST_BODY_BYTES);
    const deadline = uploadDeadlineMs(bytes, this.#options.uploadIdleMs);
    this.#cancelDeadline = this.#exchange.after(deadline, () =>
      this.#refuse(bodyTimeout(), this.#known),
    );
    this.#exchange.pass("request_headers");
  }

  #requestBody(raw: Buffer): void {
    this.#cancelDeadline?.();
    const entered = this.#entered;
    if (entered === undefined) return this.#exchange.fail();
    if (!entered.headers.has("content-length")) {
      this.#options.share.chargeBytes(callerName(entered.caller), raw.length);
    }
    // A guard may take seconds.
    this.#options.calls.enter(this);
    BODY_STAGES.run({ ...entered, raw }, this.#context, {
      // A client that disconnects stops its stages: nothing was sent, and nothing is billed.
      when: (promise, callback) =>
        this.#exchange.when(promise, (value) => {
          if (!this.#closed) callback(value);
        }),
      done: (prepared) => this.#send(prepared),
      refused: (refusal, known) => this.#refuse(refusal, known),
    });
  }

  #send({ call, request }: Prepared): void {
    this.#options.calls.add(call);
    this.#options.calls.leave(this);
    this.#response = new CallResponse(this.#exchange, call, this.#options);
    this.#exchange.proceed("request_body", {
      headers: request.headers,
      clearRouteCache: true,
      ...(request.body === undefined ? {} : { body: request.body }),
    });
  }

  /** Envoy answered by itself before the call began, e.g. a body above its buffers. */
  #replyBeforeTheCall(headers: HeaderMap): void {
    const status = Number(headers.get(":status") ?? 0);
    const local = headers.get(InternalHeader.local) ?? "";
    const refusal = status === 408 ? bodyTimeout() : new Refusal(localReplyError(status, local));
    this.#refuse(refusal, this.#known);
  }

  /** Nothing was sent upstream. */
  #refuse(refusal: Refusal, known: Known): void {
    this.#cancelDeadline?.();
    this.#leave();
    const { error } = refusal;
    const origin: RequestOrigin = {
      policy: refusal.policy ?? known.caller,
      address: known.address ?? UNKNOWN_ADDRESS,
      model: known.facts?.model ?? known.route?.model,
      path: this.#path,
    };
    this.#options.metrics.refused(error.code);
    this.#options.audit.refused({ error, origin });
    this.#exchange.respond({
      status: error.status,
      headers: {
        set: [...refusalHeaders(refusal, this.#context.callId), ...this.#unusedHeaders(known)],
      },
      body: bodyWithDetail(dialects[this.#dialect].renderError(error), refusal.detail),
    });
  }

  /** Returns the headers of every LLM response for a request that used nothing. */
  #unusedHeaders({ permit }: Known): (readonly [string, string])[] {
    const { clock, startedAt } = this.#context;
    const durationMs = Math.max(0, Math.round(clock.monotonic() - startedAt));
    const target = permit?.targets[0];
    return [
      ...(target === undefined ? [] : [["x-svc-model-id", modelIdOf(target)] as const]),
      ["x-svc-retries", "0"],
      ...totalsHeaders({ usage: undefined, costUsd: undefined, durationMs }),
    ];
  }

  /** Releases the request's resources that no call has taken over. */
  #leave(): void {
    this.#options.calls.leave(this);
    this.#entered?.entry.release();
    this.#entered = undefined;
  }
}

/** Minimum average speed of an upload. */
const UPLOAD_BYTES_PER_SECOND = 65_536;

/** Envoy ends uploads that pause; this ends uploads that are slow. */
function uploadDeadlineMs(bytes: number, idleMs: number): number {
  return idleMs + (bytes / UPLOAD_BYTES_PER_SECOND) * 1_000;
}

function bodyTimeout(): Refusal {
  const message = "The request body did not arrive in time. Send it without pauses.";
  return new Refusal(publicError("request_timeout", message));
}
