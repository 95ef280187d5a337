import { settled } from "../platform/testing.ts";
import { expect, test } from "vitest";
import { Secret } from "../platform/secret.ts";
import { InjectionError } from "./contract.ts";
import { context } from "./testing.ts";
import { type FetchedToken, TokenExchangeError, TokenRefresher } from "./token-refresher.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** Tokens `t1`, `t2`, ... of an hour; `fail` makes exchanges fail; held ones wait for `release`. */
function setUp(options: { readonly lifetimeMs?: number } = {}) {
  const world = context();
  const { clock } = world;
  const server = {
    exchanges: 0,
    fail: undefined as Error | undefined,
    gate: undefined as Promise<void> | undefined,
    signal: undefined as AbortSignal | undefined,
  };
  const refresher = new TokenRefresher({
    binding: "bound",
    maxAgeMs: 50 * MINUTE,
    marginMs: 10 * MINUTE,
    clock,
    random: () => 0.5,
    log: world.log,
    fetchToken: async (signal): Promise<FetchedToken> => {
      server.exchanges += 1;
      server.signal = signal;
      const token = new Secret(`t${server.exchanges}`);
      await server.gate;
      if (server.fail !== undefined) throw server.fail;
      return { token, expiresAt: clock.now() + (options.lifetimeMs ?? HOUR) };
    },
  });
  const current = async () => (await refresher.current()).reveal();
  return { clock, server, refresher, current, lines: world.lines };
}

test("start gets the first token, and it is renewed at about 50 minutes", async () => {
  const { refresher, server, clock, current } = setUp();
  await refresher.start();
  expect(refresher.current()).toBeInstanceOf(Secret);
  expect(await current()).toBe("t1");
  await clock.advanceAndSettle(47 * MINUTE);
  expect(server.exchanges).toBe(1);
  await clock.advanceAndSettle(3 * MINUTE);
  expect(await current()).toBe("t2");
  await clock.advanceAndSettle(10 * HOUR);
  expect(server.exchanges).toBeGreaterThan(11);
  expect(clock.pending).toHaveLength(1);
});

test("a token of short life is renewed before its end, and never in a tight loop", async () => {
  const short = setUp({ lifetimeMs: 12 * MINUTE });
  await short.refresher.start();
  expect(short.clock.pending[0]).toBeLessThanOrEqual(2 * MINUTE);
  const shorter = setUp({ lifetimeMs: MINUTE });
  await shorter.refresher.start();
  expect(shorter.clock.pending[0]).toBeLessThanOrEqual(MINUTE / 2);
  const tiny = setUp({ lifetimeMs: 1 });
  await tiny.refresher.start();
  expect(tiny.clock.pending[0]).toBe(1_000);
});

test.each([
  ["50 minutes of a long life", 3 * HOUR, 50 * MINUTE],
  ["ten minutes before the end", 30 * MINUTE, 20 * MINUTE],
  ["half of a short life", 10 * MINUTE, 5 * MINUTE],
  ["half of a shorter life", 2 * MINUTE, MINUTE],
])("a token is renewed after %s, less a random part of a twentieth", async (_name, life, at) => {
  const { refresher, clock } = setUp({ lifetimeMs: life });
  await refresher.start();
  expect(clock.pending).toEqual([at * 0.975]);
});

test("a dropped token is replaced for the next caller", async () => {
  const { refresher, server, current } = setUp();
  await refresher.start();
  refresher.drop();
  expect(server.exchanges).toBe(1);
  expect(await current()).toBe("t2");
});

test("who asks at the same time shares one exchange", async () => {
  const { refresher, server, current } = setUp();
  const gate = Promise.withResolvers<void>();
  server.gate = gate.promise;
  const all = [refresher.start(), current(), current(), refresher.refresh(), current()];
  await settled();
  expect(server.exchanges).toBe(1);
  gate.resolve();
  expect(await Promise.all(all)).toEqual([undefined, "t1", "t1", undefined, "t1"]);
  await refresher.refresh();
  expect(await current()).toBe("t2");
});

test("during a renewal the old token is used, without waiting", async () => {
  const { refresher, server } = setUp();
  await refresher.start();
  const gate = Promise.withResolvers<void>();
  server.gate = gate.promise;
  const renewal = refresher.refresh();
  expect((refresher.current() as Secret).reveal()).toBe("t1");
  gate.resolve();
  await renewal;
  expect((refresher.current() as Secret).reveal()).toBe("t2");
});

test("with the token server away the old token is used to its very end, and retries back off", async () => {
  const { refresher, server, clock, current } = setUp();
  await refresher.start();
  server.fail = new Error("connect ECONNREFUSED");
  await clock.advanceAndSettle(HOUR - 1);
  expect(await current()).toBe("t1");
  // Ten minutes of backoff: seven steps of up to a minute, then one per minute.
  expect(server.exchanges).toBeGreaterThan(10);
  expect(server.exchanges).toBeLessThan(25);
  await clock.advanceAndSettle(1);
  const asked = server.exchanges;
  await expect(current()).rejects.toThrow(InjectionError);
  await expect(current()).rejects.toMatchObject({ status: 503 });
  // An agent's requests do not cause further exchanges.
  expect(server.exchanges).toBe(asked);
  server.fail = undefined;
  await clock.advanceAndSettle(MINUTE);
  expect(await current()).toMatch(/^t\d+$/);
});

test("start lets the others go on when the token server is away", async () => {
  const { refresher, server, clock, current, lines } = setUp();
  server.fail = new Error("connect ECONNREFUSED 10.0.0.1 with s3cr3t");
  await refresher.start();
  await expect(current()).rejects.toThrow(/Provider bound: no access token/);
  server.fail = undefined;
  await clock.advanceAndSettle(2_000);
  expect(await current()).toBe("t2");
  expect(lines.join("")).toContain("no new token");
  expect(lines.join("")).not.toContain("s3cr3t");
});

test("a refusal is 502 and is not asked again at once; retry-after is heeded", async () => {
  const { refresher, server, clock, current } = setUp();
  server.fail = new TokenExchangeError("the token server answered 401", { refused: true });
  await refresher.start();
  expect(clock.pending[0]).toBeGreaterThanOrEqual(30_000);
  await expect(current()).rejects.toMatchObject({ status: 502 });
  server.fail = new TokenExchangeError("the token server answered 429", {
    retryAfterMs: 5 * MINUTE,
  });
  await expect(refresher.refresh()).rejects.toThrow(InjectionError);
  expect(clock.pending).toEqual([5 * MINUTE]);
});

test("an exchange that hangs is given up", async () => {
  const { refresher, server, clock, current } = setUp();
  server.gate = new Promise(() => undefined);
  const starting = refresher.start();
  await clock.advanceAndSettle(10_000);
  await starting;
  expect(server.signal?.aborted).toBe(true);
  await expect(current()).rejects.toThrow(InjectionError);
});

test.each([-HOUR, -24 * HOUR])(
  "a wall clock set back by %d ms keeps no dead token alive",
  async (step) => {
    const { refresher, server, clock, current } = setUp();
    await refresher.start();
    server.fail = new Error("away");
    clock.step(step);
    await clock.advanceAndSettle(HOUR);
    await expect(current()).rejects.toThrow(InjectionError);
  },
);

test("after a sleep of the machine, which only the wall clock counts, a new token is got", async () => {
  const { refresher, clock, current } = setUp();
  await refresher.start();
  clock.step(2 * HOUR);
  expect(await current()).toBe("t2");
});

test("a token that is dead on arrival is an error, not a loop", async () => {
  const { refresher, server, clock, current, lines } = setUp({ lifetimeMs: 0 });
  await refresher.start();
  expect(server.exchanges).toBe(1);
  expect(clock.pending[0]).toBeGreaterThanOrEqual(500);
  await expect(current()).rejects.toThrow(InjectionError);
  expect(lines.join("")).toContain("is the clock of this machine right?");
});

test("stop ends timers and an exchange under way; nothing comes back to life", async () => {
  const { refresher, server, clock, current } = setUp();
  await refresher.start();
  await refresher.stop();
  expect(clock.pending).toEqual([]);
  await expect(current()).rejects.toThrow(/shutting down/);

  const other = setUp();
  const gate = Promise.withResolvers<void>();
  other.server.gate = gate.promise;
  const starting = other.refresher.start();
  await settled();
  await other.refresher.stop();
  await starting;
  expect(other.server.signal?.aborted).toBe(true);
  gate.resolve();
  await settled();
  expect(other.clock.pending).toEqual([]);
  await expect(other.current()).rejects.toThrow(InjectionError);
  expect(server.exchanges).toBe(1);
});
