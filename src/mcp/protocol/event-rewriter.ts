/**
 * Rewrites a stream of server-sent events on its way: the ids of events, and, where a policy
 * concerns them, messages in their data. All else passes as the same bytes, in the same chunks as
 * far as possible: comments, `retry`, events without data.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
 */

export interface EventRewriterOptions {
  /** Returns the id that the client is given instead. */
  readonly wrapId: (id: string) => string;
  /**
   * Returns data to send instead of an event's data, undefined to leave it. If there is no such
   * function, data is forwarded before it is complete.
   */
  readonly inspect: ((data: Buffer) => Buffer | undefined) | undefined;
  /** Maximum size in bytes of an event that is inspected. */
  readonly maxEventBytes: number;
}

/** EventTooLarge is an event that cannot be inspected: the stream must end. */
export class EventTooLarge extends Error {
  override readonly name = "EventTooLarge";
}

/** Maximum size in bytes of an `id` line; it must fit into a header when the stream is resumed. */
const MAX_ID_LINE = 8_192;

const LF = 0x0a;
const CR = 0x0d;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

export class EventRewriter {
  readonly #options: EventRewriterOptions;
  /** Bytes of a line whose end has not arrived. */
  #partial: Buffer = Buffer.alloc(0);
  /** Forward the rest of this line as it comes. */
  #passesLine = false;
  /** Lines of the event that is inspected: with their ends. */
  #held: Buffer[] = [];
  #heldBytes = 0;
  #isStart = true;
  /** The last byte was CR: an LF that follows belongs to it. */
  #afterCr = false;

  constructor(options: EventRewriterOptions) {
    this.#options = options;
  }

  /**
   * @returns the bytes to forward; the chunk itself if nothing changes
   * @throws EventTooLarge
   */
  push(chunk: Buffer): readonly Buffer[] {
    const out: Buffer[] = [];
    let at = 0;
    while (at < chunk.length) {
      if (this.#afterCr) {
        this.#afterCr = false;
        if (chunk[at] === LF) {
          this.#forward(chunk.subarray(at, at + 1), out);
          at += 1;
          continue;
        }
      }
      const end = endOfLine(chunk, at);
      if (end < 0) {
        this.#incomplete(chunk.subarray(at), out);
        break;
      }
      const next = chunk[end] === CR && chunk[end + 1] === LF ? end + 2 : end + 1;
      this.#afterCr = chunk[end] === CR && next === chunk.length;
      this.#line(chunk.subarray(at, end), chunk.subarray(end, next), out);
      at = next;
    }
    return joined(out, chunk);
  }

  /** Ends the stream: returns what was held, inspected as if its event were complete. */
  end(): readonly Buffer[] {
    const out: Buffer[] = [];
    if (this.#partial.length > 0) this.#line(Buffer.alloc(0), Buffer.alloc(0), out);
    this.#release(out);
    return out;
  }

  /** Holds the beginning of a line until it is known whether it has to be held. */
  #incomplete(bytes: Buffer, out: Buffer[]): void {
    if (this.#passesLine) {
      out.push(bytes);
      return;
    }
    this.#partial = this.#partial.length === 0 ? bytes : Buffer.concat([this.#partial, bytes]);
    if (this.#options.inspect !== undefined) {
      this.#checkSize(this.#partial.length);
      return;
    }
    if (mayBeId(this.#withoutMark(this.#partial))) {
      if (this.#partial.length > MAX_ID_LINE) throw new EventTooLarge("an id is too long");
      return;
    }
    out.push(this.#partial);
    this.#partial = Buffer.alloc(0);
    this.#passesLine = true;
    this.#isStart = false;
  }

  /** @param rest of the line, without its end */
  #line(rest: Buffer, end: Buffer, out: Buffer[]): void {
    if (this.#passesLine) {
      this.#passesLine = false;
      out.push(rest, end);
      return;
    }
    const whole = this.#partial.length === 0 ? rest : Buffer.concat([this.#partial, rest]);
    this.#partial = Buffer.alloc(0);
    const line = this.#withoutMark(whole);
    this.#isStart = false;
    const id = idOf(line);
    this.#forward(id === undefined ? whole : this.#wrapped(id), out);
    this.#forward(end, out);
    if (line.length === 0) this.#release(out);
  }

  #forward(bytes: Buffer, out: Buffer[]): void {
    if (this.#options.inspect === undefined) {
      out.push(bytes);
      return;
    }
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
    this.#checkSize(0);
  }

  #checkSize(more: number): void {
    const { maxEventBytes } = this.#options;
    if (this.#heldBytes + more > maxEventBytes)
      throw new EventTooLarge(`an event of more than ${maxEventBytes} bytes`);
  }

  /** Inspects the event that is held, and forwards it. */
  #release(out: Buffer[]): void {
    const { inspect } = this.#options;
    if (inspect === undefined || this.#held.length === 0) return;
    const bytes = this.#held.length === 1 ? (this.#held[0] as Buffer) : Buffer.concat(this.#held);
    this.#held = [];
    this.#heldBytes = 0;
    const lines = linesOf(bytes);
    const data = lines.flatMap(({ text }) => valueOf(text, "data") ?? []);
    // Events without data only carry an id (2025-11-25, section "Sending Messages to the Server").
    const isEmpty = data.every((part) => part.length === 0);
    const replaced = isEmpty ? undefined : inspect(withNewlines(data));
    if (replaced === undefined) {
      out.push(bytes);
      return;
    }
    for (const { text, end } of lines) {
      if (valueOf(text, "data") !== undefined || text.length === 0) continue;
      out.push(text, end);
    }
    for (const { text } of linesOf(replaced)) {
      out.push(Buffer.from("data: "), text, Buffer.from("\n"));
    }
    out.push(Buffer.from("\n"));
  }

  #wrapped(id: Buffer): Buffer {
    const text = id.toString("utf8");
    // An empty id resets the last one, and none that contains NUL is used.
    if (text === "" || text.includes("\0")) return Buffer.from("id:");
    return Buffer.from(`id: ${this.#options.wrapId(text)}`);
  }

  #withoutMark(line: Buffer): Buffer {
    return this.#isStart && line.subarray(0, 3).equals(BYTE_ORDER_MARK) ? line.subarray(3) : line;
  }
}

interface Line {
  readonly text: Buffer;
  readonly end: Buffer;
}

function linesOf(bytes: Buffer): Line[] {
  const lines: Line[] = [];
  let at = 0;
  while (at < bytes.length) {
    const found = endOfLine(bytes, at);
    const end = found < 0 ? bytes.length : found;
    const next = bytes[end] === CR && bytes[end + 1] === LF ? end + 2 : end + 1;
    lines.push({ text: bytes.subarray(at, end), end: bytes.subarray(end, next) });
    at = next;
  }
  return lines;
}

function endOfLine(bytes: Buffer, from: number): number {
  for (let at = from; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === LF || byte === CR) return at;
  }
  return -1;
}

/** Returns the value of a line's field, without the space after the colon. */
function valueOf(line: Buffer, field: string): Buffer | undefined {
  if (!line.subarray(0, field.length).equals(Buffer.from(field))) return undefined;
  if (line.length === field.length) return Buffer.alloc(0);
  if (line[field.length] !== 0x3a) return undefined;
  const start = field.length + 1;
  return line.subarray(line[start] === 0x20 ? start + 1 : start);
}

function idOf(line: Buffer): Buffer | undefined {
  return valueOf(line, "id");
}

/** Returns whether a line that begins so may be an `id` line. */
function mayBeId(start: Buffer): boolean {
  const head = start.subarray(0, 3).toString("latin1");
  return head === "" || head === "i" || head === "id" || head === "id:" || isMarkStart(start);
}

function isMarkStart(start: Buffer): boolean {
  return start.length < 3 && BYTE_ORDER_MARK.subarray(0, start.length).equals(start);
}

function withNewlines(parts: readonly Buffer[]): Buffer {
  const newline = Buffer.from("\n");
  return Buffer.concat(parts.flatMap((part, index) => (index === 0 ? [part] : [newline, part])));
}

/** Returns the chunk itself if its parts are forwarded as they are, all of them. */
function joined(out: readonly Buffer[], chunk: Buffer): readonly Buffer[] {
  let at = chunk.byteOffset;
  for (const part of out) {
    if (part.buffer !== chunk.buffer || part.byteOffset !== at) return out;
    at += part.length;
  }
  return at === chunk.byteOffset + chunk.length ? [chunk] : out;
}
