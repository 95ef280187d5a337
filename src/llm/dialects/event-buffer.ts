/** Hands on whole SSE events only: holds the bytes of an event that is not complete yet. */
import { lastEventEnd } from "./sse.ts";

const EMPTY = Buffer.alloc(0);
/** The longest blank line less one byte: what must be looked at again when the next chunk comes. */
const OVERLAP = 2;

export class EventBuffer {
  #held: Buffer[] = [];
  /** The last bytes of what is held, however small its parts are. */
  #tail: Buffer = EMPTY;

  /**
   * Returns everything up to the last event boundary; the very same Buffer when nothing was held
   * and nothing is left over.
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

  /** Returns the bytes of the event that was never completed: the stream has ended. */
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
