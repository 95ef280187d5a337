/**
 * The LLM pipeline as Envoy's router-level external processor: one stream a request.
 *
 *   request headers   which operation, who calls                       -> go on, or refuse
 *   request body      which model, may they, have they budget left     -> send it on its way
 *   response headers  whole or streamed, which headers                 -> go on
 *   response body     translate, count                                 -> settle with the last byte
 *
 * Attempts after the first are made ready by `attempt-processor.ts`.
 */
import { InternalHeader } from "../compile/envoy/names.ts";
import type { Exchange, Processor } from "../extproc/server.ts";
import type { HeaderMap, Phase } from "../extproc/wire/messages.ts";
import type { PolicySnapshot } from "../policy/snapshot.ts";
import { type ClientAddress, UNKNOWN_ADDRESS } from "../access/client-address.ts";
import type { Limits } from "../limits/limits.ts";
import type { PriceBook } from "../pricing/price-book.ts";
import { type Admitted, admit, type Caller, readCaller, type Refusal } from "./admission.ts";
import type { AuditTrail } from "./audit-trail.ts";
import { reserve, type Reservation, retryAfterSeconds } from "./budget.ts";
import { dialects } from "./dialects/registry.ts";
import { publicError } from "./errors.ts";
import type { LlmMetrics } from "./metrics.ts";
import { CallResponse, localReplyError, type ResponseOptions } from "./response.ts";

export interface LlmProcessorOptions extends ResponseOptions {
  readonly policy: () => PolicySnapshot;
  readonly metrics: LlmMetrics;
  readonly limits: Limits;
  readonly audit: AuditTrail;
  readonly prices: () => PriceBook;
  readonly clientAddress: ClientAddress;
  /** A defect of ours; the request fails closed. */
  readonly onDefect: (error: unknown) => void;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly newCallId: () => string;
}

export class LlmProcessor implements Processor {
  readonly #exchange: Exchange;
  readonly #options: LlmProcessorOptions;
  /** Read once: a reload in the middle of a request does not change what it sees. */
  readonly #snapshot: PolicySnapshot;
  readonly #startedAt: number;
  #caller: Caller | undefined;
  #closed = false;
  #response: CallResponse | undefined;

  constructor(exchange: Exchange, options: LlmProcessorOptions) {
    this.#exchange = exchange;
    this.#options = options;
    this.#snapshot = options.policy();
    this.#startedAt = options.clock.monotonic();
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
    this.#response?.closed();
  }

  #requestHeaders(headers: HeaderMap, endOfStream: boolean): void {
    const caller = readCaller(headers, endOfStream, {
      snapshot: this.#snapshot,
      clientAddress: this.#options.clientAddress,
      now: this.#options.clock.now(),
    });
    if (caller.kind === "refused") return this.#refuse(caller);
    this.#caller = caller;
    this.#exchange.pass("request_headers");
  }

  #requestBody(raw: Buffer): void {
    const { audit, clock, limits, prices, random, newCallId } = this.#options;
    const caller = this.#caller as Caller;
    if (audit.refusing)
      return this.#refuse(
        refusal(
          caller,
          publicError("audit_unavailable", "The audit log cannot be written. Try again."),
        ),
      );
    const admission = admit(caller, raw, {
      snapshot: this.#snapshot,
      prices: prices(),
      now: clock.now(),
      startedAt: this.#startedAt,
      random,
      newCallId,
    });
    if (admission.kind === "refused") return this.#refuse(admission);
    const { call } = admission;
    const reservation = reserve(limits, call.id, call.books, call.demand);
    if (!(reservation instanceof Promise)) return this.#send(admission, reservation);
    reservation
      .then((known) => this.#send(admission, known))
      .catch((error: unknown) => {
        this.#options.onDefect(error);
        this.#exchange.fail();
      });
  }

  #send(admission: Admitted, reservation: Reservation): void {
    const { call } = admission;
    if (reservation.kind === "refused") {
      if (this.#closed) return;
      const model = call.permit.grant.ref;
      const refused = refusal(this.#caller as Caller, reservation.error);
      return this.#refuse({
        ...refused,
        who: { ...refused.who, model },
        retryAfterMs: reservation.retryAfterMs,
      });
    }
    call.lease = reservation.lease;
    this.#options.calls.add(call);
    this.#response = new CallResponse(this.#exchange, call, this.#options);
    // The client left while the counters were asked: nothing was sent, and nothing is owed.
    if (this.#closed) return this.#response.abandoned();
    this.#exchange.proceed("request_body", {
      headers: admission.headers,
      clearRouteCache: true,
      ...(admission.body === undefined ? {} : { body: admission.body }),
    });
  }

  /** Envoy answers by itself before the call began, e.g. a body above its buffers. */
  #replyBeforeTheCall(headers: HeaderMap): void {
    const error = localReplyError(
      Number(headers.get(":status") ?? 0),
      headers.get(InternalHeader.local) ?? "",
    );
    const caller = this.#caller;
    if (caller !== undefined) return this.#refuse(refusal(caller, error));
    this.#refuse({
      kind: "refused",
      error,
      dialect: "openai",
      who: { policy: undefined, address: UNKNOWN_ADDRESS, model: undefined, path: "" },
    });
  }

  /** Nothing was sent upstream. */
  #refuse(refused: Refusal): void {
    const { error, dialect, retryAfterMs } = refused;
    this.#options.metrics.refused(error.code);
    this.#options.audit.refused(refused, () => {
      this.#exchange.respond({
        status: error.status,
        headers: {
          set: [
            ["content-type", "application/json"],
            ...(retryAfterMs === undefined ? [] : retryHeaders(retryAfterMs)),
          ],
        },
        body: dialects[dialect].renderError(error),
      });
    });
  }
}

function refusal({ route, who }: Caller, error: Refusal["error"]): Refusal {
  return { kind: "refused", error, dialect: route.dialect, who };
}

/** Longer than this the vendors' SDKs do not wait, but try again at once, which is of no use. */
const LONGEST_SDK_WAIT_MS = 60_000;

/**
 * `retry-after` in seconds (RFC 9110 section 10.2.3); 0 where waiting changes nothing. OpenAI's and Anthropic's SDKs heed
 * `x-should-retry`.
 */
function retryHeaders(retryAfterMs: number): (readonly [name: string, value: string])[] {
  const never = retryAfterMs === 0 || retryAfterMs > LONGEST_SDK_WAIT_MS;
  const seconds = retryAfterMs === 0 ? 0 : retryAfterSeconds(retryAfterMs);
  return [
    ["retry-after", String(seconds)],
    ...(never ? [["x-should-retry", "false"] as const] : []),
  ];
}
