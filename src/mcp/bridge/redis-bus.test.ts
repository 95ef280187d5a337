/** The bus on a real Redis: killed, stopped, restarted. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { RedisServer, TcpProxy } from "../../../e2e/support/redis.ts";
import { until } from "../../../e2e/support/wait.ts";
import { parseRedisSettings } from "../../limits/redis/redis-options.ts";
import { systemClock } from "../../platform/clock.ts";
import { CapturedLog, FakeClock } from "../../platform/testing.ts";
import { BusUnavailable } from "./bus.ts";
import { RedisBus, type RedisBusOptions } from "./redis-bus.ts";
import { Cleanups } from "./testing.ts";

const TIMEOUT_MS = 5_000;

let cleanups: Cleanups;
let clock: FakeClock;
let server: RedisServer;
let log: CapturedLog;
let defects: unknown[];

beforeEach(async () => {
  cleanups = new Cleanups();
  clock = new FakeClock();
  log = new CapturedLog();
  defects = [];
  server = await RedisServer.start();
  cleanups.add(() => server.stop());
});

afterEach(() => cleanups.run());

function busAt(url = server.url, options: Partial<RedisBusOptions> = {}): RedisBus {
  const bus = new RedisBus({
    redis: parseRedisSettings({ url }),
    clock,
    log: log.log,
    random: () => 0,
    onDefect: (error) => defects.push(error),
    ...options,
  });
  cleanups.add(() => bus.close());
  return bus;
}

/** Waits until `from` reaches a name of `to`. */
async function reaches(from: RedisBus, to: RedisBus): Promise<void> {
  const subscription = await to.open("reached", () => "yes");
  await until(async () => (await from.send("reached", "")) === "yes");
  subscription.close();
}

async function pair(): Promise<readonly [RedisBus, RedisBus]> {
  const [a, b] = [busAt(), busAt()];
  await reaches(a, b);
  await reaches(b, a);
  return [a, b];
}

test("a message and its answer; in order; after the subscription's end, nobody", async () => {
  const [a, b] = await pair();
  const got: string[] = [];
  const subscription = await b.open("name", (message) => {
    got.push(message);
    return `answer to ${message}`;
  });
  const answers = await Promise.all(["1", "2", "3"].map((message) => a.send("name", message)));
  expect(answers).toEqual(["answer to 1", "answer to 2", "answer to 3"]);
  expect(got).toEqual(["1", "2", "3"]);
  clock.advance(TIMEOUT_MS);
  subscription.close();
  await until(async () => (await a.send("name", "4")) === undefined);
  expect(await a.send("never", "")).toBeUndefined();
});

test("a name of this process does not need Redis", async () => {
  const bus = busAt();
  await server.kill();
  await bus.open("own", (message) => message);
  expect(await bus.send("own", "x")).toBe("x");
});

test("a handler that fails is unavailable, and a defect", async () => {
  const [a, b] = await pair();
  await b.open("name", () => Promise.reject(new Error("bug")));
  await expect(a.send("name", "")).rejects.toThrow(BusUnavailable);
  expect(defects).toHaveLength(1);
});

test("no connection: unavailable at once", async () => {
  const bus = busAt("redis://127.0.0.1:1");
  await expect(bus.send("name", "")).rejects.toThrow(BusUnavailable);
  await until(() => log.lines.length > 0);
  expect(log.lines.map(({ level }) => level)).toEqual([40]);
});

test("a Redis that hangs: unavailable at the deadline", async () => {
  const [a, b] = await pair();
  await b.open("name", () => "yes");
  server.pause();
  cleanups.add(() => server.resume());
  const sent = a.send("name", "");
  clock.advance(TIMEOUT_MS);
  await expect(sent).rejects.toThrow(BusUnavailable);
});

test("a restarted Redis: held names are found again, and others only when that is certain", async () => {
  const [a, b] = await pair();
  await b.open("name", () => "yes");
  await server.kill();
  await expect(a.send("name", "")).rejects.toThrow(BusUnavailable);
  await b.open("meanwhile", () => "later");
  await server.restart();
  await until(async () => (await a.send("name", "")) === "yes");
  await until(async () => (await a.send("meanwhile", "")) === "later");
  // The holder may not be back yet.
  await expect(a.send("unknown", "")).rejects.toThrow(BusUnavailable);
  clock.advance(TIMEOUT_MS);
  expect(await a.send("unknown", "")).toBeUndefined();
});

test("a connection that is open but dead is replaced", async () => {
  const proxy = await TcpProxy.start(server.port);
  cleanups.add(() => proxy.stop());
  const a = busAt(server.url, { clock: systemClock, timeoutMs: 100 });
  const b = busAt(`redis://127.0.0.1:${proxy.port}`);
  await reaches(a, b);
  await b.open("name", () => "yes");
  expect(proxy.accepted).toBe(2);
  proxy.swallows = true;
  await expect(a.send("name", "")).rejects.toThrow(BusUnavailable);
  // The next message to itself, and its deadline.
  clock.advance(10_000);
  expect(clock.pending).toContain(TIMEOUT_MS);
  clock.advance(TIMEOUT_MS);
  proxy.swallows = false;
  await until(() => proxy.accepted === 4);
  await until(async () => (await a.send("name", "").catch(() => undefined)) === "yes");
});

test("a connection that is never answered is replaced", async () => {
  const proxy = await TcpProxy.start(server.port);
  cleanups.add(() => proxy.stop());
  const a = busAt(server.url, { clock: systemClock, timeoutMs: 100 });
  const b = busAt(`redis://127.0.0.1:${proxy.port}`);
  proxy.swallows = true;
  await b.open("name", () => "yes");
  await until(() => proxy.swallowed > 0);
  proxy.swallows = false;
  await until(async () => {
    clock.advance(10_000);
    return (await a.send("name", "").catch(() => undefined)) === "yes";
  });
});

test("a user who may not subscribe: one warning, and no loop", async () => {
  await server.command("ACL", "SETUSER", "limited", "on", ">pw", "~*", "+@all", "resetchannels");
  const bus = busAt(`redis://limited:pw@127.0.0.1:${server.port}`);
  await until(() => log.lines.length > 0);
  expect(log.lines[0]?.["reason"]).toMatch(/^NOPERM/);
  await expect(bus.send("name", "")).rejects.toThrow(BusUnavailable);
  await server.command("ACL", "SETUSER", "limited", "allchannels");
  await reaches(await reachable(bus), bus);
  expect(log.lines).toHaveLength(1);

  /** Another process, which may subscribe. */
  async function reachable(to: RedisBus): Promise<RedisBus> {
    const other = busAt();
    await reaches(other, other);
    await reaches(to, other);
    return other;
  }
});
