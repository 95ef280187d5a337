/**
 * A stream to a client of another dialect: upstream events are converted to model events, and these
 * to the client's bytes.
 */
import type { PublicError } from "../../access/errors.ts";
import type { AnswerFormat } from "./contract.ts";
import type { StreamOutcome, StreamReader, Usage } from "./dialect.ts";
import { UpstreamFormatError } from "./model.ts";
import type { Finish, ModelUsage, StreamEvent, StreamParser, StreamSerialiser } from "./model.ts";
import { redactSecrets } from "./redact.ts";
import { SseParser } from "./sse.ts";
import type { SseEvent } from "./sse.ts";
import { STREAM_CUT, parseJson } from "./stream-errors.ts";

type State = "open" | "closed" | "failed";

const EMPTY = Buffer.alloc(0);

export class TranslateStreamReader implements StreamReader {
  readonly #client: AnswerFormat;
  readonly #parser: StreamParser;
  readonly #serialiser: StreamSerialiser;
  readonly #sse = new SseParser();
  #state: State = "open";
  #outcome: StreamOutcome = { kind: "cut" };
  #finish: Finish | undefined;
  #usage: ModelUsage | undefined;
  #usageIsFinal = false;
  #bytes = 0;
  #contentEvents = 0;
  #sawContent = false;

  constructor(client: AnswerFormat, parser: StreamParser, serialiser: StreamSerialiser) {
    this.#client = client;
    this.#parser = parser;
    this.#serialiser = serialiser;
  }

  push(chunk: Buffer): Buffer {
    return toBuffer(this.#read(this.#sse.push(chunk)));
  }

  end(): Buffer {
    // The last event may be incomplete, and is then dropped.
    const last = this.#sse
      .end()
      .filter(({ data }) => data === "[DONE]" || parseJson(data) !== undefined);
    const text = this.#read(last);
    if (this.#state !== "open") return toBuffer(text);
    return toBuffer(
      text + (this.#parser.complete ? this.#close() : this.#fail(STREAM_CUT, { kind: "cut" })),
    );
  }

  get outcome(): StreamOutcome {
    return this.#outcome;
  }

  get usage(): Usage | undefined {
    return this.#usage;
  }

  get usageIsFinal(): boolean {
    return this.#usageIsFinal;
  }

  get outputBytes(): number {
    return this.#bytes;
  }

  get outputEvents(): number {
    return this.#contentEvents;
  }

  get sawContent(): boolean {
    return this.#sawContent;
  }

  #read(events: readonly SseEvent[]): string {
    let text = "";
    for (const { name, data } of events) {
      for (const event of this.#parser.event(name, data)) text += this.#event(event);
      if (this.#parser.closed && this.#state === "open") text += this.#close();
    }
    return text;
  }

  #event(event: StreamEvent): string {
    // Usage is billed, also if the answer failed.
    if (event.kind === "usage") {
      this.#usage = event.usage;
      this.#usageIsFinal = event.final;
      return "";
    }
    if (this.#state !== "open") return "";
    switch (event.kind) {
      case "finish":
        this.#finish = event.finish;
        return "";
      case "error": {
        const message = redactSecrets(event.error.message);
        return this.#fail({ ...event.error, message }, { kind: "error", message });
      }
      default:
        this.#count(event);
        return this.#serialise(() => this.#serialiser.event(event));
    }
  }

  #count(event: StreamEvent): void {
    if (
      event.kind === "text" ||
      event.kind === "thinking" ||
      event.kind === "refusal" ||
      event.kind === "call_arguments"
    ) {
      this.#bytes += Buffer.byteLength(event.text);
    }
    if (event.kind === "start" || event.kind === "block_end") return;
    this.#sawContent = true;
    this.#contentEvents += 1;
  }

  #close(): string {
    const finish = this.#finish;
    if (finish === undefined) return this.#fail(STREAM_CUT, { kind: "cut" });
    const text = this.#serialise(() => this.#serialiser.close(finish, this.#usage));
    if (this.#state === "open") {
      this.#state = "closed";
      this.#outcome = { kind: "complete" };
    }
    return text;
  }

  #serialise(write: () => string): string {
    try {
      return write();
    } catch (error) {
      if (!(error instanceof UpstreamFormatError)) throw error;
      const { message } = error;
      return this.#fail(
        { status: 502, code: "upstream_invalid", message },
        { kind: "error", message },
      );
    }
  }

  #fail(error: PublicError, outcome: StreamOutcome): string {
    this.#state = "failed";
    this.#outcome = outcome;
    return this.#serialiser.fail?.(error) ?? this.#client.renderStreamError(error);
  }
}

function toBuffer(text: string): Buffer {
  return text === "" ? EMPTY : Buffer.from(text, "utf8");
}
