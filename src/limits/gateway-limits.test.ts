/** Questions and writes to the store, and their times; the tests give the store's answers. */
import { Registry } from "prom-client";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { CapturedLog, FakeClock } from "../platform/testing.ts";
import type { Admission, AdmitRequest, Check, Lease } from "./contract.ts";
import { GatewayLimits } from "./gateway-limits.ts";
import { parseRedisSettings } from "./redis/redis-options.ts";
import type * as stores from "./redis/store.ts";
import { concurrency, daily, NOON, NOTHING, rate, rounds, SCOPE, used } from "./testing.ts";

const LEASE_MS = 30_000;

type Reply = readonly number[] | undefined;

interface Asked {
  readonly write: () => { readonly args: readonly (string | number)[] };
  readonly late: (reply: readonly number[]) => void;
  readonly answer: (reply: Reply) => void;
}

/** A write to the store, by its sections. */
interface Written {
  readonly ended: readonly unknown[];
  readonly live: readonly unknown[];
  readonly totals: readonly unknown[];
  readonly admissions: readonly unknown[];
  readonly takenBack: readonly unknown[];
  readonly questions: readonly unknown[];
  readonly answer: (reply: Reply) => void;
}

class FakeStore {
  asked = true;
  up = true;
  readonly admits: Asked[] = [];
  readonly syncs: Written[] = [];
  readonly close = vi.fn<() => void>();
  readonly options: stores.StoreOptions;
  /** Whether writes are answered at once. */
  answers = true;

  constructor(options: stores.StoreOptions) {
    this.options = options;
  }

  admit(write: Asked["write"], late: Asked["late"]): Promise<Reply> {
    const { promise, resolve } = Promise.withResolvers<Reply>();
    this.admits.push({ write, late, answer: resolve });
    return promise;
  }

  sync(_keys: unknown, args: readonly (string | number)[]): Promise<Reply> {
    const { promise, resolve } = Promise.withResolvers<Reply>();
    let at = 5;
    const section = (words: number): unknown[] =>
      Array.from({ length: Number(args[at++]) }, () => args.slice(at, (at += words)).join(" "));
    this.syncs.push({
      ended: section(1),
      live: section(2),
      totals: section(6),
      admissions: section(4),
      takenBack: section(2),
      questions: section(2),
      answer: resolve,
    });
    if (this.answers) resolve([]);
    return promise;
  }
}

let store: FakeStore;

vi.mock("./redis/store.ts", () => ({
  Store: function (options: stores.StoreOptions) {
    return (store = new FakeStore(options));
  },
}));

let clock: FakeClock;
let registry: Registry;
let limits: GatewayLimits;

beforeEach(() => {
  clock = new FakeClock(NOON);
  registry = new Registry();
  limits = new GatewayLimits({
    redis: parseRedisSettings({ url: "redis://store.test" }),
    clock,
    log: new CapturedLog().log,
    registry,
    processId: "p1",
    leaseMs: LEASE_MS,
    admitTimeoutMs: 40,
    random: () => 0,
  });
});

let ids = 0;

const request = (checks: readonly Check[], more: Partial<AdmitRequest> = {}): AdmitRequest => ({
  id: `call-${++ids}`,
  scope: SCOPE,
  accounts: ["agent"],
  checks,
  reserve: { tokens: 5, microUsd: 0, requests: 1 },
  ...more,
});

/** Asks for an admission, and lets the store answer it. */
async function admit(asked: AdmitRequest, reply: Reply): Promise<Admission> {
  const admission = limits.admit(asked);
  const last = store.admits.at(-1);
  if (reply !== undefined) last?.write();
  last?.answer(reply);
  return await admission;
}

async function held(
  checks: readonly Check[],
  reply: Reply = [0, 0, 0, 0, 0, 0, 0],
): Promise<Lease> {
  const admission = await admit(request(checks), reply);
  if (admission.kind !== "admitted") throw new Error("refused");
  return admission.lease;
}

const failedOpen = async (): Promise<unknown> =>
  (await registry.getSingleMetric("svc_store_fail_open_total")?.get())?.values[0]?.value;

/** Everything that was written since the last call, by section. */
function written(section: keyof Omit<Written, "answer">): readonly unknown[] {
  return store.syncs.splice(0).flatMap((write) => write[section]);
}

const FAR = [0, 0, 0, 0, 0];
const NEAR = [0, 0, 0, 0, 2];

describe("an admission", () => {
  test("that the store answers is held as it says, and is none that failed open", async () => {
    const expect1 = { tokens: 9, microUsd: 0, requests: 1 };
    for (const [reply, tokens] of [
      [FAR, 9],
      [[0, 0, 0, 0, 1], 5],
    ] as const) {
      const admission = await admit(request([concurrency(5)], { expect: expect1 }), reply);
      expect(admission).toMatchObject({ kind: "admitted", lease: { amounts: { tokens } } });
    }
    expect(await failedOpen()).toBe(0);
    expect(store.admits).toHaveLength(2);
  });

  test("that was never sent is decided here, and its end is not told to the store", async () => {
    const admission = await admit(request([concurrency(1)]), undefined);
    expect(admission.kind).toBe("admitted");
    expect(await failedOpen()).toBe(1);
    if (admission.kind === "admitted") limits.settle(admission.lease, used(3));
    clock.advance(5);
    expect(store.syncs[0]?.ended).toEqual([]);
    expect(store.syncs[0]?.totals).toHaveLength(1);
  });

  test("that was sent without an answer is decided here, and its end is told", async () => {
    const asked = limits.admit(request([concurrency(1)], { id: "sent" }));
    store.admits[0]?.write();
    store.admits[0]?.answer(undefined);
    const admission = await asked;
    if (admission.kind === "admitted") limits.settle(admission.lease, NOTHING);
    clock.advance(5);
    expect(written("ended")).toEqual(["sent"]);
  });

  test("is not asked of a store that is away", async () => {
    store.asked = false;
    expect(limits.admit(request([concurrency(1)]))).toMatchObject({ kind: "admitted" });
    expect(limits.admit(request([concurrency(1)]))).toMatchObject({ kind: "refused", reserved: 1 });
    expect([store.admits.length, await failedOpen()]).toEqual([0, 2]);
  });

  describe("that the store answers late", () => {
    async function late(checks: readonly Check[], reply: readonly number[]): Promise<Admission> {
      const asked = limits.admit(request(checks, { id: "late" }));
      const [last] = store.admits.splice(0);
      last?.write();
      last?.answer(undefined);
      const admission = await asked;
      last?.late(reply);
      await rounds();
      return admission;
    }

    test("is taken back if it was refused here, from each of its windows", async () => {
      store.asked = false;
      await limits.admit(request([rate(1), concurrency(1)]));
      store.asked = true;
      const checks = [rate(1), rate(5, 1_000), concurrency(1), daily(9)];
      expect((await late(checks, FAR)).kind).toBe("refused");
      expect(store.syncs).toMatchObject([{ ended: ["late"], takenBack: ["4 late", "5 late"] }]);
    });

    test("is taken back again if the store did not receive that", async () => {
      store.asked = false;
      await limits.admit(request([concurrency(1)]));
      store.asked = true;
      store.answers = false;
      await late([rate(1), concurrency(1)], FAR);
      store.syncs.splice(0)[0]?.answer(undefined);
      await rounds();
      void store.options.catchUp();
      expect(store.syncs).toMatchObject([{ ended: ["late"] }]);
      expect(store.syncs[0]?.takenBack.join()).toMatch(/^\d late$/);
    });

    test("stays if it was admitted here too", async () => {
      expect((await late([rate(1)], FAR)).kind).toBe("admitted");
      expect(written("ended")).toEqual([]);
    });

    test("needs nothing if the store refused it too", async () => {
      store.asked = false;
      await limits.admit(request([concurrency(1)]));
      store.asked = true;
      expect((await late([concurrency(1)], [1, 0, 1, 0, 0])).kind).toBe("refused");
      expect(written("ended")).toEqual([]);
    });
  });
});

describe("a refusal of the store", () => {
  test.each<[string, Check]>([
    ["a budget", daily(9)],
    ["concurrency", concurrency(1)],
  ])("by %s is asked again once what ended here has been told", async (_name, check) => {
    const lease = await held([check]);
    limits.settle(lease, NOTHING);
    const asked = limits.admit(request([check]));
    store.admits[1]?.write();
    expect(store.syncs).toEqual([]);
    store.admits[1]?.answer([1, 0, 5, 0, 0, 0, 0]);
    await rounds();
    expect(store.admits).toHaveLength(3);
    store.admits[2]?.write();
    expect(written("ended")).toEqual([lease.id]);
    store.admits[2]?.answer([0, 0, 0, 0, 0, 0, 0]);
    expect((await asked).kind).toBe("admitted");
  });

  test("is final the second time", async () => {
    limits.settle(await held([concurrency(1)]), NOTHING);
    const asked = limits.admit(request([concurrency(1)]));
    for (const at of [1, 2]) {
      store.admits[at]?.write();
      store.admits[at]?.answer([1, 0, 5, 0, 0]);
      await rounds();
    }
    expect(await asked).toMatchObject({ kind: "refused", reserved: 5 });
    expect(store.admits).toHaveLength(3);
  });

  test("by a rate is final: what has ended stays in its window", async () => {
    limits.settle(await held([rate(1)]), NOTHING);
    expect(await admit(request([rate(1)]), [1, 1, 0, 700, 0])).toMatchObject({
      kind: "refused",
      retryAfterMs: 700,
    });
    expect(store.admits).toHaveLength(2);
  });

  test("is final if nothing has ended here", async () => {
    await held([concurrency(1)]);
    expect((await admit(request([concurrency(1)]), [1, 0, 1, 0, 0])).kind).toBe("refused");
    expect(store.admits).toHaveLength(2);
  });
});

describe("near a limit", () => {
  test("what ended is written before the next question", async () => {
    const [one, two] = [await held([concurrency(2)]), await held([concurrency(2)], NEAR)];
    limits.settle(one, NOTHING);
    void limits.admit(request([concurrency(2)]));
    store.admits.at(-1)?.write();
    expect(written("ended")).toEqual([one.id]);
    void limits.admit(request([concurrency(2)]));
    store.admits.at(-1)?.write();
    expect(store.syncs).toEqual([]);
    expect(two.id).not.toBe(one.id);
  });

  test("ends of one turn are one write, at once", async () => {
    const leases = [await held([concurrency(2)]), await held([concurrency(2)], NEAR)];
    for (const lease of leases) limits.settle(lease, NOTHING);
    expect(store.syncs).toEqual([]);
    await rounds();
    expect(store.syncs).toMatchObject([{ ended: leases.map(({ id }) => id) }]);
    store.syncs.length = 0;
    limits.settle(await held([concurrency(2)], NEAR), NOTHING);
    await rounds();
    expect(store.syncs).toHaveLength(1);
  });

  test("far from it again, ends wait for 5 ms", async () => {
    await held([concurrency(2)], NEAR);
    limits.settle(await held([concurrency(2)], FAR), NOTHING);
    await rounds();
    expect(store.syncs).toEqual([]);
    clock.advance(5);
    expect(store.syncs).toHaveLength(1);
  });
});

describe("raising a lease", () => {
  const amounts = (tokens: number) => ({ tokens, microUsd: 0, requests: 1 });

  test("asks the store about its budgets alone, and holds what it says", async () => {
    const lease = await held([daily(100)]);
    const raised = limits.reserve(lease, [rate(1), daily(100), concurrency(1)], amounts(50));
    expect(store.admits[1]?.write().args.slice(7)).toEqual(["d", "agent", 100, "t", 0, 0]);
    store.admits[1]?.answer([0, 0, 0, 0, 0, 0, 0]);
    expect(await raised).toMatchObject({ kind: "admitted", lease: { amounts: amounts(50) } });
    limits.settle(lease, NOTHING);
    clock.advance(5);
    expect(written("ended")).toEqual([lease.id]);
  });

  test("that the store refuses leaves it as it was", async () => {
    const lease = await held([daily(100)]);
    const raised = limits.reserve(lease, [daily(100)], amounts(500));
    store.admits[1]?.write();
    store.admits[1]?.answer([1, 7, 8, 0, 0, 0, 0]);
    expect(await raised).toMatchObject({ kind: "refused", used: 7, reserved: 8 });
    expect(lease).toMatchObject({ amounts: amounts(5) });
  });

  test("of a lease that ended meanwhile tells its end once more", async () => {
    const lease = await held([daily(100)]);
    const raised = limits.reserve(lease, [daily(100)], amounts(50));
    store.admits[1]?.write();
    limits.settle(lease, NOTHING);
    clock.advance(5);
    expect(written("ended")).toEqual([lease.id]);
    store.admits[1]?.answer([0, 0, 0, 0, 0, 0, 0]);
    expect((await raised).kind).toBe("admitted");
    await rounds();
    expect(written("ended")).toEqual([lease.id]);
  });
});

describe("a store that has lost data", () => {
  /** A store that has less of our usage than it has confirmed. */
  const LOST = [0, 0, 0, 0, 0, 0, 0];

  async function confirmed(): Promise<void> {
    limits.record(SCOPE, ["agent"], used(50), clock.now());
    store.answers = false;
    clock.advance(500);
    store.syncs.splice(0)[0]?.answer([0, 0, 0, 0]);
    await rounds();
  }

  test("is told everything again, once at a time", async () => {
    const lease = await held([daily(100), rate(9)]);
    await confirmed();
    for (let call = 0; call < 2; call++) await held([daily(100)], LOST);
    await rounds();
    expect(store.syncs).toHaveLength(1);
    const [write] = store.syncs.splice(0);
    expect(write?.live).toMatchObject([expect.stringContaining(lease.id) as unknown]);
    expect(write?.totals).toHaveLength(1);
    expect(write?.admissions).toHaveLength(1);
    write?.answer([0, 0, 0, 0]);
    await rounds();
    await held([daily(100)], LOST);
    await rounds();
    expect(store.syncs).toHaveLength(1);
  });

  test("that does not receive it is told again at the next sign", async () => {
    await confirmed();
    await held([daily(100)], LOST);
    store.syncs.splice(0)[0]?.answer(undefined);
    await rounds();
    await held([daily(100)], LOST);
    expect(store.syncs).toHaveLength(1);
  });
});

describe("the catch-up", () => {
  test("writes 64 scopes at a time, and all of them", async () => {
    store.up = false;
    for (let scope = 0; scope < 130; scope++)
      limits.record(`agent/default/a-${scope}`, ["agent"], used(1), clock.now());
    store.answers = false;
    let done = false;
    void store.options.catchUp().then(() => (done = true));
    for (const expected of [64, 64, 2]) {
      const writes = store.syncs.splice(0);
      expect(writes).toHaveLength(expected);
      expect(writes.every(({ totals }) => totals.length === 1)).toBe(true);
      expect(done).toBe(false);
      for (const { answer } of writes) answer([0, 0, 0, 0]);
      await rounds();
    }
    expect(done).toBe(true);
  });

  test("fails if one write was not received, which is then written again", async () => {
    const lease = await held([rate(9)]);
    limits.settle(lease, used(1));
    store.answers = false;
    const caught = store.options.catchUp();
    const [first] = store.syncs.splice(0);
    expect(first).toMatchObject({ ended: [lease.id] });
    first?.answer(undefined);
    await expect(caught).rejects.toThrow("did not receive");
    void store.options.catchUp();
    expect(store.syncs).toMatchObject([{ ended: [lease.id] }]);
  });

  test("is followed by what arrived meanwhile", () => {
    store.up = false;
    limits.record(SCOPE, ["agent"], used(1), clock.now());
    clock.advance(500);
    expect(store.syncs).toEqual([]);
    store.up = true;
    store.options.isUp();
    expect(store.syncs).toHaveLength(1);
    store.options.isUp();
    expect(store.syncs).toHaveLength(1);
  });
});

test("what a question has told already is not told again", async () => {
  limits.record(SCOPE, ["agent"], used(1), clock.now());
  await limits.usage([{ scope: SCOPE, account: "agent" }]);
  expect(written("totals")).toHaveLength(1);
  clock.advance(500);
  expect(store.syncs).toEqual([]);
});

describe("renewal", () => {
  test("of leases comes each third of their time, and of those that are held", async () => {
    const [one, two] = [await held([concurrency(9)]), await held([concurrency(9)])];
    clock.advance(LEASE_MS / 3 - 1);
    expect(store.syncs).toEqual([]);
    clock.advance(1);
    const renewed = written("live").join();
    expect([renewed.includes(one.id), renewed.includes(two.id)]).toEqual([true, true]);
    limits.settle(one, NOTHING);
    limits.settle(two, NOTHING);
    clock.advance(5);
    store.syncs.length = 0;
    clock.advance(LEASE_MS / 3);
    expect(store.syncs).toEqual([]);
  });

  test("waits for a store that is away", async () => {
    await held([concurrency(9)]);
    store.up = false;
    clock.advance(LEASE_MS / 3);
    expect(store.syncs).toEqual([]);
    store.up = true;
    clock.advance(LEASE_MS / 3);
    expect(store.syncs).toHaveLength(1);
  });
});

describe("usage", () => {
  const subjects = [{ scope: SCOPE, account: "agent" }];

  test("is the store's, and teaches this process", async () => {
    store.answers = false;
    const asked = limits.usage(subjects);
    expect(store.syncs).toMatchObject([{ questions: ["4 agent"] }]);
    store.syncs[0]?.answer([9, 8, 7, 6, 5]);
    const usage = { tokens: 9, microUsd: 8, requests: 7, unpricedRequests: 6 };
    expect(await asked).toEqual([{ ...usage, inFlight: 5 }]);
    store.up = false;
    expect(await limits.usage(subjects)).toEqual([{ ...usage, inFlight: 0 }]);
  });

  test("is what this process knows if the store does not answer", async () => {
    await held([concurrency(9)]);
    limits.record(SCOPE, ["agent"], used(3), clock.now());
    store.answers = false;
    const asked = limits.usage(subjects);
    store.syncs[0]?.answer(undefined);
    expect(await asked).toMatchObject([{ tokens: 3, requests: 1, inFlight: 1 }]);
  });
});

describe("the end", () => {
  test("writes what is pending, then closes the store", async () => {
    limits.record(SCOPE, ["agent"], used(3), clock.now());
    store.answers = false;
    const closed = limits.close();
    expect(store.syncs).toMatchObject([{ totals: [expect.stringContaining("agent 3 0 1 0")] }]);
    await rounds();
    expect(store.close).not.toHaveBeenCalled();
    store.syncs[0]?.answer([0, 0, 0, 0]);
    await closed;
    expect(store.close).toHaveBeenCalledOnce();
    expect(clock.pending).toEqual([]);
  });

  test("waits for a second at most, and nothing is written after it", async () => {
    const lease = await held([concurrency(2)], NEAR);
    limits.record(SCOPE, ["agent"], used(3), clock.now());
    store.answers = false;
    const closed = limits.close();
    expect(clock.pending).toEqual([1_000]);
    clock.advance(1_000);
    await closed;
    expect(store.close).toHaveBeenCalledOnce();
    store.syncs.length = 0;
    limits.settle(lease, NOTHING);
    await rounds();
    expect([store.syncs, clock.pending]).toEqual([[], []]);
  });
});
