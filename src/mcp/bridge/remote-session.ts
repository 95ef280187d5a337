/**
 * Sessions with upstreams across processes. The holder of a session has the upstream's stream, and
 * relays what belongs to a request of another process (the guest) to it. The guest sends frames to
 * the upstream by itself, with the credential of its own request.
 *
 * The holder waits for the guest's answer to each part of a message, so that little waits in the
 * bus, and a guest that does not read holds the upstream back.
 */
import type { Readable } from "node:stream";
import { type BusSubscription, BusUnavailable, type SessionBus } from "./bus.ts";
import type { MessageSink, ReadSink, SinkMessage } from "./message-sink.ts";
import type { BridgeContext } from "./options.ts";
import type { ServerSession } from "./server-session.ts";
import type { Attached, Attachment, SessionHandle } from "./session-handle.ts";
import { newSessionId } from "./session-table.ts";
import { pause, retryMs } from "./waiting.ts";

/** From the guest to the holder. */
type GuestMessage = {
  /** See {@link ServerSession.upstream} and its owner. */
  readonly upstream: string;
  readonly owner: string;
} & (
  | { readonly do: "attach"; readonly attachment: Attachment; readonly sink: string }
  | { readonly do: "detach"; readonly sink: string }
  | { readonly do: "keep"; readonly sink: string }
  | { readonly do: "delete" }
);

/** From the holder to the guest. */
type HolderMessage =
  | {
      readonly do: "part";
      /** Counts the parts, from 1: a part may come again when its answer was lost. */
      readonly n: number;
      readonly text: string;
      /** The message is complete, and this is its {@link SinkMessage.answers}. */
      readonly end?: Pick<SinkMessage, "answers">;
    }
  | { readonly do: "end"; readonly n: number; readonly problem: string }
  | { readonly do: "ask" };

const PART = 256 * 1024;
/** Text that waits for a guest, above which the upstream is held back. */
const MOST_WAITING = 1024 * 1024;
/** Attempts to send a part, and to keep an attachment. */
const MOST_FAILURES = 5;
/** Intervals after which the holder gives up a guest that is silent. */
const SILENT_INTERVALS = 3;

export const holderName = (id: string): string => `server:${id}`;
const guestName = (sink: string): string => `sink:${sink}`;

/** RemoteSink is the holder's end: it sends to the guest. */
class RemoteSink implements MessageSink {
  readonly #context: BridgeContext;
  readonly #name: string;
  readonly #onGone: () => void;
  readonly #waiting: HolderMessage[] = [];
  readonly #paused = new Set<Readable>();
  readonly #closed = new AbortController();
  #cancelSilence: (() => void) | undefined;
  #waitingText = 0;
  #count = 0;
  #sending = false;

  constructor(context: BridgeContext, sink: string, onGone: () => void) {
    this.#context = context;
    this.#name = guestName(sink);
    this.#onGone = onGone;
    this.keep();
  }

  deliver({ text, answers }: SinkMessage): void {
    for (let start = 0; start === 0 || start < text.length; start += PART) {
      const part = text.slice(start, start + PART);
      const end =
        start + PART < text.length ? {} : { end: answers === undefined ? {} : { answers } };
      this.#add({ do: "part", n: (this.#count += 1), text: part, ...end });
    }
  }

  holdBack(source: Readable): void {
    if (this.#waitingText <= MOST_WAITING || source.destroyed) return;
    source.pause();
    this.#paused.add(source);
  }

  end(problem: string): void {
    this.#add({ do: "end", n: (this.#count += 1), problem });
  }

  async isAlive(): Promise<boolean> {
    if (this.#closed.signal.aborted) return false;
    try {
      const ask: HolderMessage = { do: "ask" };
      const answer = await this.#context.bus.send(this.#name, JSON.stringify(ask));
      return answer !== undefined;
    } catch (error) {
      if (error instanceof BusUnavailable) return true;
      throw error;
    }
  }

  /** The guest has said that it still waits. */
  keep(): void {
    this.#cancelSilence?.();
    const { clock, times } = this.#context;
    this.#cancelSilence = clock.after(SILENT_INTERVALS * times.keepAlive, () => this.#gone());
  }

  /** The guest no longer waits. */
  close(): void {
    this.#cancelSilence?.();
    this.#closed.abort();
    this.#waiting.length = 0;
    this.#waitingText = 0;
    this.#resume();
  }

  #gone(): void {
    if (this.#closed.signal.aborted) return;
    this.close();
    this.#onGone();
  }

  #add(message: HolderMessage): void {
    if (this.#closed.signal.aborted) return;
    this.#waiting.push(message);
    if (message.do === "part") this.#waitingText += message.text.length;
    if (this.#sending) return;
    this.#sending = true;
    this.#send().catch((error: unknown) => {
      this.#context.onDefect(error);
      this.#gone();
    });
  }

  async #send(): Promise<void> {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      const isTaken = await this.#deliver(next);
      if (this.#closed.signal.aborted) return;
      if (!isTaken || next.do === "end") return this.#gone();
      this.#waiting.shift();
      if (next.do === "part") this.#waitingText -= next.text.length;
      if (this.#waitingText <= MOST_WAITING) this.#resume();
    }
    this.#sending = false;
  }

  async #deliver(message: HolderMessage): Promise<boolean> {
    const { bus, clock, times, random } = this.#context;
    const text = JSON.stringify(message);
    for (let failures = 0; failures < MOST_FAILURES; failures += 1) {
      try {
        return (await bus.send(this.#name, text)) === "taken";
      } catch (error) {
        if (!(error instanceof BusUnavailable)) throw error;
        await pause(clock, retryMs(times, failures, undefined, random), this.#closed.signal);
        if (this.#closed.signal.aborted) return false;
      }
    }
    return false;
  }

  #resume(): void {
    for (const source of this.#paused) source.resume();
    this.#paused.clear();
  }
}

/** Serves the guests of a session that this process holds. */
export class SessionHolder {
  readonly #context: BridgeContext;
  readonly #session: ServerSession;
  readonly #sinks = new Map<string, RemoteSink>();

  constructor(context: BridgeContext, session: ServerSession) {
    this.#context = context;
    this.#session = session;
  }

  async serve(text: string): Promise<string> {
    const message = JSON.parse(text) as GuestMessage;
    return JSON.stringify(await this.#answer(message));
  }

  async #answer(message: GuestMessage): Promise<Attached> {
    const session = this.#session;
    if (message.upstream !== session.upstream || message.owner !== session.owner) {
      return { kind: "unknown" };
    }
    switch (message.do) {
      case "attach":
        return this.#attach(message.sink, message.attachment);
      case "detach":
        this.#detach(message.sink);
        return { kind: "attached", endpoint: "" };
      case "keep": {
        const sink = this.#sinks.get(message.sink);
        sink?.keep();
        return sink === undefined ? { kind: "unknown" } : { kind: "attached", endpoint: "" };
      }
      case "delete":
        await session.delete();
        return { kind: "attached", endpoint: "" };
    }
  }

  async #attach(name: string, attachment: Attachment): Promise<Attached> {
    const sink = new RemoteSink(this.#context, name, () => this.#detach(name));
    const attached = await this.#session.attach(attachment, sink);
    const isKept = attachment.what === "stream" || attachment.requests.length > 0;
    if (attached.kind === "attached" && isKept) this.#sinks.set(name, sink);
    else sink.close();
    return attached;
  }

  #detach(name: string): void {
    const sink = this.#sinks.get(name);
    if (sink === undefined) return;
    this.#sinks.delete(name);
    sink.close();
    this.#session.detach(sink);
  }
}

interface GuestSink {
  readonly name: string;
  readonly subscription: BusSubscription;
  readonly closed: AbortController;
}

/** RemoteSession is the guest's end: a session that another process holds. */
export class RemoteSession implements SessionHandle {
  readonly #context: BridgeContext;
  readonly #id: string;
  readonly #identity: { readonly upstream: string; readonly owner: string };
  readonly #sinks = new Map<MessageSink, GuestSink>();

  constructor(
    context: BridgeContext,
    id: string,
    identity: { readonly upstream: string; readonly owner: string },
  ) {
    this.#context = context;
    this.#id = id;
    this.#identity = identity;
  }

  async attach(attachment: Attachment, sink: ReadSink): Promise<Attached> {
    const name = newSessionId();
    const isKept = attachment.what === "stream" || attachment.requests.length > 0;
    if (isKept) await this.#listen(name, sink);
    const attached = await this.#send({ do: "attach", attachment, sink: name });
    if (attached.kind !== "attached") this.#close(sink);
    else if (isKept) this.#keep(sink);
    return attached;
  }

  detach(sink: MessageSink): void {
    const guest = this.#close(sink);
    if (guest === undefined) return;
    void this.#send({ do: "detach", sink: guest.name }).catch(this.#context.onDefect);
  }

  async delete(): Promise<void> {
    await this.#send({ do: "delete" });
  }

  async #listen(name: string, sink: ReadSink): Promise<void> {
    const { bus, clock, times } = this.#context;
    const parts: string[] = [];
    const closed = new AbortController();
    let last = 0;
    const subscription = await bus.open(guestName(name), async (text) => {
      const message = JSON.parse(text) as HolderMessage;
      if (message.do === "ask" || message.n <= last) return "taken";
      last = message.n;
      if (message.do === "end") {
        this.#close(sink);
        sink.end(message.problem);
        return "taken";
      }
      parts.push(message.text);
      if (message.end !== undefined)
        sink.deliver({ text: parts.splice(0).join(""), ...message.end });
      // A reader that does not read slows the holder down, but is no failure of the bus.
      await Promise.race([sink.unblocked(), pause(clock, times.bus / 2, closed.signal)]);
      return "taken";
    });
    this.#sinks.set(sink, { name, subscription, closed });
  }

  /** Tells the holder at intervals that the sink waits, and notices when it no longer exists. */
  #keep(sink: MessageSink, failures = 0): void {
    const guest = this.#sinks.get(sink);
    if (guest === undefined) return;
    void this.#stillHeld(sink, guest, failures).catch(this.#context.onDefect);
  }

  async #stillHeld(sink: MessageSink, guest: GuestSink, failures: number): Promise<void> {
    const { clock, times } = this.#context;
    const { signal } = guest.closed;
    await pause(clock, times.keepAlive, signal);
    if (signal.aborted) return;
    const { kind } = await this.#send({ do: "keep", sink: guest.name });
    if (signal.aborted) return;
    const failed = kind === "unavailable" ? failures + 1 : 0;
    if (kind !== "unknown" && failed < MOST_FAILURES) return this.#keep(sink, failed);
    this.#close(sink);
    sink.end("The process that holds the session has gone.");
  }

  #close(sink: MessageSink): GuestSink | undefined {
    const guest = this.#sinks.get(sink);
    this.#sinks.delete(sink);
    guest?.subscription.close();
    guest?.closed.abort();
    return guest;
  }

  async #send(
    message:
      | { readonly do: "attach"; readonly attachment: Attachment; readonly sink: string }
      | { readonly do: "detach" | "keep"; readonly sink: string }
      | { readonly do: "delete" },
  ): Promise<Attached> {
    const { bus }: { readonly bus: SessionBus } = this.#context;
    try {
      const text = JSON.stringify({ ...this.#identity, ...message });
      const answer = await bus.send(holderName(this.#id), text);
      return answer === undefined ? { kind: "unknown" } : (JSON.parse(answer) as Attached);
    } catch (error) {
      if (error instanceof BusUnavailable) return { kind: "unavailable" };
      throw error;
    }
  }
}
