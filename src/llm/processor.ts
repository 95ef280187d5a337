/**
 * The LLM pipeline as Envoy's router-level external processor: one stream a request.
 *
 *   request headers   which operation, who calls                       -> go on, or refuse
 *   request body      which model, may they, first attempt's request   -> send it on its way
 *   response headers  whole or streamed, which headers                 -> go on
 *   response body     translate, count                                 -> settle with the last byte
 *
 * Attempts after the first are made ready by `attempt-processor.ts`.
 */
import { InternalHeader } from "../compile/envoy/names.ts";
import type { Exchange, Processor } from "../extproc/server.ts";
import type { HeaderMap, Phase } from "../extproc/wire/messages.ts";
import type { PolicySnapshot } from "../policy/snapshot.ts";
import { admit, type Caller, readCaller } from "./admission.ts";
import type { DialectName, PublicError } from "./dialects/dialect.ts";
import { dialects } from "./dialects/registry.ts";
import type { LlmMetrics } from "./metrics.ts";
import { CallResponse, localReplyError, type ResponseOptions } from "./response.ts";

export interface LlmProcessorOptions extends ResponseOptions {
  readonly policy: () => PolicySnapshot;
  readonly metrics: LlmMetrics;
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
    this.#response?.closed();
  }

  #requestHeaders(headers: HeaderMap, endOfStream: boolean): void {
    const caller = readCaller(this.#snapshot, headers, endOfStream);
    if (caller.kind === "refused") return this.#refuse(caller.error, caller.dialect);
    this.#caller = caller;
    this.#exchange.pass("request_headers");
  }

  #requestBody(raw: Buffer): void {
    const admission = admit(this.#caller as Caller, raw, {
      snapshot: this.#snapshot,
      startedAt: this.#startedAt,
      random: this.#options.random,
      newCallId: this.#options.newCallId,
    });
    if (admission.kind === "refused") return this.#refuse(admission.error, admission.dialect);
    this.#options.calls.add(admission.call);
    this.#response = new CallResponse(this.#exchange, admission.call, this.#options);
    this.#exchange.proceed("request_body", {
      headers: admission.headers,
      clearRouteCache: true,
      ...(admission.body === undefined ? {} : { body: admission.body }),
    });
  }

  /** Envoy answers by itself before the call began, e.g. a body above its buffers. */
  #replyBeforeTheCall(headers: HeaderMap): void {
    const error = localReplyError(Number(headers.get(":status") ?? 0), headers.get(InternalHeader.local) ?? "");
    this.#refuse(error, this.#caller?.route.dialect ?? "openai");
  }

  /** Nothing was sent upstream. */
  #refuse(error: PublicError, dialect: DialectName): void {
    this.#options.metrics.refused(error.code);
    this.#exchange.respond({
      status: error.status,
      headers: { set: [["content-type", "application/json"]] },
      body: dialects[dialect].renderError(error),
    });
  }
}
