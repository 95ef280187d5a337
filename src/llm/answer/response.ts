/**
 * The response path of one call: converts the upstream's answer to the caller's, counts it, and
 * settles the call.
 */
import type { CallOutcome, Settlement } from "../settlement/settlement.ts";
import { InternalHeader } from "../../envoy/config/names.ts";
import type { Exchange } from "../../envoy/ext-proc/server.ts";
import type { HeaderMap } from "../../envoy/ext-proc/messages.ts";
import type { TimeSource } from "../../platform/clock.ts";
import { type Accounting, identityHeaders, totalsHeaders } from "../settlement/accounting.ts";
import { decompress, streamReader, upstreamError, wholeAnswer } from "./answer.ts";
import { bodyWithDetail, retryAfterSeconds } from "../../access/refusal.ts";
import type { GuardFinding, ScannedText } from "../../guard/finding.ts";
import { type Guards, scansResponses } from "../../guard/guards.ts";
import { violation } from "../pipeline/guard.ts";
import { StreamedTexts } from "./streamed-texts.ts";
import type { Call } from "../call.ts";
import type { CallRegistry } from "../call-registry.ts";
import type { StreamReader, Usage } from "../dialects/dialect.ts";
import { dialects } from "../dialects/registry.ts";
import { publicError, type PublicError } from "../../access/errors.ts";
import type { Relay } from "../attempts/relay.ts";
import { localReplyFlags } from "./response-flags.ts";
import { createStreamTotals, type StreamTotals } from "./stream-totals.ts";
import { MAX_REQUEST_BODY_BYTES } from "../surface.ts";

export interface ResponseOptions {
  readonly calls: CallRegistry;
  readonly accounting: Accounting;
  readonly clock: TimeSource;
  /** Continues to read abandoned answers; undefined if no provider is read to the end. */
  readonly relay?: Pick<Relay, "claim">;
  readonly guards: Pick<Guards, "scan">;
}

type HeaderPair = readonly [name: string, value: string];

/** Maximum size of a single event: images take some MiB. */
const MAX_HELD_BYTES = 32 * 1024 * 1024;

const JSON_TYPE: HeaderPair = ["content-type", "application/json"];

/** The expected kind of the response body. */
type Expected =
  | { readonly kind: "nothing" }
  | { readonly kind: "whole"; readonly encoding: string | undefined }
  | { readonly kind: "error"; readonly encoding: string | undefined }
  | {
      readonly kind: "stream";
      readonly reader: StreamReader;
      readonly totals: StreamTotals;
      /** undefined if no guard scans answers. */
      readonly texts: StreamedTexts | undefined;
    }
  | { readonly kind: "done" };

type ExpectedStream = Extract<Expected, { kind: "stream" }>;

export class CallResponse {
  readonly #exchange: Exchange;
  readonly #call: Call;
  readonly #options: ResponseOptions;
  #status = 0;
  #expected: Expected = { kind: "nothing" };
  #settled = false;
  /** Bytes of the current incomplete event. */
  #heldBytes = 0;

  constructor(exchange: Exchange, call: Call, options: ResponseOptions) {
    this.#exchange = exchange;
    this.#call = call;
    this.#options = options;
  }

  headers(headers: HeaderMap, endOfStream: boolean): void {
    if (this.#settled) return this.#exchange.pass("response_headers");
    const call = this.#call;
    this.#status = Number(headers.get(":status") ?? 0);
    call.dropOriginal();
    const { plannedError } = call;
    if (plannedError !== undefined)
      return this.#fail(plannedError.error, plannedError.retryAfterMs);
    const local = headers.get(InternalHeader.local);
    if (local !== undefined) return this.#localReply(local);
    if (this.#status >= 400) return this.#errorHeaders(headers, endOfStream);
    // From here on the provider bills the call, whether its answer is usable or not.
    call.answer.begun = true;
    call.answer.firstByteAt = this.#options.clock.monotonic();
    call.answer.receivedWhole = endOfStream;
    if (endOfStream)
      return this.#fail(publicError("upstream_invalid", "The provider's answer is empty."));
    const streamed = (headers.get("content-type") ?? "")
      .toLowerCase()
      .startsWith("text/event-stream");
    call.answer.streaming = streamed;
    if (streamed !== call.request.facts.stream) {
      const got = streamed ? "a stream that was not asked for" : "no stream";
      return this.#fail(publicError("upstream_invalid", `The provider answered with ${got}.`));
    }
    const encoding = headers.get("content-encoding");
    if (!streamed) return this.#buffer({ kind: "whole", encoding }, headers);
    if (encoding !== undefined && encoding.toLowerCase() !== "identity") {
      return this.#fail(
        publicError("upstream_invalid", "The provider compressed a stream without being asked to."),
      );
    }
    const reader = streamReader(call, this.#options.clock.now());
    const { dialect } = call.request.route;
    const totals = createStreamTotals(dialects[dialect].streamTotals, reader);
    const texts = this.#isGuarded ? new StreamedTexts(dialect) : undefined;
    this.#expected = { kind: "stream", reader, totals, texts };
    this.#exchange.proceed("response_headers", {
      headers: { set: identityHeaders(call), remove: [...removals(headers), "content-length"] },
      responseBodyMode: "streamed",
    });
  }

  body(body: Buffer, endOfStream: boolean): void {
    const expected = this.#expected;
    switch (expected.kind) {
      case "stream":
        return this.#chunk(expected, body, endOfStream);
      case "whole":
        return this.#whole(body, expected.encoding);
      case "error":
        return this.#errorBody(body, expected.encoding);
      case "nothing":
      case "done":
        return this.#exchange.pass("response_body");
    }
  }

  /**
   * The exchange has ended. A call that no answer settled was abandoned by the client, or broke: it
   * is billed for the forwarded content.
   */
  closed(): void {
    if (this.#settled) return;
    const call = this.#call;
    // The call was not refused: an upstream is, or may be, working on it.
    call.answer.begun ||= call.attempts.at(-1)?.failure === undefined;
    if (this.#expected.kind === "stream") {
      this.#takeUsage(this.#expected.reader);
      this.#scanForwarded(this.#expected);
    }
    const outcome: CallOutcome = {
      status: this.#status === 0 ? 499 : this.#status,
      end: "disconnected",
      code: undefined,
    };
    const settle = (): void => this.#settle(outcome, () => {});
    if (call.answer.usage !== undefined || !call.answer.begun) return settle();
    const restRead = this.#exchange.guard((usage: Usage | undefined) => {
      call.answer.usage = usage;
      settle();
    });
    if (this.#options.relay?.claim(call, restRead) !== true) settle();
  }

  /** Envoy's local reply instead of the provider's: no attempt was answered. */
  #localReply(local: string): void {
    const failure = { status: 0, retryAfterMs: undefined, flags: localReplyFlags(local) };
    this.#call.reportFailure(this.#call.attempts.length, failure);
    this.#fail(localReplyError(this.#status, local));
  }

  #errorHeaders(headers: HeaderMap, endOfStream: boolean): void {
    if (!endOfStream)
      return this.#buffer({ kind: "error", encoding: headers.get("content-encoding") }, headers);
    const { body } = upstreamError(this.#call, this.#status, Buffer.alloc(0));
    this.#settle(this.#upstreamFailure, (totals) => {
      this.#respond(this.#status, [...identityHeaders(this.#call), ...totals, JSON_TYPE], body);
    });
  }

  #buffer(expected: Expected, headers: HeaderMap): void {
    this.#expected = expected;
    const remove = removals(headers);
    this.#exchange.proceed("response_headers", {
      ...(remove.length === 0 ? {} : { headers: { remove } }),
      responseBodyMode: "buffered",
    });
  }

  #whole(body: Buffer, encoding: string | undefined): void {
    const call = this.#call;
    let plain: Buffer;
    try {
      plain = decompress(body, encoding);
    } catch {
      return this.#fail(
        publicError("upstream_invalid", "The provider's compressed answer cannot be read."),
      );
    }
    call.answer.receivedWhole = true;
    call.answer.bytes = plain.length;
    const answer = wholeAnswer(call, plain, this.#options.clock.now());
    call.answer.usage = answer.usage;
    if (answer.kind === "invalid") return this.#fail(answer.error);
    const send = (): void =>
      this.#settle({ status: this.#status, end: "completed", code: undefined }, (totals) => {
        const set = [...identityHeaders(call), ...totals];
        if (answer.body === body) this.#exchange.proceed("response_body", { headers: { set } });
        else this.#replaceBody(set, answer.body);
      });
    if (!this.#isGuarded) return send();
    const texts = dialects[call.request.route.dialect].readAnswerTexts(
      JSON.parse(answer.body.toString("utf8")),
    );
    this.#exchange.when(this.#scan(texts, true), (finding) => {
      // The client disconnected meanwhile.
      if (this.#settled) return;
      if (finding === undefined) return send();
      const { error, detail } = violation(finding);
      this.#fail(error, undefined, detail);
    });
  }

  /** Whether a guard scans the answer. */
  get #isGuarded(): boolean {
    const { permit, route } = this.#call.request;
    const isText = route.operation === "chat" || route.operation === "responses";
    return isText && scansResponses(permit.caller);
  }

  #scan(texts: readonly ScannedText[], canBlock: boolean): Promise<GuardFinding | undefined> {
    const { id, permit, address, facts } = this.#call.request;
    const call = { caller: permit.caller, callId: id, address, model: facts.model };
    return this.#options.guards.scan({ call, texts, canBlock });
  }

  /** Scans a streamed answer after it was forwarded: a finding is recorded. */
  #scanForwarded({ texts }: ExpectedStream): void {
    if (texts === undefined) return;
    const { calls } = this.#options;
    const scan = this.#scan(texts.take(), false);
    calls.enter(scan);
    const leave = (): void => calls.leave(scan);
    scan.then(leave, leave);
    this.#exchange.when(scan, () => {});
  }

  #errorBody(body: Buffer, encoding: string | undefined): void {
    let plain: Buffer;
    try {
      plain = decompress(body, encoding);
    } catch {
      plain = Buffer.alloc(0);
    }
    // The last upstream's own error, in the caller's dialect. It costs nothing.
    const error = upstreamError(this.#call, this.#status, plain);
    this.#settle(this.#upstreamFailure, (totals) => {
      this.#replaceBody([...identityHeaders(this.#call), ...totals], error.body);
    });
  }

  get #upstreamFailure(): CallOutcome {
    return { status: this.#status, end: "failed", code: "upstream_error" };
  }

  #replaceBody(totals: readonly HeaderPair[], body: Buffer): void {
    const set = [...totals, JSON_TYPE, ["content-length", String(body.length)] as const];
    this.#exchange.proceed("response_body", {
      headers: { set, remove: ["content-encoding"] },
      body,
    });
  }

  #chunk(expected: ExpectedStream, chunk: Buffer, endOfStream: boolean): void {
    const { reader, totals, texts } = expected;
    const out = reader.push(chunk);
    texts?.push(out);
    this.#noteProgress(reader);
    this.#heldBytes = out.length > 0 ? 0 : this.#heldBytes + chunk.length;
    if (this.#heldBytes > MAX_HELD_BYTES) return this.#giveUp(reader);
    if (!endOfStream) {
      const sent = totals.pass(out);
      if (sent === chunk) this.#exchange.pass("response_body");
      else this.#exchange.proceed("response_body", { body: sent });
      return;
    }
    const tail = reader.end();
    this.#takeUsage(reader);
    const rest = Buffer.concat([out, tail]);
    texts?.push(tail);
    this.#scanForwarded(expected);
    this.#settle(streamOutcome(this.#status, reader), (pairs) => {
      this.#exchange.proceed("response_body", { body: totals.end(rest, pairs) });
    });
  }

  /** The upstream sends an event without end: the client's connection is closed. */
  #giveUp(reader: StreamReader): void {
    this.#takeUsage(reader);
    const outcome = { status: this.#status, end: "cut", code: "upstream_invalid" } as const;
    this.#settle(outcome, () => this.#exchange.fail());
  }

  /** For an estimate, if the stream ends before its usage is known. */
  #noteProgress(reader: StreamReader): void {
    const now = this.#options.clock.monotonic();
    this.#call.answer.lastProgressAt = now;
    if (this.#call.answer.firstContentAt === undefined && reader.sawContent)
      this.#call.answer.firstContentAt = now;
  }

  #takeUsage(reader: StreamReader): void {
    this.#call.answer.bytes = reader.outputBytes;
    this.#call.answer.events = reader.outputEvents;
    // A first report (Anthropic's message_start) is incomplete: the rest is estimated from the
    // forwarded content.
    if (reader.usageIsFinal) this.#call.answer.usage = reader.usage;
    else this.#call.answer.partialUsage = reader.usage;
  }

  /** @param answer sends the last part of the answer, once the call's record is on the disk */
  #settle(outcome: CallOutcome, answer: (totals: readonly HeaderPair[]) => void): void {
    if (this.#settled) throw new Error("a call is settled once");
    this.#settled = true;
    this.#expected = { kind: "done" };
    this.#options.calls.remove(this.#call);
    this.#call.dropOriginal();
    const recorded = this.#exchange.guard((settlement: Settlement, kept: boolean) => {
      if (kept) answer(totalsHeaders(settlement));
      // The end of the answer is withheld, because every call must be recorded.
      else this.#exchange.fail();
    });
    this.#options.accounting.settle(this.#call, outcome, recorded);
  }

  /** Reports our own error, after the call was sent upstream. */
  #fail(error: PublicError, retryAfterMs?: number, detail?: object): void {
    this.#settle({ status: error.status, end: "failed", code: error.code }, (totals) => {
      const set: HeaderPair[] = [...identityHeaders(this.#call), ...totals, JSON_TYPE];
      if (retryAfterMs !== undefined)
        set.push(["retry-after", String(retryAfterSeconds(retryAfterMs))]);
      this.#respond(
        error.status,
        set,
        bodyWithDetail(dialects[this.#call.request.route.dialect].renderError(error), detail),
      );
    });
  }

  #respond(status: number, set: readonly HeaderPair[], body: string | Buffer): void {
    this.#exchange.respond({ status, headers: { set }, body });
  }
}

/**
 * Removes headers that only the gateway may set; the routes remove the other headers that clients
 * must not see.
 */
function removals(headers: HeaderMap): string[] {
  return [...headers.keys()].filter((name) => name.startsWith("x-svc-"));
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

/** Error messages for Envoy's local replies. `local` is `<response flags> <details>`. */
export function localReplyError(status: number, local: string): PublicError {
  if (status === 413) {
    return publicError(
      "body_too_large",
      `The request body is above ${MAX_REQUEST_BODY_BYTES} bytes.`,
    );
  }
  if (status === 504 || local.includes("timeout")) {
    return publicError("upstream_timeout", "The provider did not begin its answer in time.");
  }
  return publicError("upstream_unavailable", "The provider could not be reached.");
}
