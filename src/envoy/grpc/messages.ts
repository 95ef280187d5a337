/** Extracts gRPC messages (1 byte flag, 4 bytes length, payload) from DATA frames. */

const PREFIX_BYTES = 5;

export class GrpcMessages {
  readonly #maxBytes: number;
  /** The prefix of the current message, as far as it has arrived. */
  readonly #prefix = Buffer.alloc(PREFIX_BYTES);
  #prefixBytes = 0;
  /** The payload of the current message, once its prefix has arrived. */
  #payload: Buffer | undefined;
  #have = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /**
   * Processes bytes, split at any position, and calls `each` for every message that they complete.
   * @returns false if the peer violated the framing: a compressed message, or one above the
   * maximum.
   */
  push(data: Buffer, each: (message: Buffer) => void): boolean {
    let at = 0;
    while (at < data.length) {
      if (this.#payload !== undefined) {
        at += this.#fill(this.#payload, data, at, each);
        continue;
      }
      if (this.#prefixBytes === 0 && data.length - at >= PREFIX_BYTES) {
        const length = this.#lengthAt(data, at);
        if (length === undefined) return false;
        at += PREFIX_BYTES;
        if (data.length - at >= length) {
          // The common case: a message that is completely contained in these bytes.
          each(data.subarray(at, at + length));
          at += length;
        } else {
          this.#begin(length);
        }
        continue;
      }
      // An incomplete prefix.
      this.#prefix[this.#prefixBytes++] = data[at++] as number;
      if (this.#prefixBytes < PREFIX_BYTES) continue;
      this.#prefixBytes = 0;
      const length = this.#lengthAt(this.#prefix, 0);
      if (length === undefined) return false;
      if (length === 0) each(EMPTY);
      else this.#begin(length);
    }
    return true;
  }

  #lengthAt(bytes: Buffer, at: number): number | undefined {
    const length = bytes.readUInt32BE(at + 1);
    return bytes[at] !== 0 || length > this.#maxBytes ? undefined : length;
  }

  #begin(length: number): void {
    this.#payload = Buffer.allocUnsafeSlow(length);
    this.#have = 0;
  }

  /** Copies the bytes that belong to the current message. @returns their number */
  #fill(payload: Buffer, data: Buffer, at: number, each: (message: Buffer) => void): number {
    const copied = data.copy(payload, this.#have, at);
    this.#have += copied;
    if (this.#have === payload.length) {
      this.#payload = undefined;
      each(payload);
    }
    return copied;
  }
}

const EMPTY = Buffer.alloc(0);
