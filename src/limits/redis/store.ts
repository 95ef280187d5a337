/**
 * Redis as seen by requests: an answer in time, or none. A circuit decides whether it is used:
 *
 * - `connecting`: at the start, and after a connection broke. An admission waits for it, as long as
 *   it would for an answer: a server that closes idle connections is not an outage.
 * - `up`: asked.
 * - `away`: not asked. Entered when an answer is late, an error is answered, or connecting fails;
 *   one warning. Left when writes were answered quickly a few times in a row and all missed
 *   changes have been written.
 */
import type { Redis } from "ioredis";
import type { Clock } from "../../platform/clock.ts";
import type { Logger } from "../../platform/log.ts";
import { Deadline } from "./deadline.ts";
import { probeKey } from "./keys.ts";
import { backoffMs, connectRedis, reasonOf } from "./redis-client.ts";
import type { RedisOptions } from "./redis-options.ts";
import type { StoreMetrics, StoreOp } from "./store-metrics.ts";

export interface StoreOptions {
  readonly redis: RedisOptions;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: StoreMetrics;
  readonly processId: string;
  readonly admitTimeoutMs: number;
  readonly random: () => number;
  /** Writes everything that the store may have missed. Rejects if that was not possible. */
  readonly catchUp: () => Promise<void>;
  /** Called when the store is used again: the time to write what arrived during catch-up. */
  readonly isUp: () => void;
}

export type Keys = readonly string[];
export type ScriptArguments = readonly (string | number)[];

/** Background writes may take longer than a request waits. */
const SYNC_TIMEOUT_MS = 1_000;
const PROBE_EVERY_MS = 200;
const GOOD_PROBES = 3;
/** Time after which a connection that answers nothing is closed: it may be dead. */
const PROBE_PATIENCE_MS = 10_000;
const PROBE_TTL_MS = 60_000;

interface Pending {
  /** Time of the change, on the monotonic clock. */
  readonly since: number;
  resolve: (reply: readonly number[] | undefined) => void;
}

export class Store {
  readonly #options: StoreOptions;
  readonly #client: Redis;
  readonly #address: string;
  readonly #admits: Deadline<Pending>;
  readonly #syncs: Deadline<Pending>;
  #state: "connecting" | "up" | "away" | "closed" = "connecting";
  #connected = false;
  /** Resolves when `connecting` ends. */
  #connecting = Promise.withResolvers<void>();
  #lastError: unknown;
  #failures = 0;
  #goodProbes = 0;
  #corked = false;
  #awaySince = 0;
  #recovering = false;
  #cancelProbe: (() => void) | undefined;

  constructor(options: StoreOptions) {
    this.#options = options;
    const { clock, redis } = options;
    this.#address = `${redis.host}:${redis.port}`;
    this.#admits = new Deadline(clock, options.admitTimeoutMs, () =>
      this.#late(options.admitTimeoutMs),
    );
    this.#syncs = new Deadline(clock, SYNC_TIMEOUT_MS, () => this.#late(SYNC_TIMEOUT_MS));
    options.metrics.up(false);
    this.#client = connectRedis(redis, () => backoffMs(this.#failures++, options.random));
    this.#client.on("connect", () => (this.#lastError = undefined));
    this.#client.on("error", (error: unknown) => (this.#lastError = error));
    this.#client.on("ready", () => this.#onReady());
    this.#client.on("close", () => this.#onClose());
    // Only a permanent error ends it, such as invalid certificates.
    this.#client.on("end", () => this.#away(reasonOf(this.#lastError)));
  }

  /** False: decide in memory, without asking. */
  get asked(): boolean {
    return this.#state === "up" || this.#state === "connecting";
  }

  get up(): boolean {
    return this.#state === "up";
  }

  /**
   * Asks for an admission. `write` creates keys and arguments at the moment of sending. Returns
   * undefined if there is no answer in time; `late` receives an answer that arrives afterwards.
   */
  async admit(
    write: () => { readonly keys: Keys; readonly args: ScriptArguments },
    late: (reply: readonly number[]) => void,
  ): Promise<readonly number[] | undefined> {
    const pending = this.#pending();
    if (this.#state === "connecting") {
      this.#admits.add(pending);
      await this.#connecting.promise;
    }
    if (this.#state !== "up") {
      this.#admits.done(pending);
      return undefined;
    }
    this.#cork();
    const { keys, args } = write();
    return this.#run(
      "admit",
      pending,
      this.#admits,
      this.#client.svcAdmit(keys.length, ...keys, ...args),
      late,
    );
  }

  /** Writes our knowledge. Returns undefined if it is unknown whether the store received it. */
  sync(keys: Keys, args: ScriptArguments): Promise<readonly number[] | undefined> {
    this.#cork();
    return this.#run(
      "sync",
      this.#pending(),
      this.#syncs,
      this.#client.svcSync(keys.length, ...keys, ...args),
    );
  }

  close(): void {
    this.#state = "closed";
    this.#cancelProbe?.();
    this.#connecting.resolve();
    this.#giveUpPending();
    this.#client.disconnect();
  }

  #pending(): Pending {
    return { since: this.#options.clock.monotonic(), resolve: () => {} };
  }

  /**
   * Commands of one event are sent in one write, because the system call is a large part of the
   * cost. Nothing is delayed.
   */
  #cork(): void {
    // Absent until the first connection attempt, although the types do not show it.
    const stream = this.#client.stream as Redis["stream"] | undefined;
    if (this.#corked || stream === undefined) return;
    this.#corked = true;
    stream.cork();
    process.nextTick(() => {
      this.#corked = false;
      stream.uncork();
    });
  }

  #run(
    op: StoreOp,
    pending: Pending,
    deadline: Deadline<Pending>,
    answer: Promise<readonly number[]>,
    late?: (reply: readonly number[]) => void,
  ): Promise<readonly number[] | undefined> {
    const { clock, metrics } = this.#options;
    return new Promise((resolve) => {
      pending.resolve = resolve;
      const answered = (reply: readonly number[]): void => {
        metrics.answered(op, clock.monotonic() - pending.since);
        if (deadline.done(pending)) resolve(reply);
        else late?.(reply);
      };
      const failed = (error: unknown): void => {
        const waited = deadline.done(pending);
        this.#onError(error);
        if (waited) resolve(undefined);
      };
      deadline.add(pending);
      answer.then(answered, failed);
    });
  }

  /**
   * An error answer of Redis ends its use. Errors of the connection are reported by the
   * connection's own events.
   */
  #onError(error: unknown): void {
    if (error instanceof Error && error.name === "ReplyError") this.#away(reasonOf(error));
  }

  #onReady(): void {
    this.#connected = true;
    // Redis has refused the database number, and commands would go to another database.
    if (this.#lastError !== undefined) {
      this.#away(reasonOf(this.#lastError));
      this.#client.disconnect(true);
      return;
    }
    if (this.#state === "connecting") void this.#recover();
  }

  #onClose(): void {
    this.#connected = false;
    if (this.#state === "connecting") {
      this.#away(
        this.#lastError === undefined ? "it closed the connection" : reasonOf(this.#lastError),
      );
    } else if (this.#state === "up") {
      this.#state = "connecting";
      this.#connecting = Promise.withResolvers();
      this.#giveUpPending();
    }
    this.#goodProbes = 0;
  }

  #giveUpPending(): void {
    for (const pending of [...this.#admits.takeAll(), ...this.#syncs.takeAll()])
      pending.resolve(undefined);
  }

  #late(ms: number): void {
    this.#away(`no answer in ${ms} ms`);
    // The store was already unavailable: only its catch-up is late.
    this.#giveUpPending();
  }

  #away(reason: string): void {
    if (this.#state === "away" || this.#state === "closed") return;
    const { clock, log, metrics } = this.#options;
    this.#state = "away";
    this.#goodProbes = 0;
    this.#awaySince = clock.monotonic();
    metrics.up(false);
    log.warn(
      { store: this.#address, reason },
      "the store of limits is unavailable: limits are checked in this process's memory " +
        "until it is back",
    );
    this.#connecting.resolve();
    this.#giveUpPending();
    this.#probeSoon();
  }

  #probeSoon(): void {
    this.#cancelProbe?.();
    this.#cancelProbe = this.#options.clock.after(PROBE_EVERY_MS, () => {
      this.#cancelProbe = undefined;
      if (this.#connected && !this.#recovering) void this.#recover();
      else this.#probeSoon();
    });
  }

  /** Probes once; after enough good probes, catches up and switches to up. Repeats until then. */
  async #recover(): Promise<void> {
    this.#recovering = true;
    const good = await this.#probe();
    this.#goodProbes = good ? this.#goodProbes + 1 : 0;
    const enough = this.#state === "connecting" ? 1 : GOOD_PROBES;
    if (this.#goodProbes >= enough && (await this.#caughtUp()) && this.#connected) this.#isUp();
    this.#recovering = false;
    if (this.#state === "away") this.#probeSoon();
    else if (this.#state === "connecting" && this.#connected)
      this.#away(`no answer in ${this.#options.admitTimeoutMs} ms`);
  }

  async #caughtUp(): Promise<boolean> {
    try {
      await this.#options.catchUp();
      return true;
    } catch {
      this.#goodProbes = 0;
      return false;
    }
  }

  #isUp(): void {
    if (this.#state === "closed" || this.#state === "up") return;
    const { clock, log, metrics } = this.#options;
    if (this.#state === "away") {
      log.info(
        { store: this.#address, awayMs: Math.round(clock.monotonic() - this.#awaySince) },
        "the store of limits is used again",
      );
    }
    this.#state = "up";
    this.#failures = 0;
    metrics.up(true);
    this.#connecting.resolve();
    this.#options.isUp();
  }

  /** Returns whether a write was answered as quickly as requests need. */
  async #probe(): Promise<boolean> {
    const { clock, admitTimeoutMs, metrics, processId } = this.#options;
    const since = clock.monotonic();
    let slow = false;
    const quick = new Deadline<unknown>(clock, admitTimeoutMs, () => (slow = true));
    const patience = new Deadline<unknown>(clock, PROBE_PATIENCE_MS, () =>
      this.#client.disconnect(true),
    );
    quick.add(quick);
    patience.add(patience);
    try {
      await this.#client.svcProbe(1, probeKey(processId), PROBE_TTL_MS);
      metrics.answered("probe", clock.monotonic() - since);
      return !slow;
    } catch (error) {
      if (this.#state === "connecting" && this.#connected) this.#away(reasonOf(error));
      return false;
    } finally {
      quick.takeAll();
      patience.takeAll();
    }
  }
}
