/**
 * FairShare divides the work of this process among its callers while its event loop is busy. Work
 * is measured, not estimated: the time that the process has spent on the requests of each caller,
 * plus a price per byte of each body for moving it here and in Envoy. Both decay, so that a share
 * covers about the last second.
 *
 * The amount of work to divide depends on the machine and is adapted: it decreases while the event
 * loop is busy, and increases otherwise. A single caller may use all of the process. Several
 * callers have max-min fair shares: callers with small demand get all of it, and the others get
 * equal shares. A request of a caller above its share waits for a second at most, and is then
 * refused.
 */
import { Counter, Gauge, type Registry } from "prom-client";
import type { Clock } from "../../platform/clock.ts";

export interface FairShareOptions {
  readonly clock: Clock;
  readonly registry: Registry;
  /**
   * Returns the utilization of the process since the last call: 0 for idle, 1 for always busy, more
   * if requests wait for another reason.
   */
  readonly utilization: () => number;
}

/** Time constant of the decay of work, in milliseconds: older work counts for 1/e. */
const MEMORY_MS = 1_000;

/**
 * Utilization of the event loop above which the capacity decreases, and below which it increases.
 */
const BUSY = { above: 0.9, below: 0.8 };

/** Time constant of the average of the utilization, so that one long step delays nobody. */
const UTILIZATION_MEMORY_MS = 250;

/** Minimum and maximum work of all callers, in milliseconds per second. */
const CAPACITY_MS = { least: 250, most: 10_000 };

/** Factor by which the capacity falls or rises in a round. */
const CAPACITY_STEP = 1.05;

/** Price of moving a body from the client through Envoy, this process and Envoy to a provider. */
const MS_PER_BYTE = 8 / (1024 * 1024);

/** Interval at which shares are computed and waiting requests are admitted. */
const ROUND_MS = 50;

/** Maximum wait of a request whose caller is above its share. */
const LONGEST_WAIT_MS = 1_000;

/** Maximum number of waiting requests: of one caller, and of all. */
const MOST_WAITING = { caller: 4_096, total: 8_192 };

/** Work below which a caller is forgotten, in milliseconds. */
const NEGLIGIBLE_MS = 0.01;

interface Account {
  /** Milliseconds of work, as of `at`. */
  work: number;
  /** Number of requests that caused this work, as of `at`. */
  requests: number;
  at: number;
  /** Number of waiting requests. */
  waiting: number;
}

interface Waiter {
  readonly account: Account;
  readonly bytes: number;
  readonly until: number;
  readonly answer: (admitted: boolean) => void;
}

export class FairShare {
  readonly #clock: Clock;
  readonly #readUtilization: () => number;
  readonly #accounts = new Map<string, Account>();
  readonly #waits: Counter;
  /** Account of all callers together. */
  readonly #total: Account;
  /** Oldest first. */
  #waiters: Waiter[] = [];
  #roundIsSet = false;
  #utilization = 0;
  #capacity = CAPACITY_MS.most;
  /** Milliseconds that each caller may have used; infinite for a single caller. */
  #share = Number.POSITIVE_INFINITY;
  #dividedAt: number;

  constructor({ clock, registry, utilization }: FairShareOptions) {
    this.#clock = clock;
    this.#readUtilization = utilization;
    this.#dividedAt = clock.monotonic();
    this.#total = newAccount(clock.monotonic());
    const gauge: Gauge = new Gauge({
      name: "svc_request_work_ratio",
      help:
        "Seconds of work for requests in each second, including the cost of the bytes that " +
        "they move.",
      registers: [registry],
      collect: () => {
        decay(this.#total, clock.monotonic());
        gauge.set(this.#total.work / MEMORY_MS);
      },
    });
    this.#waits = new Counter({
      name: "svc_fair_share_waits_total",
      help: "Requests whose caller was above its share of the process, by outcome.",
      labelNames: ["outcome"],
      registers: [registry],
    });
    for (const outcome of ["admitted", "refused"]) this.#waits.inc({ outcome }, 0);
  }

  /** Adds work done for a caller, in milliseconds. */
  charge(caller: string, ms: number): void {
    this.#add(this.#account(caller, this.#clock.monotonic()), ms);
  }

  /** Adds the price of a body whose size was unknown when its request was admitted. */
  chargeBytes(caller: string, bytes: number): void {
    this.charge(caller, bytes * MS_PER_BYTE);
  }

  /**
   * Admits a request and charges its body. Returns undefined if the request may proceed at once,
   * else a promise: true when its turn has come, false if it must be refused, because its caller
   * was above its share for too long or has too many waiting requests.
   *
   * @param bytes size of its body, 0 if it is not known yet
   */
  enter(caller: string, bytes: number): Promise<boolean> | undefined {
    const now = this.#clock.monotonic();
    if (now - this.#dividedAt >= ROUND_MS) this.#divide(now);
    const account = this.#account(caller, now);
    if (account.waiting === 0 && account.work <= this.#share) {
      this.#admit(account, bytes);
      return undefined;
    }
    if (account.waiting >= MOST_WAITING.caller || this.#waiters.length >= MOST_WAITING.total) {
      this.#waits.inc({ outcome: "refused" });
      return Promise.resolve(false);
    }
    account.waiting += 1;
    return new Promise((resolve) => {
      this.#waiters.push({ account, bytes, until: now + LONGEST_WAIT_MS, answer: resolve });
      if (!this.#roundIsSet) this.#setRound();
    });
  }

  /**
   * Admits as many requests of each caller as fit into its share, by the cost of its requests so
   * far, and refuses those that have waited too long.
   */
  #round(): void {
    const now = this.#clock.monotonic();
    this.#roundIsSet = false;
    this.#divide(now);
    const room = new Map<Account, number>();
    this.#waiters = this.#waiters.filter((waiter) => {
      const { account, bytes, until, answer } = waiter;
      const left = room.get(account) ?? this.#share - account.work;
      const admitted = left > 0;
      if (!admitted && now < until) return true;
      if (admitted) {
        room.set(account, left - costPerRequest(account) - bytes * MS_PER_BYTE);
        this.#admit(account, bytes);
      }
      account.waiting -= 1;
      this.#waits.inc({ outcome: admitted ? "admitted" : "refused" });
      answer(admitted);
      return false;
    });
    if (this.#waiters.length > 0) this.#setRound();
  }

  #setRound(): void {
    this.#roundIsSet = true;
    this.#clock.after(ROUND_MS, () => this.#round());
  }

  /** Divides the capacity, from the smallest demand to the largest. */
  #divide(now: number): void {
    this.#adjust(now);
    this.#dividedAt = now;
    const wants: number[] = [];
    for (const [caller, account] of this.#accounts) {
      decay(account, now);
      if (account.work < NEGLIGIBLE_MS && account.waiting === 0) this.#accounts.delete(caller);
      else wants.push(account.work);
    }
    this.#share = wants.length < 2 ? Number.POSITIVE_INFINITY : fairShare(wants, this.#capacity);
  }

  /** Adapts the amount of work to divide. */
  #adjust(now: number): void {
    const memory = Math.exp((this.#dividedAt - now) / UTILIZATION_MEMORY_MS);
    this.#utilization = this.#utilization * memory + this.#readUtilization() * (1 - memory);
    decay(this.#total, now);
    if (this.#utilization > BUSY.above) {
      const less = Math.min(this.#capacity, this.#total.work) / CAPACITY_STEP;
      this.#capacity = Math.max(CAPACITY_MS.least, less);
    } else if (this.#utilization < BUSY.below) {
      this.#capacity = Math.min(CAPACITY_MS.most, this.#capacity * CAPACITY_STEP);
    }
  }

  #account(caller: string, now: number): Account {
    let account = this.#accounts.get(caller);
    if (account === undefined) {
      account = newAccount(now);
      this.#accounts.set(caller, account);
    } else {
      decay(account, now);
    }
    return account;
  }

  #admit(account: Account, bytes: number): void {
    account.requests += 1;
    this.#add(account, bytes * MS_PER_BYTE);
  }

  #add(account: Account, ms: number): void {
    account.work += ms;
    decay(this.#total, account.at);
    this.#total.work += ms;
  }
}

/** Work may be known of requests that entered before the account was forgotten. */
function costPerRequest({ work, requests }: Account): number {
  return requests > 0 ? work / requests : 0;
}

function newAccount(at: number): Account {
  return { work: 0, requests: 0, at, waiting: 0 };
}

function decay(account: Account, now: number): void {
  const factor = Math.exp((account.at - now) / MEMORY_MS);
  account.work *= factor;
  account.requests *= factor;
  account.at = now;
}

/**
 * Returns the share of the caller with the largest demand: the max-min fair share of the capacity.
 */
function fairShare(wants: number[], capacity: number): number {
  wants.sort((a, b) => a - b);
  let left = capacity;
  let share = left;
  for (const [index, want] of wants.entries()) {
    share = left / (wants.length - index);
    if (want > share) break;
    left -= want;
  }
  return share;
}
