/** Cuts gRPC messages (1 byte flag, 4 bytes length, payload) out of DATA frames. */

const PREFIX_BYTES = 5;

export class GrpcMessages {
  readonly #maxBytes: number;
  #parts: Buffer[] = [];
  #have = 0;
  /** Bytes of the message under way, its prefix included; 0 while the prefix is incomplete. */
  #need = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /**
   * Feeds one frame's data and calls `each` for every message that it completes.
   * @returns false when the peer broke the framing: compressed, or above the maximum.
   */
  push(data: Buffer, each: (message: Buffer) => void): boolean {
    let rest = data;
    while (rest.length > 0) {
      if (this.#have === 0 && rest.length >= PREFIX_BYTES) {
        // The common case: a message that lies whole in this frame.
        const length = rest.readUInt32BE(1);
        if (rest[0] !== 0 || length > this.#maxBytes) return false;
        const end = PREFIX_BYTES + length;
        if (rest.length >= end) {
          each(rest.subarray(PREFIX_BYTES, end));
          rest = rest.subarray(end);
          continue;
        }
        this.#need = end;
        this.#keep(rest);
        return true;
      }
      if (this.#need === 0) {
        // A prefix that is cut by frames.
        const part = rest.subarray(0, PREFIX_BYTES - this.#have);
        this.#keep(part);
        rest = rest.subarray(part.length);
        if (this.#have < PREFIX_BYTES) return true;
        const prefix = this.#take();
        const length = prefix.readUInt32BE(1);
        if (prefix[0] !== 0 || length > this.#maxBytes) return false;
        this.#need = PREFIX_BYTES + length;
        this.#keep(prefix);
      }
      const part = rest.subarray(0, this.#need - this.#have);
      this.#keep(part);
      rest = rest.subarray(part.length);
      if (this.#have === this.#need) {
        this.#need = 0;
        each(this.#take().subarray(PREFIX_BYTES));
      }
    }
    return true;
  }

  #keep(part: Buffer): void {
    if (part.length === 0) return;
    this.#parts.push(part);
    this.#have += part.length;
  }

  #take(): Buffer {
    const whole =
      this.#parts.length === 1
        ? (this.#parts[0] as Buffer)
        : Buffer.concat(this.#parts, this.#have);
    this.#parts = [];
    this.#have = 0;
    return whole;
  }
}
