/** Passes on only whole SSE events: holds the bytes of an incomplete event. */
import { lastEventEnd } from "./sse.ts";

const EMPTY = Buffer.alloc(0);
/**
 * Length of the longest blank line minus one byte, which must be searched again with the next
 * chunk.
 */
const OVERLAP = 2;

export class EventBuffer {
  #held: Buffer[] = [];
  /** The last bytes of the held data, however small its parts are. */
  #tail: Buffer = EMPTY;

  /**
   * Returns everything up to the last event boundary; the same Buffer if nothing was held and
   * nothing remains.
   */
  push(chunk: Buffer): Buffer {
    if (this.#held.length === 0) {
      const end = lastEventEnd(chunk);
      if (end === chunk.length) return chunk;
      this.#hold(chunk.subarray(end));
      return chunk.subarray(0, end);
    }
    const tail = this.#tail;
    const end =
      lastEventEnd(tail.length === 0 ? chunk : Buffer.concat([tail, chunk])) - tail.length;
    if (end <= -tail.length) {
      this.#hold(chunk);
      return EMPTY;
    }
    const whole = Buffer.concat([...this.#held, chunk]);
    const cut = whole.length - chunk.length + end;
    this.#held = [];
    this.#tail = EMPTY;
    if (cut < whole.length) this.#hold(whole.subarray(cut));
    return whole.subarray(0, cut);
  }

  /** Returns the bytes of the incomplete event at the end of the stream. */
  end(): Buffer {
    const rest = Buffer.concat(this.#held);
    this.#held = [];
    this.#tail = EMPTY;
    return rest;
  }

  #hold(part: Buffer): void {
    this.#held.push(part);
    this.#tail =
      part.length >= OVERLAP
        ? part.subarray(-OVERLAP)
        : Buffer.concat([this.#tail, part]).subarray(-OVERLAP);
  }
}
