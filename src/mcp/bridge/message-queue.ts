/**
 * Messages of a server that wait until their client opens a stream. A full queue drops its oldest
 * notifications; requests are kept, because a server waits for their answers.
 */
import type { BridgeLimits } from "./limits.ts";
import type { SinkMessage } from "./message-sink.ts";

interface QueuedMessage extends SinkMessage {
  readonly isRequest: boolean;
}

export class MessageQueue {
  readonly #limits: Pick<BridgeLimits, "queuedMessages" | "queuedBytes">;
  readonly #onDrop: () => void;
  #messages: QueuedMessage[] = [];
  #bytes = 0;

  constructor(limits: Pick<BridgeLimits, "queuedMessages" | "queuedBytes">, onDrop: () => void) {
    this.#limits = limits;
    this.#onDrop = onDrop;
  }

  /** @returns false if there are more requests than the queue holds */
  add(message: SinkMessage, isRequest: boolean): boolean {
    this.#messages.push({ ...message, isRequest });
    this.#bytes += message.text.length;
    while (this.#isFull) {
      const oldest = this.#messages.findIndex((queued) => !queued.isRequest);
      if (oldest < 0) return false;
      this.#bytes -= this.#messages[oldest]?.text.length ?? 0;
      this.#messages.splice(oldest, 1);
      this.#onDrop();
    }
    return true;
  }

  /** Removes and returns the messages in order. @param what all, or the requests alone */
  take(what: "all" | "requests"): readonly SinkMessage[] {
    const taken = this.#messages.filter(({ isRequest }) => isRequest || what === "all");
    this.#messages = what === "all" ? [] : this.#messages.filter(({ isRequest }) => !isRequest);
    this.#bytes = this.#messages.reduce((sum, { text }) => sum + text.length, 0);
    return taken;
  }

  get #isFull(): boolean {
    const { queuedMessages, queuedBytes } = this.#limits;
    return this.#messages.length > queuedMessages || this.#bytes > queuedBytes;
  }
}
