/**
 * FrameReader splits a client's bytes into HTTP/2 frames (RFC 9113 section 4). The payload of a
 * DATA frame is passed on as it arrives: a frame may be as large as a request's body, and
 * collecting it first would copy the body again with every read of the socket.
 */
import { CLIENT_PREFACE, Flag, FRAME_HEADER_BYTES, FrameType } from "./frames.ts";

/** Receives the frames, in order. */
export interface FrameListener {
  /** A complete frame of any type other than DATA. */
  frame(type: number, flags: number, streamId: number, payload: Buffer): void;
  /** A piece of a DATA frame, never empty. */
  data(streamId: number, bytes: Buffer): void;
  /** The end of a DATA frame. */
  dataEnd(flags: number, streamId: number): void;
}

/** Maximum accepted payload in bytes; the connection announces the same value. */
export const MAX_FRAME_BYTES = 1 << 20;

const EMPTY = Buffer.alloc(0);

export class FrameReader {
  readonly #listener: FrameListener;
  /** An incomplete preface, frame header or frame. */
  #pending: Buffer = EMPTY;
  #prefaceSeen = false;
  #stopped = false;
  /** Remaining bytes of the DATA frame that is being read. */
  #left = 0;
  #flags = 0;
  #streamId = 0;

  constructor(listener: FrameListener) {
    this.#listener = listener;
  }

  /** Stops reading, including bytes that have already arrived. */
  stop(): void {
    this.#stopped = true;
  }

  /**
   * @returns false if the peer violates the supported subset of HTTP/2; no further calls are
   * allowed.
   */
  push(chunk: Buffer): boolean {
    const pending = this.#pending;
    const bytes = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    this.#pending = EMPTY;
    let at = 0;
    if (!this.#prefaceSeen) {
      at = CLIENT_PREFACE.length;
      const expected = CLIENT_PREFACE.subarray(0, bytes.length);
      if (!bytes.subarray(0, at).equals(expected)) return false;
      if (bytes.length < at) {
        this.#pending = bytes;
        return true;
      }
      this.#prefaceSeen = true;
    }
    while (at < bytes.length && !this.#stopped) {
      const next = this.#left > 0 ? this.#pieceOfData(bytes, at) : this.#frame(bytes, at);
      if (next === undefined) return false;
      if (next === at) {
        this.#pending = bytes.subarray(at);
        return true;
      }
      at = next;
    }
    return true;
  }

  /** @returns the offset after the frame, `at` if more bytes are needed, undefined for an error */
  #frame(bytes: Buffer, at: number): number | undefined {
    const start = at + FRAME_HEADER_BYTES;
    if (bytes.length < start) return at;
    const length = bytes.readUIntBE(at, 3);
    if (length > MAX_FRAME_BYTES) return undefined;
    const type = bytes[at + 3] as number;
    const flags = bytes[at + 4] as number;
    const streamId = bytes.readUInt32BE(at + 5) & 0x7fff_ffff;
    if (type === FrameType.DATA && (flags & Flag.PADDED) === 0) {
      this.#left = length;
      this.#flags = flags;
      this.#streamId = streamId;
      if (length === 0) this.#listener.dataEnd(flags, streamId);
      return start;
    }
    const end = start + length;
    if (bytes.length < end) return at;
    const payload = bytes.subarray(start, end);
    if (type !== FrameType.DATA) this.#listener.frame(type, flags, streamId, payload);
    else if (!this.#padded(flags, streamId, payload)) return undefined;
    return end;
  }

  /** Handles a DATA frame with padding (RFC 9113 section 6.1), which is read whole. */
  #padded(flags: number, streamId: number, payload: Buffer): boolean {
    const padding = payload[0] ?? 0;
    if (padding + 1 > payload.length) return false;
    const data = payload.subarray(1, payload.length - padding);
    if (data.length > 0) this.#listener.data(streamId, data);
    this.#listener.dataEnd(flags, streamId);
    return true;
  }

  #pieceOfData(bytes: Buffer, at: number): number {
    const end = Math.min(at + this.#left, bytes.length);
    this.#left -= end - at;
    this.#listener.data(this.#streamId, bytes.subarray(at, end));
    if (this.#left === 0) this.#listener.dataEnd(this.#flags, this.#streamId);
    return end;
  }
}
