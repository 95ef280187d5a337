/**
 * The minimum of HTTP/1.1 that the load generator and the upstream need, so that their cost is
 * small compared with the measured one.
 */

export interface MessageHandler {
  /** Start line and headers, without the empty line. */
  head(head: string): void;
  /** Bytes of the body, without framing. */
  body(part: Buffer): void;
  end(): void;
}

type State = "head" | "sized" | "chunkSize" | "chunk" | "chunkEnd" | "trailers";

const NOTHING: Buffer = Buffer.alloc(0);

/** Reads the messages of one connection in order, however their bytes are split. */
export class MessageReader {
  readonly #handler: MessageHandler;
  #state: State = "head";
  /** Bytes still to come of the body, or of its chunk. */
  #remaining = 0;
  /** The incomplete beginning of a line or head. */
  #pending: Buffer = NOTHING;

  constructor(handler: MessageHandler) {
    this.#handler = handler;
  }

  push(data: Buffer): void {
    const bytes = this.#pending.length === 0 ? data : Buffer.concat([this.#pending, data]);
    this.#pending = NOTHING;
    let offset = 0;
    while (offset < bytes.length) {
      if (this.#state === "sized" || this.#state === "chunk") {
        offset = this.#bodyBytes(bytes, offset);
        continue;
      }
      const delimiter = this.#state === "head" ? "\r\n\r\n" : "\r\n";
      const end = bytes.indexOf(delimiter, offset);
      if (end === -1) {
        this.#pending = bytes.subarray(offset);
        return;
      }
      this.#line(bytes.toString("latin1", offset, end));
      offset = end + delimiter.length;
    }
  }

  #bodyBytes(bytes: Buffer, offset: number): number {
    const end = Math.min(bytes.length, offset + this.#remaining);
    this.#remaining -= end - offset;
    this.#handler.body(bytes.subarray(offset, end));
    if (this.#remaining > 0) return end;
    if (this.#state === "chunk") this.#state = "chunkEnd";
    else this.#finish();
    return end;
  }

  #line(line: string): void {
    switch (this.#state) {
      case "head":
        return this.#headers(line);
      case "chunkSize":
        this.#remaining = Number.parseInt(line, 16);
        this.#state = this.#remaining === 0 ? "trailers" : "chunk";
        return;
      case "chunkEnd":
        this.#state = "chunkSize";
        return;
      case "trailers":
        if (line === "") this.#finish();
        return;
      case "sized":
      case "chunk":
        throw new Error(`a line in the state ${this.#state}`);
    }
  }

  #headers(head: string): void {
    this.#handler.head(head);
    this.#remaining = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
    if (/\r\ntransfer-encoding: *chunked/i.test(head)) this.#state = "chunkSize";
    else if (this.#remaining > 0) this.#state = "sized";
    else this.#finish();
  }

  #finish(): void {
    this.#state = "head";
    this.#handler.end();
  }
}
