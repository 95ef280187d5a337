/**
 * A stream to a client of the upstream's own dialect: the bytes are forwarded unchanged, and only
 * usage, the end and errors are read. The hot path of the gateway: a chunk of plain deltas is
 * searched, not parsed.
 */
import type { AnswerFormat } from "./contract.ts";
import type { StreamOutcome, StreamReader, Usage } from "./dialect.ts";
import { EventBuffer } from "./event-buffer.ts";
import { readEvent, splitEvents, SseParser } from "./sse.ts";
import { STREAM_CUT } from "./stream-errors.ts";
import { type ChunkVerdict, PASS, type StreamProbe } from "./stream-probe.ts";

const EMPTY = Buffer.alloc(0);
const BLANK_LINE = Buffer.from("\n\n");

export class PassStreamReader implements StreamReader {
  readonly #probe: StreamProbe;
  readonly #dialect: Pick<AnswerFormat, "renderStreamError">;
  readonly #events = new EventBuffer();
  #eventCount = 0;
  #outcome: StreamOutcome = { kind: "cut" };

  constructor(dialect: Pick<AnswerFormat, "renderStreamError">, probe: StreamProbe) {
    this.#dialect = dialect;
    this.#probe = probe;
  }

  push(chunk: Buffer): Buffer {
    const block = this.#events.push(chunk);
    this.#eventCount += countEvents(block);
    if (block.length === 0 || this.#probe.isPlain(block)) return block;
    return this.#look(block);
  }

  end(): Buffer {
    const rest = this.#events.end();
    const last = rest.length === 0 || this.#probe.isPlain(rest) ? rest : this.#look(rest);
    if (this.#outcome.kind === "error") return last;
    if (this.#probe.complete) {
      this.#outcome = { kind: "complete" };
      return last;
    }
    const error = Buffer.from(this.#dialect.renderStreamError(STREAM_CUT), "utf8");
    // A partial event is dropped: a client would fail on it, and never see the error.
    return isWhole(rest) && last.length > 0 ? Buffer.concat([last, BLANK_LINE, error]) : error;
  }

  get outcome(): StreamOutcome {
    return this.#outcome;
  }

  get usage(): Usage | undefined {
    return this.#probe.usage;
  }

  get usageIsFinal(): boolean {
    return this.#probe.usageIsFinal;
  }

  get outputBytes(): number {
    return this.#probe.outputBytes;
  }

  get outputEvents(): number {
    return this.#eventCount;
  }

  get sawContent(): boolean {
    return this.#probe.sawContent;
  }

  #look(block: Buffer): Buffer {
    const shown: Buffer[] = [];
    let hidden = false;
    for (const bytes of splitEvents(block)) {
      const verdict = this.#judge(bytes);
      if (verdict.kind === "error" && this.#outcome.kind === "cut") this.#outcome = verdict;
      if (verdict.kind === "hide") hidden = true;
      else shown.push(bytes);
    }
    if (!hidden) return block;
    return shown.length === 0 ? EMPTY : Buffer.concat(shown);
  }

  #judge(bytes: Buffer): ChunkVerdict {
    const event = readEvent(bytes);
    return event === undefined ? PASS : this.#probe.event(event.name, event.data);
  }
}

const DATA_LINE = Buffer.from("\ndata:");

/** Counts events with data in a block of whole events; the first line has no line end before it. */
function countEvents(block: Buffer): number {
  if (block.length === 0) return 0;
  let count = block.indexOf("data:") === 0 ? 1 : 0;
  for (let at = block.indexOf(DATA_LINE); at >= 0; at = block.indexOf(DATA_LINE, at + 1))
    count += 1;
  return count;
}

/** Returns whether the bytes of an event lack only its final blank line. */
function isWhole(rest: Buffer): boolean {
  const parser = new SseParser();
  const events = [...parser.push(rest), ...parser.end()];
  return events.every(({ data }) => {
    try {
      JSON.parse(data);
      return true;
    } catch {
      return data === "[DONE]";
    }
  });
}
