/**
 * Writes server-sent events to an HTTP answer: with comments that keep it open, and with a bound
 * for a reader that does not read.
 */
import type http from "node:http";
import type { Readable } from "node:stream";
import type { Clock } from "../../platform/clock.ts";
import type { BridgeLimits, BridgeTimes } from "./limits.ts";

export interface EventWriterOptions {
  readonly clock: Clock;
  readonly limits: BridgeLimits;
  readonly times: BridgeTimes;
}

export class EventWriter {
  readonly #response: http.ServerResponse;
  readonly #options: EventWriterOptions;
  readonly #paused = new Set<Readable>();
  #cancelKeepAlive: (() => void) | undefined;
  #cancelStalled: (() => void) | undefined;
  #waiting: (() => void)[] = [];

  /** Sends the headers. @param headers in addition to those of every event stream */
  constructor(
    response: http.ServerResponse,
    options: EventWriterOptions,
    headers: http.OutgoingHttpHeaders = {},
  ) {
    this.#response = response;
    this.#options = options;
    response.writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-cache, no-transform",
      "x-accel-buffering": "no",
      ...headers,
    });
    response.flushHeaders();
    response.on("error", () => undefined);
    response.on("drain", () => this.#drained());
    response.on("close", () => this.#closed());
    this.#keepAlive();
  }

  /** Whether what was written waits for the reader. */
  get blocked(): boolean {
    return this.#response.writableNeedDrain && !this.#response.destroyed;
  }

  /** Writes an event; line ends in `data` are kept as the format requires. */
  event(name: string, data: string): void {
    if (this.#response.destroyed || this.#response.writableEnded) return;
    const lines = data.split(/\r\n|\r|\n/);
    this.#response.write(`event: ${name}\n${lines.map((line) => `data: ${line}\n`).join("")}\n`);
    if (this.#response.writableLength > this.#options.limits.unreadBytes) {
      this.#response.destroy();
      return;
    }
    if (this.blocked) this.#expectReader();
  }

  /** Pauses a source of events until the reader has read what was written. */
  holdBack(source: Readable): void {
    if (!this.blocked || source.destroyed) return;
    source.pause();
    this.#paused.add(source);
  }

  /** Resolves when the reader has read what was written, or never will. */
  unblocked(): Promise<void> {
    if (!this.blocked) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  end(): void {
    if (!this.#response.writableEnded) this.#response.end();
  }

  #keepAlive(): void {
    this.#cancelKeepAlive = this.#options.clock.after(this.#options.times.keepAlive, () => {
      if (!this.blocked && !this.#response.writableEnded) this.#response.write(": \n\n");
      this.#keepAlive();
    });
  }

  #expectReader(): void {
    this.#cancelStalled ??= this.#options.clock.after(this.#options.times.stalledReader, () =>
      this.#response.destroy(),
    );
  }

  #drained(): void {
    this.#cancelStalled?.();
    this.#cancelStalled = undefined;
    for (const source of this.#paused) source.resume();
    this.#paused.clear();
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  #closed(): void {
    this.#cancelKeepAlive?.();
    this.#drained();
  }
}
