/**
 * StreamTotals writes a call's totals at the end of its stream, where an unstreamed answer has them
 * as headers. Response trailers are no alternative: few clients read them, and Envoy's ext_proc
 * cannot add trailers to a response that has none.
 */
import type { AnswerFormat } from "../dialects/contract.ts";
import type { StreamReader } from "../dialects/dialect.ts";

export type TotalsForm = AnswerFormat["streamTotals"];

type HeaderPair = readonly [name: string, value: string];

export interface StreamTotals {
  /** Returns the bytes that may be sent now; the rest waits for {@link end}. */
  pass(out: Buffer): Buffer;
  /** Returns the end of the stream. `rest` has not been passed before. */
  end(rest: Buffer, totals: readonly HeaderPair[]): Buffer;
}

/** @param reader of the stream, which has read everything that is passed */
export function createStreamTotals(form: TotalsForm, reader: StreamReader): StreamTotals {
  return form === "comment" ? new CommentTotals() : new MemberTotals(reader);
}

/** A last comment, which SSE parsers skip (WHATWG HTML, section 9.2.6). */
class CommentTotals implements StreamTotals {
  /** The end of the stream so far. */
  #last: Buffer = Buffer.alloc(0);

  pass(out: Buffer): Buffer {
    if (out.length > 0) this.#last = out.subarray(-4);
    return out;
  }

  end(rest: Buffer, totals: readonly HeaderPair[]): Buffer {
    const last = rest.length > 0 ? rest : this.#last;
    const pairs = totals.map(([name, value]) => `${name}=${value}`).join(" ");
    return Buffer.concat([rest, Buffer.from(`${endsEvent(last) ? "" : "\n\n"}: ${pairs}\n\n`)]);
  }
}

/** Returns whether data ends with a blank line. */
function endsEvent(data: Buffer): boolean {
  const end = data.toString("latin1", Math.max(0, data.length - 4));
  return end === "" || /(\n\n|\r\n\r\n|\r\r)$/.test(end);
}

/** Maximum size of the last event: a larger one is sent without totals. */
const MAX_HELD_BYTES = 1024 * 1024;

const BRACE = 0x7d;

/**
 * A member `svc` of the last event, for the clients whose SDK fails on a comment and shows each
 * event as a part of the answer (google-genai, `HttpResponse._iter_response_stream`). SDKs ignore
 * members that they do not know.
 */
class MemberTotals implements StreamTotals {
  readonly #reader: StreamReader;
  #held: Buffer[] = [];
  #heldBytes = 0;

  constructor(reader: StreamReader) {
    this.#reader = reader;
  }

  /** Holds what follows the final usage: the last event is there, or after it. */
  pass(out: Buffer): Buffer {
    if (!this.#reader.usageIsFinal || out.length === 0) return out;
    this.#held.push(out);
    this.#heldBytes += out.length;
    return this.#heldBytes <= MAX_HELD_BYTES ? Buffer.alloc(0) : this.#release();
  }

  end(rest: Buffer, totals: readonly HeaderPair[]): Buffer {
    const all = Buffer.concat([this.#release(), rest]);
    const end = all.lastIndexOf(BRACE);
    const isLast = end > 0 && all.toString("latin1", end + 1).trim() === "";
    // An event that reports an error is not an answer.
    if (!isLast || this.#reader.outcome.kind !== "complete") return all;
    const member = `,"svc":${JSON.stringify(Object.fromEntries(totals))}`;
    return Buffer.concat([all.subarray(0, end), Buffer.from(member), all.subarray(end)]);
  }

  #release(): Buffer {
    const held = Buffer.concat(this.#held);
    this.#held = [];
    this.#heldBytes = 0;
    return held;
  }
}
