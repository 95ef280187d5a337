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
import type { Exchange, Processor } from "../extproc/server.ts";
import type { HeaderChanges, HeaderMap, Phase } from "../extproc/wire/messages.ts";
import type { AgentPolicy, PolicySnapshot } from "../policy/snapshot.ts";
import {
  CALL_ID_HEADER,
  chainCluster,
  InternalHeader,
  MAX_ATTEMPTS,
  MAX_REQUEST_BODY_BYTES,
  upstreamCluster,
} from "../compile/envoy/names.ts";
import { type Accounting, identityHeaders, totalsHeaders } from "./accounting.ts";
import { decompress, streamReader, upstreamError, wholeAnswer } from "./answer.ts";
import { authorize, identify } from "./authorize.ts";
import { Call, type CallOutcome, type VendorHeaders } from "./call.ts";
import type { CallRegistry } from "./call-registry.ts";
import { BadRequestError, type DialectName, type PublicError, type StreamReader } from "./dialects/dialect.ts";
import { dialects } from "./dialects/registry.ts";
import { publicError } from "./errors.ts";
import { readFacts } from "./facts.ts";
import type { LlmMetrics } from "./metrics.ts";
import { headerChanges, prepareAttempt, serves } from "./prepare.ts";
import { RetryPlan, type Target } from "./retry-plan.ts";
import { dialectOfPath, type LlmRoute, parseRoute } from "./routes.ts";
import type { Clock } from "../platform/clock.ts";

export interface LlmProcessorOptions {
  readonly policy: () => PolicySnapshot;
  readonly calls: CallRegistry;
  readonly accounting: Accounting;
  readonly metrics: LlmMetrics;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly newCallId: () => string;
}

/** Headers of an upstream's answer that are not the caller's business. */
const NOT_FOR_CLIENTS: readonly string[] = [
  "set-cookie",
  "alt-svc",
  "openai-organization",
  "openai-project",
  "anthropic-organization-id",
  "x-envoy-upstream-service-time",
  InternalHeader.local,
];

export class LlmProcessor implements Processor {
  readonly #exchange: Exchange;
  readonly #options: LlmProcessorOptions;
  readonly #snapshot: PolicySnapshot;
  readonly #startedAt: number;
  #route: LlmRoute | undefined;
  #dialect: DialectName = "openai";
  #agent: AgentPolicy | undefined;
  #vendorHeaders: VendorHeaders = { anthropicVersion: undefined, anthropicBeta: undefined };
  #strip: string[] = [];
  #call: Call | undefined;
  #status = 0;
  #encoding: string | undefined;
  #answer: "none" | "whole" | "error" | "stream" | "done" = "none";
  #localReply: string | undefined;
  #reader: StreamReader | undefined;
  #settled = false;

  constructor(exchange: Exchange, options: LlmProcessorOptions) {
    this.#exchange = exchange;
    this.#options = options;
    this.#snapshot = options.policy();
    this.#startedAt = options.clock.monotonic();
  }

  phase(phase: Phase): void {
    switch (phase.kind) {
      case "request_headers":
        return this.#onRequestHeaders(phase.headers, phase.endOfStream);
      case "request_body":
        return this.#onRequestBody(phase.body);
      case "response_headers":
        return this.#onResponseHeaders(phase.headers, phase.endOfStream);
      case "response_body":
        return this.#answer === "stream"
          ? this.#onStreamChunk(phase.body, phase.endOfStream)
          : this.#onWholeBody(phase.body);
      case "request_trailers":
        return this.#exchange.pass(phase.kind);
      case "response_trailers":
        return this.#onResponseTrailers();
    }
  }

  closed(): void {
    const call = this.#call;
    if (call === undefined) return;
    if (!this.#settled) {
      // The client left, or the upstream's connection broke after its headers: billed for what passed.
      call.answered ||= call.attempts.at(-1)?.failure === undefined;
      this.#takeUsage();
      this.#settle({ status: this.#status === 0 ? 499 : this.#status, end: "disconnected", code: undefined });
    }
  }

  #onRequestHeaders(headers: HeaderMap, endOfStream: boolean): void {
    const path = headers.get(":path") ?? "";
    this.#dialect = dialectOfPath(path);
    const route = parseRoute(path);
    if (route === undefined) return this.#refuse(publicError("not_found", "The gateway has no such path."));
    this.#route = route;
    this.#dialect = route.dialect;
    const identity = identify(this.#snapshot, headers, route.query);
    if (identity.kind === "refused") return this.#refuse(identity.error);
    this.#agent = identity.agent;
    if (endOfStream) return this.#refuse(publicError("invalid_request", "The request has no body."));
    const encoding = headers.get("content-encoding");
    if (encoding !== undefined && encoding.toLowerCase() !== "identity") {
      return this.#refuse(publicError("unsupported_encoding", "Send the body without content-encoding."));
    }
    if (route.dialect === "gemini" && route.stream === true && !/(^|&)alt=sse(&|$)/.test(route.query)) {
      return this.#refuse(publicError("invalid_request", "Streams are served as server-sent events: add ?alt=sse.", "alt"));
    }
    this.#vendorHeaders = {
      anthropicVersion: headers.get("anthropic-version"),
      anthropicBeta: headers.get("anthropic-beta"),
    };
    for (const name of headers.keys()) if (name.startsWith("x-svc-")) this.#strip.push(name);
    this.#exchange.pass("request_headers");
  }

  #onRequestBody(raw: Buffer): void {
    const route = this.#route as LlmRoute;
    if (raw.length > MAX_REQUEST_BODY_BYTES) {
      return this.#refuse(publicError("body_too_large", `The request body is above ${MAX_REQUEST_BODY_BYTES} bytes.`));
    }
    let body: unknown;
    try {
      body = JSON.parse(raw.toString("utf8"));
    } catch {
      return this.#refuse(publicError("invalid_request", "The request body is not valid JSON."));
    }
    try {
      this.#admit(route, raw, body);
    } catch (error) {
      if (!(error instanceof BadRequestError)) throw error;
      this.#refuse(publicError(error.code, error.message, error.param));
    }
  }

  #admit(route: LlmRoute, raw: Buffer, body: unknown): void {
    const facts = readFacts(route, body);
    const decision = authorize(this.#agent as AgentPolicy, facts.model);
    if (decision.kind === "refused") return this.#refuse(decision.error);
    const { permit } = decision;
    const first: Target = { provider: permit.grant.provider, model: permit.grant.model };
    if (!serves(first, route, facts.stream)) {
      return this.#refuse(
        publicError("not_implemented", `The provider ${first.provider.name} (${first.provider.kind}) has no endpoint for this.`),
      );
    }
    const source = { route, stream: facts.stream, raw, body, vendorHeaders: this.#vendorHeaders };
    const request = prepareAttempt(permit, first, source);
    const plan = new RetryPlan(this.#targets(first, route, facts.stream), this.#options.random, MAX_ATTEMPTS);
    const call = new Call({
      id: this.#options.newCallId(),
      route,
      permit,
      startedAt: this.#startedAt,
      plan,
      vendorHeaders: this.#vendorHeaders,
      stream: facts.stream,
      wantsUsage: facts.wantsUsage,
      original: { raw, body },
    });
    this.#call = call;
    this.#options.calls.add(call);
    const retries = plan.maxAttempts - 1;
    const { key, firstByteTimeoutMs } = first.provider;
    const changes = headerChanges(request, {
      set: [
        [InternalHeader.cluster, retries > 0 ? chainCluster(key) : upstreamCluster(key)],
        [CALL_ID_HEADER, call.id],
        ["x-envoy-max-retries", String(retries)],
        ["x-envoy-upstream-rq-per-try-timeout-ms", String(firstByteTimeoutMs)],
      ],
      remove: this.#strip.filter((name) => name !== InternalHeader.cluster),
    });
    this.#exchange.proceed("request_body", {
      headers: changes,
      clearRouteCache: true,
      ...(request.body === raw ? {} : { body: request.body }),
    });
  }

  #targets(first: Target, route: LlmRoute, stream: boolean): Target[] {
    const targets = [first];
    for (const fallback of first.provider.fallbacks) {
      const provider = this.#snapshot.providers.get(fallback.provider);
      if (provider === undefined) continue;
      const target: Target = { provider, model: fallback.model ?? first.model };
      if (provider.allowsModel(target.model) && serves(target, route, stream)) targets.push(target);
    }
    return targets;
  }

  #onResponseHeaders(headers: HeaderMap, endOfStream: boolean): void {
    const call = this.#call;
    this.#status = Number(headers.get(":status") ?? 0);
    this.#localReply = headers.get(InternalHeader.local);
    if (call === undefined) {
      // Envoy's own reply before the call began, e.g. a body above its buffers.
      return this.#respondOwn(localError(this.#status, this.#localReply ?? ""));
    }
    call.firstByteAt = this.#options.clock.monotonic();
    call.original = undefined;
    if (this.#localReply !== undefined) return this.#failCall(localError(this.#status, this.#localReply));
    if (this.#status >= 400) return this.#onErrorHeaders(call, headers, endOfStream);
    call.answered = true;
    this.#encoding = headers.get("content-encoding");
    const remove = this.#responseRemovals(headers);
    const streamed = (headers.get("content-type") ?? "").toLowerCase().startsWith("text/event-stream");
    if (endOfStream) return this.#failCall(publicError("upstream_invalid", "The provider's answer is empty."));
    if (streamed !== call.stream) {
      const got = streamed ? "a stream" : "no stream";
      return this.#failCall(publicError("upstream_invalid", `The provider answered with ${got}.`));
    }
    if (!streamed) {
      this.#answer = "whole";
      return this.#exchange.proceed("response_headers", {
        headers: { set: identityHeaders(call), remove },
        responseBodyMode: "buffered",
      });
    }
    if (this.#encoding !== undefined && this.#encoding.toLowerCase() !== "identity") {
      return this.#failCall(publicError("upstream_invalid", "The provider compressed a stream without being asked to."));
    }
    this.#answer = "stream";
    this.#reader = streamReader(call, this.#options.clock.now());
    this.#exchange.proceed("response_headers", {
      headers: { set: identityHeaders(call), remove: [...remove, "content-length"] },
      responseBodyMode: "streamed",
      ...(this.#totalsAsTrailers ? { responseTrailers: true } : {}),
    });
  }

  /** Google's SDK fails on an SSE comment: there the totals are HTTP trailers. */
  get #totalsAsTrailers(): boolean {
    return this.#dialect === "gemini";
  }

  #responseRemovals(headers: HeaderMap): string[] {
    const remove = [...NOT_FOR_CLIENTS];
    for (const name of headers.keys()) if (name.startsWith("x-svc-")) remove.push(name);
    return remove;
  }

  #onErrorHeaders(call: Call, headers: HeaderMap, endOfStream: boolean): void {
    const pending = call.plannedError;
    if (pending !== undefined) return this.#failCall(pending.error, pending.retryAfterMs);
    this.#encoding = headers.get("content-encoding");
    if (endOfStream) return this.#endWithUpstreamError(call, "response_headers", Buffer.alloc(0));
    this.#answer = "error";
    this.#exchange.proceed("response_headers", {
      headers: { set: [...identityHeaders(call)], remove: this.#responseRemovals(headers) },
      responseBodyMode: "buffered",
    });
  }

  #onWholeBody(body: Buffer): void {
    const call = this.#call;
    if (call === undefined || this.#answer === "done") return this.#exchange.pass("response_body");
    let plain: Buffer;
    try {
      plain = decompress(body, this.#encoding);
    } catch {
      return this.#failCall(publicError("upstream_invalid", "The provider's compressed answer cannot be read."));
    }
    if (this.#answer === "error") return this.#endWithUpstreamError(call, "response_body", plain);
    const answer = wholeAnswer(call, plain, this.#options.clock.now());
    if (answer.kind === "invalid") return this.#failCall(answer.error);
    call.usage = answer.usage;
    if (call.route.operation === "count_tokens") call.answered = false; // costs nothing
    const settlement = this.#settle({ status: this.#status, end: "completed", code: undefined });
    const changed = answer.body !== body;
    this.#answer = "done";
    this.#exchange.proceed("response_body", {
      headers: {
        set: [...totalsHeaders(settlement), ...(changed ? [["content-type", "application/json"] as const] : [])],
        ...(changed ? { remove: ["content-encoding"] } : {}),
      },
      ...(changed ? { body: answer.body } : {}),
    });
  }

  #endWithUpstreamError(call: Call, phase: "response_headers" | "response_body", body: Buffer): void {
    call.answered = false;
    const translated = upstreamError(call, this.#status, body);
    const settlement = this.#settle({ status: translated.status, end: "failed", code: "upstream_error" });
    this.#answer = "done";
    const set = [...totalsHeaders(settlement), ["content-type", "application/json"] as const];
    if (phase === "response_headers") {
      this.#exchange.respond({
        status: translated.status,
        headers: { set: [...identityHeaders(call), ...set] },
        body: translated.body,
      });
      return;
    }
    this.#exchange.proceed(phase, { headers: { set, remove: ["content-encoding"] }, body: translated.body });
  }

  #onStreamChunk(chunk: Buffer, endOfStream: boolean): void {
    const reader = this.#reader as StreamReader;
    const out = reader.push(chunk);
    if (!endOfStream) {
      if (out === chunk) this.#exchange.pass("response_body");
      else this.#exchange.proceed("response_body", { body: out });
      return;
    }
    const tail = reader.end();
    this.#takeUsage();
    const settlement = this.#settle(streamOutcome(this.#status, reader));
    const totals = this.#totalsAsTrailers
      ? ""
      : `: ${totalsHeaders(settlement)
          .map(([name, value]) => `${name}=${value}`)
          .join(" ")}\n\n`;
    this.#trailers = totalsHeaders(settlement);
    this.#answer = "done";
    this.#exchange.proceed("response_body", { body: Buffer.concat([out, tail, Buffer.from(totals)]) });
  }

  #trailers: readonly (readonly [string, string])[] = [];

  #onResponseTrailers(): void {
    const headers: HeaderChanges = { set: this.#totalsAsTrailers ? this.#trailers : [] };
    this.#exchange.proceed("response_trailers", { headers });
  }

  #takeUsage(): void {
    const call = this.#call;
    if (call === undefined || this.#reader === undefined) return;
    call.outputCharacters = this.#reader.outputCharacters;
    // A first report (Anthropic's message_start) is not the whole: what passed after it is counted by us.
    if (this.#reader.usageIsFinal) call.usage = this.#reader.usage;
  }

  #settle(outcome: CallOutcome): ReturnType<Accounting["settle"]> {
    const call = this.#call as Call;
    if (this.#settled) return this.#options.accounting.assess(call);
    this.#settled = true;
    this.#options.calls.remove(call);
    return this.#options.accounting.settle(call, outcome);
  }

  /** An error of ours after the call began. */
  #failCall(error: PublicError, retryAfterMs?: number): void {
    const call = this.#call as Call;
    if (this.#answer !== "whole") call.answered = false;
    const settlement = this.#settle({ status: error.status, end: "failed", code: error.code });
    this.#answer = "done";
    const retryAfter = retryAfterMs === undefined ? [] : [["retry-after", String(Math.ceil(retryAfterMs / 1000))] as const];
    this.#exchange.respond({
      status: error.status,
      headers: {
        set: [
          ...identityHeaders(call),
          ...totalsHeaders(settlement),
          ...retryAfter,
          ["content-type", "application/json"],
        ],
      },
      body: dialects[this.#dialect].renderError(error),
    });
  }

  /** An error of ours before a call began: nothing was sent upstream. */
  #refuse(error: PublicError): void {
    this.#options.metrics.refused(error.code);
    this.#respondOwn(error);
  }

  #respondOwn(error: PublicError): void {
    this.#answer = "done";
    this.#exchange.respond({
      status: error.status,
      headers: { set: [["content-type", "application/json"]] },
      body: dialects[this.#dialect].renderError(error),
    });
  }
}

function streamOutcome(status: number, reader: StreamReader): CallOutcome {
  switch (reader.outcome.kind) {
    case "complete":
      return { status, end: "completed", code: undefined };
    case "error":
      return { status, end: "cut", code: "upstream_error" };
    case "cut":
      return { status, end: "cut", code: "stream_interrupted" };
  }
}

/** Words for Envoy's own replies. `local` is `<response flags> <details>`. */
function localError(status: number, local: string): PublicError {
  if (status === 413) {
    return publicError("body_too_large", `The request body is above ${MAX_REQUEST_BODY_BYTES} bytes.`);
  }
  if (status === 504 || local.startsWith("UT") || local.includes("timeout")) {
    return publicError("upstream_timeout", "The provider did not begin its answer in time.");
  }
  return publicError("upstream_unavailable", "The provider could not be reached.");
}
