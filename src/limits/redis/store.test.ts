/** The circuit, with a client whose answers and events the test decides. */
import { EventEmitter } from "node:events";
import { Registry } from "prom-client";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { CapturedLog, FakeClock } from "../../platform/testing.ts";
import { NOON, pass, rounds } from "../testing.ts";
import * as client from "./redis-client.ts";
import { parseRedisSettings } from "./redis-options.ts";
import { Store } from "./store.ts";
import { StoreMetrics } from "./store-metrics.ts";

vi.mock("./redis-client.ts", { spy: true });

const TIMEOUT_MS = 40;
const PROBE_EVERY_MS = 200;

type Answered = PromiseWithResolvers<readonly number[]>;

/** A command that was sent, and its answer. */
interface Sent extends Answered {
  readonly words: readonly unknown[];
}

class FakeClient extends EventEmitter {
  readonly admits: Sent[] = [];
  readonly syncs: Sent[] = [];
  readonly probes: Sent[] = [];
  readonly stream = { cork: vi.fn<() => void>(), uncork: vi.fn<() => void>() };
  readonly disconnect = vi.fn<(reconnect?: boolean) => void>();

  svcAdmit = (...words: readonly unknown[]) => send(this.admits, words);
  svcSync = (...words: readonly unknown[]) => send(this.syncs, words);
  svcProbe = (...words: readonly unknown[]) => send(this.probes, words);
}

function send(list: Sent[], words: readonly unknown[]): Promise<readonly number[]> {
  const sent = { words, ...Promise.withResolvers<readonly number[]>() };
  list.push(sent);
  return sent.promise;
}

let clock: FakeClock;
let redis: FakeClient;
let log: CapturedLog;
let registry: Registry;
let store: Store;
let catchUp: ReturnType<typeof vi.fn<() => Promise<void>>>;
let isUp: ReturnType<typeof vi.fn<() => void>>;

beforeEach(() => {
  clock = new FakeClock(NOON);
  redis = new FakeClient();
  log = new CapturedLog();
  registry = new Registry();
  catchUp = vi.fn<() => Promise<void>>(() => Promise.resolve());
  isUp = vi.fn<() => void>();
  vi.mocked(client.connectRedis)
    .mockReset()
    .mockReturnValue(redis as never);
  store = new Store({
    redis: parseRedisSettings({ url: "redis://store.test:6380" }),
    clock,
    log: log.log,
    metrics: new StoreMetrics(registry),
    processId: "p|1",
    admitTimeoutMs: TIMEOUT_MS,
    random: () => 0,
    catchUp,
    isUp,
  });
});

const connected = (): void => {
  redis.emit("connect");
  redis.emit("ready");
};

/** Answers the latest probe. */
async function probed(): Promise<void> {
  redis.probes.at(-1)?.resolve([]);
  await rounds();
}

async function used(): Promise<void> {
  connected();
  await probed();
  expect(store.up).toBe(true);
}

/** Lets the next probe be sent, and answers it. */
async function probedNext(): Promise<void> {
  const before = redis.probes.length;
  clock.advance(PROBE_EVERY_MS);
  expect(redis.probes).toHaveLength(before + 1);
  await probed();
}

async function away(): Promise<void> {
  await used();
  const synced = store.sync([], []);
  redis.syncs.at(-1)?.reject(replyError("OOM command not allowed"));
  await synced;
  expect(store.asked).toBe(false);
}

function replyError(message: string): Error {
  const error = new Error(message);
  error.name = "ReplyError";
  return error;
}

const metric = async (name: string): Promise<unknown> =>
  (await registry.getSingleMetric(name)?.get())?.values[0]?.value;

const reasons = (): unknown[] =>
  log.lines.filter(({ level }) => level === 40).map(({ reason }) => reason);

/** An admission, and what has become of it. */
function admission(): {
  readonly write: ReturnType<typeof vi.fn>;
  readonly late: ReturnType<typeof vi.fn>;
  readonly done: () => unknown;
} {
  const write = vi.fn(() => ({ keys: ["k1", "k2"], args: [1, "a"] }));
  const late = vi.fn();
  let outcome: unknown = "waiting";
  void store.admit(write, late).then((reply) => (outcome = reply));
  return { write, late, done: () => outcome };
}

describe("at the start", () => {
  test("the store is asked, and used once a write was answered and all was caught up with", async () => {
    expect([store.asked, store.up, await metric("svc_store_up")]).toEqual([true, false, 0]);
    connected();
    expect(redis.probes.map(({ words }) => words)).toEqual([[1, "svc:{probe/p%7C1}", 60_000]]);
    expect(catchUp).not.toHaveBeenCalled();
    await probed();
    expect([store.asked, store.up, await metric("svc_store_up")]).toEqual([true, true, 1]);
    expect([catchUp.mock.calls.length, isUp.mock.calls.length]).toEqual([1, 1]);
    expect(log.lines).toEqual([]);
    expect(clock.pending).toEqual([]);
  });

  test("an admission waits for it, and is written when it is sent", async () => {
    const { write, done } = admission();
    await rounds();
    expect(write).not.toHaveBeenCalled();
    await used();
    expect(redis.admits.map(({ words }) => words)).toEqual([[2, "k1", "k2", 1, "a"]]);
    redis.admits[0]?.resolve([7]);
    await rounds();
    expect(done()).toEqual([7]);
  });

  test("an admission waits for no longer than for an answer, and is never sent then", async () => {
    const { write, done } = admission();
    await pass(clock, TIMEOUT_MS - 10);
    expect(done()).toBe("waiting");
    await pass(clock, 10);
    expect(done()).toBeUndefined();
    expect(write).not.toHaveBeenCalled();
    expect(reasons()).toEqual(["no answer in 40 ms"]);
  });

  test("a connection that is refused is an outage, with the reason", async () => {
    const { done } = admission();
    redis.emit("error", new Error("connect ECONNREFUSED"));
    redis.emit("close");
    await rounds();
    expect(done()).toBeUndefined();
    expect(reasons()).toEqual(["connect ECONNREFUSED"]);
    expect(log.lines[0]).toMatchObject({ store: "store.test:6380" });
  });

  test("a connection that is closed without a reason is an outage", () => {
    redis.emit("error", new Error("of an earlier attempt"));
    redis.emit("connect");
    redis.emit("close");
    expect(reasons()).toEqual(["it closed the connection"]);
  });

  test("an error that is permanent is an outage", () => {
    redis.emit("error", new Error("self-signed certificate"));
    redis.emit("end");
    expect(reasons()).toEqual(["self-signed certificate"]);
  });

  test("a database that does not exist is an outage, and the connection is made anew", () => {
    redis.emit("connect");
    redis.emit("error", replyError("ERR DB index is out of range"));
    redis.emit("ready");
    expect(reasons()).toEqual(["ERR DB index is out of range"]);
    expect(redis.disconnect).toHaveBeenCalledWith(true);
    expect(redis.probes).toEqual([]);
  });

  test("a probe that is refused is an outage", async () => {
    connected();
    redis.probes[0]?.reject(replyError("NOPERM no"));
    await rounds();
    expect(reasons()).toEqual([expect.stringContaining("NOPERM")]);
  });

  test("a probe that is slow is an outage", async () => {
    connected();
    await pass(clock, TIMEOUT_MS);
    await probed();
    expect(store.up).toBe(false);
    expect(reasons()).toEqual(["no answer in 40 ms"]);
  });

  test("there is one probe at a time, even if an admission gave up meanwhile", async () => {
    connected();
    admission();
    await pass(clock, TIMEOUT_MS);
    expect(reasons()).toEqual(["no answer in 40 ms"]);
    await pass(clock, 3 * PROBE_EVERY_MS, PROBE_EVERY_MS);
    expect(redis.probes).toHaveLength(1);
    await probed();
    await probedNext();
    expect(store.up).toBe(false);
  });

  test("a connection that breaks under the probe is told once", async () => {
    connected();
    redis.emit("close");
    redis.probes[0]?.reject(new Error("Connection is closed."));
    await rounds();
    expect(reasons()).toEqual(["it closed the connection"]);
  });
});

describe("while it is used", () => {
  beforeEach(used);

  test("an answer that comes late is given to who cares, and measured", async () => {
    const { late, done } = admission();
    await pass(clock, TIMEOUT_MS);
    expect(done()).toBeUndefined();
    expect(late).not.toHaveBeenCalled();
    redis.admits[0]?.resolve([0, 1]);
    await rounds();
    expect(late).toHaveBeenCalledExactlyOnceWith([0, 1]);
    const text = await registry.metrics();
    expect(text).toContain('svc_store_seconds_sum{op="admit"} 0.04');
    expect(text).toContain('svc_store_seconds_count{op="probe"} 1');
    expect(text).toContain('svc_store_seconds_sum{op="probe"} 0\n');
  });

  test("an answer in time is given to its admission alone", async () => {
    const { late, done } = admission();
    redis.admits[0]?.resolve([1]);
    await rounds();
    expect(done()).toEqual([1]);
    expect(late).not.toHaveBeenCalled();
    await pass(clock, TIMEOUT_MS);
    expect(log.lines).toEqual([]);
  });

  test("one late answer ends all waits", async () => {
    const first = admission();
    await pass(clock, TIMEOUT_MS - 10);
    const second = admission();
    const synced = store.sync(["k"], [1]);
    expect(redis.syncs.map(({ words }) => words)).toEqual([[1, "k", 1]]);
    await pass(clock, 10);
    expect([first.done(), second.done(), await synced]).toEqual([undefined, undefined, undefined]);
    expect(reasons()).toEqual(["no answer in 40 ms"]);
  });

  test("a write is answered, though it takes longer than a request may wait", async () => {
    const synced = store.sync(["k"], [1]);
    await pass(clock, 500, 250);
    expect(store.up).toBe(true);
    redis.syncs[0]?.resolve([5]);
    expect(await synced).toEqual([5]);
    expect(await registry.metrics()).toContain('svc_store_seconds_sum{op="sync"} 0.5');
  });

  test("an error that it answers is an outage: each admission gets none", async () => {
    const { done, late } = admission();
    redis.admits[0]?.reject(replyError("OOM command not allowed"));
    await rounds();
    expect(done()).toBeUndefined();
    expect(late).not.toHaveBeenCalled();
    expect([store.asked, await metric("svc_store_up")]).toEqual([false, 0]);
    expect(reasons()).toEqual(["OOM: its memory is full: raise maxmemory"]);
  });

  test("an error that it answers ends all waits", async () => {
    const [one, other] = [admission(), admission()];
    redis.admits[1]?.reject(replyError("OOM command not allowed"));
    await rounds();
    expect([one.done(), other.done()]).toEqual([undefined, undefined]);
    redis.emit("end");
    expect(reasons()).toHaveLength(1);
  });

  test("an error of the connection is none", async () => {
    const { done } = admission();
    redis.admits[0]?.reject(new Error("Connection is closed."));
    await rounds();
    expect(done()).toBeUndefined();
    expect([store.up, log.lines]).toEqual([true, []]);
  });

  test("a connection that breaks is waited for, without a word, and what it carried is not", async () => {
    const before = admission();
    const synced = store.sync([], []);
    redis.emit("close");
    expect([store.asked, store.up]).toEqual([true, false]);
    await rounds();
    expect([before.done(), await synced]).toEqual([undefined, undefined]);
    const after = admission();
    connected();
    await probed();
    redis.admits.at(-1)?.resolve([3]);
    await rounds();
    expect(after.done()).toEqual([3]);
    expect([catchUp.mock.calls.length, isUp.mock.calls.length]).toEqual([2, 2]);
    expect(log.lines).toEqual([]);
  });

  test("commands of one event are one write to the socket", async () => {
    const { cork, uncork } = redis.stream;
    for (const mock of [cork, uncork]) mock.mockClear();
    admission();
    void store.sync([], []);
    admission();
    expect([cork.mock.calls.length, uncork.mock.calls.length]).toEqual([1, 0]);
    await rounds();
    expect([cork.mock.calls.length, uncork.mock.calls.length]).toEqual([1, 1]);
    void store.sync([], []);
    await rounds();
    expect([cork.mock.calls.length, uncork.mock.calls.length]).toEqual([2, 2]);
  });
});

describe("while it is away", () => {
  beforeEach(away);

  test("nobody waits for it, and nothing is sent", async () => {
    const { write, done } = admission();
    await rounds();
    expect(done()).toBeUndefined();
    expect(write).not.toHaveBeenCalled();
    await pass(clock, TIMEOUT_MS);
    expect(reasons()).toHaveLength(1);
  });

  test("three quick probes in a row bring it back, and what it missed", async () => {
    clock.advance(PROBE_EVERY_MS - 1);
    expect(redis.probes).toHaveLength(1);
    clock.advance(1);
    await probed();
    await probedNext();
    expect([store.asked, catchUp.mock.calls.length]).toEqual([false, 1]);
    await probedNext();
    expect([store.up, catchUp.mock.calls.length, isUp.mock.calls.length]).toEqual([true, 2, 2]);
    expect(log.lines.filter(({ level }) => level === 30)).toMatchObject([
      { store: "store.test:6380", awayMs: 600 },
    ]);
    expect(await metric("svc_store_up")).toBe(1);
    expect(clock.pending).toEqual([]);
  });

  test.each<[string, () => Promise<void>]>([
    [
      "slow",
      async () => {
        clock.advance(PROBE_EVERY_MS);
        await pass(clock, TIMEOUT_MS);
        await probed();
      },
    ],
    [
      "refused",
      async () => {
        clock.advance(PROBE_EVERY_MS);
        redis.probes.at(-1)?.reject(replyError("READONLY"));
        await rounds();
      },
    ],
  ])("a probe that is %s begins the row anew, and is no further warning", async (_name, bad) => {
    await probedNext();
    await probedNext();
    await bad();
    await probedNext();
    await probedNext();
    expect(store.up).toBe(false);
    await probedNext();
    expect(store.up).toBe(true);
    expect(reasons()).toHaveLength(1);
  });

  test("a catch-up that fails begins the row anew", async () => {
    catchUp.mockRejectedValueOnce(new Error("not received"));
    for (let probes = 0; probes < 5; probes++) await probedNext();
    expect(store.up).toBe(false);
    await probedNext();
    expect(store.up).toBe(true);
  });

  test("it is not probed without a connection, and needs three probes on a new one", async () => {
    await probedNext();
    await probedNext();
    redis.emit("close");
    const before = redis.probes.length;
    clock.advance(10 * PROBE_EVERY_MS);
    expect(redis.probes).toHaveLength(before);
    connected();
    expect(redis.probes).toHaveLength(before);
    await probedNext();
    await probedNext();
    expect(store.up).toBe(false);
    await probedNext();
    expect(store.up).toBe(true);
  });

  test("a connection that breaks during the catch-up does not bring it back", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    catchUp.mockReturnValueOnce(promise);
    for (let probes = 0; probes < 3; probes++) await probedNext();
    redis.emit("close");
    resolve();
    await rounds();
    expect([store.up, isUp.mock.calls.length]).toEqual([false, 1]);
  });

  test("it is not probed while the last probe has no answer; that ends after ten seconds", async () => {
    clock.advance(PROBE_EVERY_MS);
    const before = redis.probes.length;
    await pass(clock, 9_750, 250);
    expect(redis.disconnect).not.toHaveBeenCalled();
    expect(redis.probes).toHaveLength(before);
    await pass(clock, 250, 250);
    expect(redis.disconnect).toHaveBeenCalledExactlyOnceWith(true);
  });
});

describe("at the end", () => {
  test("waits end, and the connection", async () => {
    await used();
    const { done } = admission();
    const synced = store.sync([], []);
    store.close();
    await rounds();
    expect([done(), await synced, store.asked, store.up]).toEqual([
      undefined,
      undefined,
      false,
      false,
    ]);
    expect(redis.disconnect).toHaveBeenCalledExactlyOnceWith();
    redis.emit("error", new Error("late"));
    redis.emit("close");
    redis.emit("end");
    connected();
    expect(log.lines).toEqual([]);
    expect(redis.probes).toHaveLength(1);
    expect(clock.pending).toEqual([]);
  });

  test("nobody waits for a connection any more", async () => {
    const { write, done } = admission();
    store.close();
    await rounds();
    expect(done()).toBeUndefined();
    expect(write).not.toHaveBeenCalled();
  });

  test("no probe is sent any more", async () => {
    await away();
    store.close();
    expect(clock.pending).toEqual([]);
  });

  test("a catch-up that ends afterwards brings nothing back", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    catchUp.mockReturnValueOnce(promise);
    connected();
    await probed();
    store.close();
    resolve();
    await rounds();
    expect([store.up, isUp.mock.calls.length]).toEqual([false, 0]);
    expect(await metric("svc_store_up")).toBe(0);
  });
});

test("connections are attempted after growing delays, which begin anew once it is used", async () => {
  const [, retryMs] = vi.mocked(client.connectRedis).mock.calls[0] ?? [];
  const delays = (): unknown[] => [retryMs?.(), retryMs?.(), retryMs?.()];
  expect(delays()).toEqual([10, 20, 40]);
  await used();
  expect(delays()).toEqual([10, 20, 40]);
});
