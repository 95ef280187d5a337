/** Hands on whole SSE events only: holds the bytes of an event that is not complete yet. */
import { lastEventEnd } from "./sse.ts";

const EMPTY = Buffer.alloc(0);
/** The longest blank line less one byte: what must be looked at again when the next chunk comes. */
const OVERLAP = 2;

export class EventBuffer {
  #held: Buffer[] = [];

  /** Everything up to the last event boundary; the very same Buffer when nothing was held and nothing is left over. */
  push(chunk: Buffer): Buffer {
    if (this.#held.length === 0) {
      const end = lastEventEnd(chunk);
      if (end === chunk.length) return chunk;
      this.#held.push(chunk.subarray(end));
      return chunk.subarray(0, end);
    }
    const tail = this.#tail();
    const end =
      lastEventEnd(tail.length === 0 ? chunk : Buffer.concat([tail, chunk])) - tail.length;
    if (end <= -tail.length) {
      this.#held.push(chunk);
      return EMPTY;
    }
    const whole = Buffer.concat([...this.#held, chunk]);
    const cut = whole.length - chunk.length + end;
    this.#held = cut === whole.length ? [] : [whole.subarray(cut)];
    return whole.subarray(0, cut);
  }

  /** The stream has ended: the bytes of the event that was never completed. */
  end(): Buffer {
    const rest = Buffer.concat(this.#held);
    this.#held = [];
    return rest;
  }

  #tail(): Buffer {
    const last = this.#held.at(-1) as Buffer;
    if (last.length >= OVERLAP || this.#held.length === 1)
      return last.subarray(Math.max(0, last.length - OVERLAP));
    const joined = Buffer.concat(this.#held);
    this.#held = [joined];
    return joined.subarray(Math.max(0, joined.length - OVERLAP));
  }
}
