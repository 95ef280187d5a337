/**
 * Parses server-sent events incrementally from bytes: split at any position, LF, CRLF or CR, a byte
 * order mark, comments, several data lines, and a last event that lacks its newline.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
export interface SseEvent {
  readonly name: string | undefined;
  readonly data: string;
}

const LF = 0x0a;
const CR = 0x0d;

export class SseParser {
  /**
   * Bytes of an incomplete line; joined once it is complete, so that a long line is copied only
   * once.
   */
  #partial: Buffer[] = [];
  /** The last chunk ended in CR: an LF at the start of the next belongs to it. */
  #afterCr = false;
  #firstLine = true;
  #name: string | undefined;
  #data: string | undefined;

  push(chunk: Buffer): SseEvent[] {
    const events: SseEvent[] = [];
    let position = 0;
    if (this.#afterCr && chunk.length > 0) {
      this.#afterCr = false;
      if (chunk[0] === LF) position = 1;
    }
    let lf = chunk.indexOf(LF, position);
    let cr = chunk.indexOf(CR, position);
    while (lf >= 0 || cr >= 0) {
      const end = lf < 0 ? cr : cr < 0 ? lf : Math.min(lf, cr);
      this.#line(this.#take(chunk, position, end), events);
      position = end + 1;
      if (end === cr) {
        if (position === chunk.length) this.#afterCr = true;
        else if (chunk[position] === LF) position += 1;
        cr = chunk.indexOf(CR, position);
      }
      if (lf >= 0 && lf < position) lf = chunk.indexOf(LF, position);
    }
    if (position < chunk.length) this.#partial.push(chunk.subarray(position));
    return events;
  }

  /**
   * Ends the stream: returns the event without its blank line, if any. It may be incomplete: its
   * data is unreliable.
   */
  end(): SseEvent[] {
    const events: SseEvent[] = [];
    if (this.#partial.length > 0) this.#line(this.#take(Buffer.alloc(0), 0, 0), events);
    this.#line("", events);
    return events;
  }

  #take(chunk: Buffer, start: number, end: number): string {
    if (this.#partial.length === 0) return chunk.toString("utf8", start, end);
    this.#partial.push(chunk.subarray(start, end));
    const line = Buffer.concat(this.#partial).toString("utf8");
    this.#partial = [];
    return line;
  }

  #line(text: string, events: SseEvent[]): void {
    let line = text;
    if (this.#firstLine) {
      this.#firstLine = false;
      if (line.startsWith("\uFEFF")) line = line.slice(1);
    }
    if (line === "") {
      if (this.#data !== undefined) events.push({ name: this.#name, data: this.#data });
      this.#name = undefined;
      this.#data = undefined;
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value =
      colon < 0 ? "" : line.slice(line.charCodeAt(colon + 1) === 0x20 ? colon + 2 : colon + 1);
    if (field === "data") this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
    else if (field === "event") this.#name = value;
  }
}

const BLANK_LINES = [Buffer.from("\n\n"), Buffer.from("\n\r\n"), Buffer.from("\r\r")] as const;

/**
 * Returns the end of the last whole event of `bytes` (after its blank line); 0 if there is none.
 */
export function lastEventEnd(bytes: Buffer): number {
  const length = bytes.length;
  if (length >= 2 && bytes[length - 1] === LF) {
    const before = bytes[length - 2];
    if (before === LF) return length;
    if (before === CR && length >= 3 && bytes[length - 3] === LF) return length;
  }
  let end = 0;
  for (const blank of BLANK_LINES) {
    const at = bytes.lastIndexOf(blank);
    if (at >= 0) end = Math.max(end, at + blank.length);
  }
  return end;
}

/** Splits a block of whole events into its events, bytes unchanged. */
export function splitEvents(block: Buffer): Buffer[] {
  const events: Buffer[] = [];
  // Next position of each kind of blank line: an absent kind is searched for once, not once per
  // event.
  const next = BLANK_LINES.map((blank) => ({ blank, at: block.indexOf(blank) }));
  let start = 0;
  while (start < block.length) {
    let end = block.length;
    for (const kind of next) {
      if (kind.at >= 0 && kind.at < start) kind.at = block.indexOf(kind.blank, start);
      if (kind.at >= 0) end = Math.min(end, kind.at + kind.blank.length);
    }
    events.push(block.subarray(start, end));
    start = end;
  }
  return events;
}

/** Returns the single event of `bytes`; undefined for comments and blank lines. */
export function readEvent(bytes: Buffer): SseEvent | undefined {
  const parser = new SseParser();
  return [...parser.push(bytes), ...parser.end()][0];
}
