/**
 * The bus of several replicas: Redis publish/subscribe. A process subscribes to a channel for each
 * session that it holds, and to one for the answers to what it has sent. Nothing is stored.
 */
import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import { backoffMs, connectRedis, reasonOf } from "../../limits/redis/redis-client.ts";
import type { RedisOptions } from "../../limits/redis/redis-options.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Logger } from "../../platform/log.ts";
import { type BusHandler, type BusSubscription, BusUnavailable, type SessionBus } from "./bus.ts";

export interface RedisBusOptions {
  readonly redis: RedisOptions;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly onDefect: (error: unknown) => void;
  /** Longest wait for an answer, in milliseconds. @defaultValue 5000 */
  readonly timeoutMs?: number;
}

/** A message to the holder of a name. */
interface Envelope {
  /** Process that waits for the answer. */
  readonly from: string;
  readonly n: number;
  readonly body: string;
}

interface Reply {
  readonly n: number;
  /** Absent if the handler has failed. */
  readonly body?: string;
}

const PREFIX = "svc:mcp:";
const TIMEOUT_MS = 5_000;
/** Interval of a message to ourselves, which finds a connection that is open but dead. */
const BEAT_MS = 10_000;

export class RedisBus implements SessionBus {
  readonly #options: RedisBusOptions;
  readonly #timeoutMs: number;
  readonly #self = randomUUID();
  readonly #publisher: RedisConnection;
  readonly #subscriber: RedisConnection;
  readonly #handlers = new Map<string, BusHandler>();
  readonly #pending = new Map<number, (reply: Reply | undefined) => void>();
  #count = 0;
  #isReported = false;
  #cancelBeat: (() => void) | undefined;

  constructor(options: RedisBusOptions) {
    this.#options = options;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    const events = {
      onReady: () => this.#connected(),
      onError: (error: unknown) => this.#report(error),
    };
    this.#publisher = new RedisConnection({ ...options, ...events });
    this.#subscriber = new RedisConnection({
      ...options,
      ...events,
      prepare: (redis) => redis.subscribe(...this.#channels()),
    });
    this.#subscriber.redis.on("message", (channel: string, text: string) => {
      this.#receive(channel, text);
    });
    this.#handlers.set(this.#beatName, () => "");
    this.#beat();
  }

  async open(name: string, handler: BusHandler): Promise<BusSubscription> {
    this.#handlers.set(name, handler);
    await this.#subscribe(channelOf(name));
    return {
      close: () => {
        if (this.#handlers.get(name) !== handler) return;
        this.#handlers.delete(name);
        if (!this.#subscriber.isReady) return;
        this.#subscriber.redis.unsubscribe(channelOf(name)).catch(() => undefined);
      },
    };
  }

  async send(name: string, message: string): Promise<string | undefined> {
    const local = this.#handlers.get(name);
    return local === undefined ? this.#ask(name, message) : local(message);
  }

  close(): Promise<void> {
    this.#cancelBeat?.();
    this.#handlers.clear();
    for (const settle of this.#pending.values()) settle(undefined);
    this.#publisher.close();
    this.#subscriber.close();
    return Promise.resolve();
  }

  get #beatName(): string {
    return `beat:${this.#self}`;
  }

  #channels(): readonly string[] {
    return [replyChannel(this.#self), ...[...this.#handlers.keys()].map(channelOf)];
  }

  get #isReady(): boolean {
    return this.#publisher.isReady && this.#subscriber.isReady;
  }

  #connected(): void {
    if (this.#isReady) this.#isReported = false;
  }

  /** One warning for each outage. */
  #report(error: unknown): void {
    if (this.#isReported) return;
    this.#isReported = true;
    this.#options.log.warn(
      { reason: reasonOf(error) },
      "MCP sessions that other replicas hold cannot be reached over Redis",
    );
  }

  /** Waits at most for the deadline: what is not subscribed is subscribed after a reconnect. */
  async #subscribe(channel: string): Promise<void> {
    if (!this.#subscriber.isReady) return;
    const subscribed = this.#subscriber.redis.subscribe(channel).catch((error: unknown) => {
      this.#report(error);
      this.#subscriber.renew();
    });
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const cancel = this.#options.clock.after(this.#timeoutMs, resolve);
    await Promise.race([subscribed, late]);
    cancel();
  }

  async #ask(name: string, body: string): Promise<string | undefined> {
    if (!this.#isReady) {
      throw new BusUnavailable("there is no connection to Redis");
    }
    const { clock } = this.#options;
    const n = (this.#count += 1);
    const replied = Promise.withResolvers<Reply | undefined>();
    this.#pending.set(n, replied.resolve);
    const cancel = clock.after(this.#timeoutMs, () => replied.resolve(undefined));
    const envelope: Envelope = { from: this.#self, n, body };
    const unheard = Promise.withResolvers<"unheard">();
    this.#publisher.redis.publish(channelOf(name), JSON.stringify(envelope)).then(
      (receivers) => (receivers === 0 ? unheard.resolve("unheard") : undefined),
      () => replied.resolve(undefined),
    );
    try {
      const result = await Promise.race([replied.promise, unheard.promise]);
      if (result === "unheard") {
        // After an outage the holder may not have subscribed again yet.
        const settledMs = clock.monotonic() - this.#publisher.readySince;
        if (settledMs >= this.#timeoutMs) return undefined;
        throw new BusUnavailable("the connection to Redis is new");
      }
      if (result?.body === undefined) throw new BusUnavailable("there was no answer");
      return result.body;
    } finally {
      cancel();
      this.#pending.delete(n);
    }
  }

  #receive(channel: string, text: string): void {
    try {
      if (channel === replyChannel(this.#self)) {
        const reply = JSON.parse(text) as Reply;
        this.#pending.get(reply.n)?.(reply);
        return;
      }
      const handler = this.#handlers.get(channel.slice(PREFIX.length));
      if (handler !== undefined) this.#answer(handler, JSON.parse(text) as Envelope);
    } catch (error) {
      this.#options.onDefect(error);
    }
  }

  #answer(handler: BusHandler, { from, n, body }: Envelope): void {
    const { onDefect } = this.#options;
    void Promise.resolve()
      .then(() => handler(body))
      .catch((error: unknown) => {
        onDefect(error);
        return undefined;
      })
      .then((answer) => {
        if (!this.#publisher.isReady) return undefined;
        const reply: Reply = { n, ...(answer !== undefined && { body: answer }) };
        return this.#publisher.redis.publish(replyChannel(from), JSON.stringify(reply));
      })
      // The sender's deadline decides.
      .catch(() => undefined);
  }

  #beat(): void {
    this.#cancelBeat = this.#options.clock.after(BEAT_MS, () => {
      this.#beat();
      this.#publisher.check();
      this.#subscriber.check();
      if (!this.#isReady) return;
      this.#ask(this.#beatName, "").then(
        (answer) => (answer === undefined ? this.#subscriber.renew() : undefined),
        () => {
          this.#publisher.renew();
          this.#subscriber.renew();
        },
      );
    });
  }
}

const channelOf = (name: string): string => `${PREFIX}${name}`;
const replyChannel = (process: string): string => `${PREFIX}reply:${process}`;

interface ConnectionOptions extends Pick<RedisBusOptions, "redis" | "clock" | "random"> {
  /** Prepares a new connection. */
  readonly prepare?: (redis: Redis) => Promise<unknown>;
  readonly onReady: () => void;
  readonly onError: (error: unknown) => void;
}

/** One connection, which is made again when it breaks. */
class RedisConnection {
  readonly redis: Redis;
  #failures = 0;
  #isReady = false;
  #wasStuck = false;
  #readySince = Number.NEGATIVE_INFINITY;

  constructor({ redis, clock, random, prepare, onReady, onError }: ConnectionOptions) {
    this.redis = connectRedis(redis, () => backoffMs(this.#failures++, random));
    // Prepared here, where a failure is noticed.
    this.redis.options.autoResubscribe = false;
    const ready = (): void => {
      if (this.redis.status !== "ready") return;
      this.#failures = 0;
      this.#isReady = true;
      this.#readySince = clock.monotonic();
      onReady();
    };
    this.redis.on("ready", () => {
      if (prepare === undefined) ready();
      else {
        prepare(this.redis).then(ready, (error: unknown) => {
          onError(error);
          this.renew();
        });
      }
    });
    this.redis.on("close", () => (this.#isReady = false));
    this.redis.on("error", onError);
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  /** Time of the clock at which the connection was made. */
  get readySince(): number {
    return this.#readySince;
  }

  /** Called at intervals: a connection that is not ready for a whole one is made again. */
  check(): void {
    const isStuck =
      !this.#isReady && ["connecting", "connect", "ready"].includes(this.redis.status);
    if (isStuck && this.#wasStuck) this.renew();
    this.#wasStuck = isStuck && !this.#wasStuck;
  }

  /** Makes a new connection, after a wait that grows until one is ready. */
  renew(): void {
    this.#isReady = false;
    this.redis.disconnect(true);
  }

  close(): void {
    this.#isReady = false;
    this.redis.disconnect();
  }
}
