import { Registry } from "prom-client";
import { describe, expect, test, vi } from "vitest";
import { FakeClock, settled } from "../../platform/testing.ts";
import { FairShare } from "./fair-share.ts";

const MIB = 1024 * 1024;
const ROUND_MS = 50;

function create() {
  const clock = new FakeClock();
  const registry = new Registry();
  let utilization = 0;
  const share = new FairShare({ clock, registry, utilization: () => utilization });
  const metric = async (name: string) => (await registry.getSingleMetric(name)?.get())?.values;
  /** Answers to requests that waited, in order of arrival. */
  const answers: [caller: string, admitted: boolean][] = [];
  const enter = (caller: string, bytes = 0): "at once" | "waits" => {
    const turn = share.enter(caller, bytes);
    if (turn === undefined) return "at once";
    void turn.then((admitted) => answers.push([caller, admitted]));
    return "waits";
  };
  /**
   * Simulates one second in which the callers do the given milliseconds of work at the given
   * utilization of the loop.
   */
  const second = (
    busy: number | ((round: number) => number),
    work: Readonly<Record<string, number>>,
  ): void => {
    for (let round = 0; round < 1_000 / ROUND_MS; round += 1) {
      utilization = typeof busy === "number" ? busy : busy(round);
      for (const [caller, ms] of Object.entries(work))
        share.charge(caller, (ms * ROUND_MS) / 1_000);
      clock.advance(ROUND_MS);
      enter("probe");
    }
  };
  return { clock, share, enter, second, answers, metric };
}

test("a caller that is alone may use the whole process", () => {
  const { clock, share } = create();
  for (let n = 0; n < 100; n += 1) {
    expect(share.enter("a", 31 * MIB)).toBeUndefined();
    clock.advance(50);
  }
});

test("while the event loop is not busy, nobody waits", () => {
  const { second, enter } = create();
  second(0.7, { a: 600, b: 100 });
  expect([enter("a"), enter("b")]).toEqual(["at once", "at once"]);
});

test("one long step makes nobody wait", () => {
  const { clock, second, enter, share } = create();
  second(0.1, { a: 50, b: 50 });
  share.charge("a", 200);
  second(0.1, { a: 50, b: 50 });
  clock.advance(ROUND_MS);
  expect([enter("a"), enter("b")]).toEqual(["at once", "at once"]);
});

test("while it is busy, the caller that uses most waits, and the others do not", () => {
  const { second, enter } = create();
  second(1, { greedy: 900, small: 10 });
  expect([enter("greedy"), enter("small"), enter("new")]).toEqual(["waits", "at once", "at once"]);
});

test("waits that are long now and then make it busy, though most of the time it is not", () => {
  const { second, enter } = create();
  second((round) => (round % 4 === 0 ? 8 : 0.1), { greedy: 900, small: 10 });
  expect([enter("greedy"), enter("small")]).toEqual(["waits", "at once"]);
});

test("many small callers have what they want, and the large ones the same share each", () => {
  const { second, enter } = create();
  const small = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`small ${n}`, 5]));
  second(1, { ...small, x: 300, y: 300, z: 300 });
  expect([enter("x"), enter("y"), enter("z")]).toEqual(["waits", "waits", "waits"]);
  expect([enter("small 7"), enter("small 19")]).toEqual(["at once", "at once"]);
});

test("who waits is let in when the loop is no longer busy", async () => {
  const { clock, second, enter, answers } = create();
  second(1, { greedy: 900, small: 10 });
  expect(enter("greedy")).toBe("waits");
  second(0.2, { small: 10 });
  await clock.advanceAndSettle(ROUND_MS);
  expect(answers).toEqual([["greedy", true]]);
  expect(enter("greedy")).toBe("at once");
});

test("a round admits several requests of a caller that has done work and entered none", async () => {
  const { clock, second, enter, answers } = create();
  second(1, { greedy: 900, small: 10 });
  for (let n = 0; n < 30; n += 1) expect(enter("greedy")).toBe("waits");
  for (let round = 0; answers.length === 0 && round < 20; round += 1) {
    await clock.advanceAndSettle(ROUND_MS);
  }
  expect(answers.length).toBeGreaterThan(1);
  expect(answers.every(([, admitted]) => admitted)).toBe(true);
});

test("who waited for a second is refused", async () => {
  const { clock, second, share, enter, answers, metric } = create();
  second(1, { greedy: 900, small: 10 });
  share.charge("greedy", 5_000);
  enter("greedy");
  await clock.advanceAndSettle(950);
  expect(answers).toEqual([]);
  await clock.advanceAndSettle(ROUND_MS);
  expect(answers).toEqual([["greedy", false]]);
  const outcomes = await metric("svc_fair_share_waits_total");
  expect(outcomes?.map(({ labels, value }) => [labels["outcome"], value])).toEqual([
    ["admitted", 0],
    ["refused", 1],
  ]);
});

test("a caller has room for so many requests that wait, and the next is refused at once", async () => {
  const { second, enter, answers, metric } = create();
  second(1, { greedy: 900, small: 10 });
  for (let n = 0; n < 4_097; n += 1) enter("greedy");
  await settled();
  expect(answers).toEqual([["greedy", false]]);
  expect(await metric("svc_fair_share_waits_total")).toMatchObject([
    { labels: { outcome: "admitted" }, value: 0 },
    { labels: { outcome: "refused" }, value: 1 },
  ]);
});

test("all callers together have room for so many", async () => {
  const { second, enter, answers } = create();
  const callers = Array.from({ length: 20 }, (_, n) => `greedy ${n}`);
  second(1, { small: 1, ...Object.fromEntries(callers.map((caller) => [caller, 50])) });
  for (const caller of callers) for (let n = 0; n < 420; n += 1) enter(caller);
  await settled();
  expect(answers.length).toBe(20 * 420 - 8_192);
  expect(answers.every(([, admitted]) => !admitted)).toBe(true);
});

test("who comes later does not overtake those of the same caller that wait", async () => {
  const { clock, second, share, enter, answers } = create();
  second(1, { greedy: 900, small: 10 });
  share.charge("greedy", 100);
  expect(enter("greedy")).toBe("waits");
  clock.advance(ROUND_MS - 1);
  expect(enter("greedy")).toBe("waits");
  await clock.advanceAndSettle(1_100);
  expect(answers.map(([caller]) => caller)).toEqual(["greedy", "greedy"]);
});

test("callers that have gone are forgotten", async () => {
  const { clock, share, second, enter, metric } = create();
  share.charge("gone", 400);
  expect((await metric("svc_request_work_ratio"))?.[0]?.value).toBeCloseTo(0.4);
  clock.advance(20_000);
  share.charge("probe", 5_000);
  second(1, { probe: 900 });
  expect(enter("probe")).toBe("at once");
});

describe("the capacity of 10 seconds of work is divided", () => {
  test.each<[works: Record<string, number>, waiting: string[]]>([
    [{ a: 7_000, b: 100 }, []],
    [{ a: 8_000, b: 3_000 }, ["a"]],
    [{ a: 6_900, b: 3_000 }, []],
    [{ a: 4_900, b: 4_900 }, []],
    [{ a: 5_100, b: 5_100 }, ["a", "b"]],
    [{ a: 3_500, b: 2_900, c: 3_500 }, []],
    [{ a: 3_600, b: 2_900, c: 3_600 }, ["a", "c"]],
    [{ a: 2_000, b: 9_000, c: 1_000, d: 3_400 }, ["b"]],
    [{ a: 2_000, b: 9_000, c: 1_000, d: 3_600 }, ["b", "d"]],
    [{ a: 20_000 }, []],
  ])("%j: these wait: %j", (works, waiting) => {
    const { clock, share, enter } = create();
    clock.advance(ROUND_MS);
    for (const [caller, ms] of Object.entries(works)) share.charge(caller, ms);
    enter("probe");
    expect(Object.keys(works).filter((caller) => enter(caller) === "waits")).toEqual(waiting);
  });
});

test("a caller that is alone may use the whole process, however busy it is", () => {
  const { second, enter } = create();
  for (let n = 0; n < 5; n += 1) second(1, { alone: 900 });
  expect(enter("alone")).toBe("at once");
});

test("where the process waits for something else than its callers, a small one never waits", () => {
  const { second, enter } = create();
  for (let n = 0; n < 10; n += 1) second(1, { a: 100, b: 100 });
  expect([enter("a"), enter("b")]).toEqual(["at once", "at once"]);
});

test("between busy and not busy, there is no more to divide than before", () => {
  const { second, enter } = create();
  for (let n = 0; n < 5; n += 1) second(1, { a: 400, b: 400 });
  for (let n = 0; n < 3; n += 1) second(0.85, { a: 400, b: 400 });
  expect([enter("a"), enter("b")]).toEqual(["waits", "waits"]);
});

test("when it is no longer busy, there is more to divide step by step, not all at once", async () => {
  const { clock, second, share, enter, answers } = create();
  second(1, { greedy: 900, small: 10 });
  share.charge("greedy", 5_000);
  second(0, { small: 10 });
  expect(enter("greedy")).toBe("waits");
  share.charge("greedy", 5_000);
  await clock.advanceAndSettle(500);
  expect(answers).toEqual([]);
});

test("work is divided once in a round, however many requests there are", async () => {
  const clock = new FakeClock();
  const utilization = vi.fn<() => number>(() => 0);
  const share = new FairShare({ clock, registry: new Registry(), utilization });
  clock.advance(ROUND_MS - 1);
  for (let n = 0; n < 5; n += 1) void share.enter(`${n}`, 0);
  expect(utilization).not.toHaveBeenCalled();
  clock.advance(1);
  for (let n = 0; n < 5; n += 1) void share.enter(`${n}`, 0);
  expect(utilization).toHaveBeenCalledOnce();
});

test("rounds are run one at a time, and only while somebody waits", async () => {
  const { clock, second, share, enter, answers, metric } = create();
  second(1, { greedy: 900, small: 10 });
  share.charge("greedy", 300);
  for (let n = 0; n < 3; n += 1) expect(enter("greedy")).toBe("waits");
  expect(clock.pending).toEqual([ROUND_MS]);
  await clock.advanceAndSettle(ROUND_MS);
  expect(clock.pending).toEqual([ROUND_MS]);
  await clock.advanceAndSettle(1_100);
  expect(answers).toHaveLength(3);
  expect(clock.pending).toEqual([]);
  const outcomes = (await metric("svc_fair_share_waits_total")) ?? [];
  expect(outcomes.reduce((sum, { value }) => sum + value, 0)).toBe(3);
  expect(outcomes.map(({ labels }) => labels["outcome"])).toEqual(["admitted", "refused"]);
});

test("one busy round among many that are not makes nobody wait", () => {
  const { second, enter } = create();
  second((round) => (round === 19 ? 1 : 0.1), { greedy: 900, small: 10 });
  expect([enter("greedy"), enter("small")]).toEqual(["at once", "at once"]);
});

test("the body of a request that was refused is not charged", async () => {
  const { clock, second, share, enter, answers, metric } = create();
  second(1, { greedy: 900, small: 10 });
  share.charge("greedy", 5_000);
  const ratio = async () => (await metric("svc_request_work_ratio"))?.[0]?.value ?? 0;
  const before = await ratio();
  enter("greedy", 1_000 * MIB);
  await clock.advanceAndSettle(1_000);
  expect(answers).toEqual([["greedy", false]]);
  expect(await ratio()).toBeCloseTo(before / Math.E);
});

/** Two callers, of which the second is forgotten at the next division: then nobody has to share. */
function soonAlone() {
  const bench = create();
  bench.clock.advance(ROUND_MS);
  bench.share.charge("gone", 0.0102);
  return bench;
}

test("who waits is not overtaken by its own next request, though there is room by then", async () => {
  const { clock, share, enter, answers } = soonAlone();
  share.charge("greedy", 20_000);
  enter("probe");
  clock.advance(30);
  expect(enter("greedy")).toBe("waits");
  clock.advance(30);
  expect(enter("greedy")).toBe("waits");
  await clock.advanceAndSettle(20);
  expect(answers).toEqual([
    ["greedy", true],
    ["greedy", true],
  ]);
  expect(enter("greedy")).toBe("at once");
});

test.each([
  ["the cost of its requests so far", 0, 10],
  ["the bytes of their bodies too", MIB, 4],
])("a round admits what fits into a caller's share, by %s", async (_name, bytes, admitted) => {
  const { clock, share, enter, answers } = create();
  clock.advance(ROUND_MS);
  for (let n = 0; n < 1_000; n += 1) expect(enter("greedy")).toBe("at once");
  // Its requests cost 5.2 ms each. After one round it is 230 ms above its half of 10 seconds, after
  // two it is 50 ms below its share.
  share.charge("greedy", 5_230 * Math.exp(ROUND_MS / 1_000));
  share.charge("other", 20_000);
  clock.advance(ROUND_MS);
  for (let n = 0; n < 20; n += 1) expect(enter("greedy", bytes)).toBe("waits");
  await clock.advanceAndSettle(ROUND_MS);
  expect(answers).toHaveLength(admitted);
});

test("the ratio of work is that of the last second or so, of requests and their bytes", async () => {
  const { clock, share, metric } = create();
  const ratio = async () => (await metric("svc_request_work_ratio"))?.[0]?.value;
  share.charge("a", 400);
  clock.advance(1_000);
  expect(await ratio()).toBeCloseTo(0.4 / Math.E);
  clock.advance(1_000);
  share.charge("b", 100);
  share.chargeBytes("b", 10 * MIB);
  void share.enter("c", 5 * MIB);
  expect(await ratio()).toBeCloseTo(0.4 / Math.E ** 2 + 0.1 + 15 * 0.008);
});

interface Task {
  readonly caller: string;
  readonly ms: number;
  readonly again: () => void;
}

/**
 * Simulates a process that does 50 ms of work in 50 ms, and callers that send their next request
 * after each answer.
 */
class Machine {
  readonly clock = new FakeClock();
  readonly share = new FairShare({
    clock: this.clock,
    registry: new Registry(),
    utilization: () => this.#utilization,
  });
  readonly done: Record<string, number> = {};
  readonly refused: Record<string, number> = {};
  #utilization = 0;
  readonly #queue: Task[] = [];
  #left = 0;

  /** @param ms work of one request, without the price of its body */
  caller(name: string, connections: number, ms: number, bytes = 0): void {
    const ask = (): void => {
      const turn = this.share.enter(name, bytes);
      const go = (): void => void this.#queue.push({ caller: name, ms, again: ask });
      if (turn === undefined) return go();
      const comeBack = (): void => {
        this.refused[name] = (this.refused[name] ?? 0) + 1;
        this.clock.after(1_000, ask);
      };
      void turn.then((admitted) => (admitted ? go() : comeBack()));
    };
    for (let n = 0; n < connections; n += 1) this.clock.after(n % 7, ask);
  }

  async run(seconds: number): Promise<void> {
    for (let step = 0; step < seconds * 1_000; step += 5) {
      this.#left += 5;
      let worked = 0;
      while (this.#left > 0 && this.#queue.length > 0) {
        const { caller, ms, again } = this.#queue.shift() as Task;
        this.#left -= ms;
        worked += ms;
        this.share.charge(caller, ms);
        this.done[caller] = (this.done[caller] ?? 0) + 1;
        again();
      }
      this.#left = Math.min(this.#left, 0);
      this.#utilization = this.#utilization * 0.9 + Math.min(1, worked / 5) * 0.1;
      await this.clock.advanceAndSettle(5);
    }
  }
}

describe("on a machine", () => {
  test("a greedy caller beside a small one does what is left, and the small one what it wants", async () => {
    const machine = new Machine();
    machine.caller("greedy", 200, 1);
    await machine.run(2);
    machine.caller("small", 1, 2);
    await machine.run(4);
    const before = { ...machine.done };
    await machine.run(4);
    const done = (caller: string): number => (machine.done[caller] ?? 0) - (before[caller] ?? 0);
    expect(done("small") * 2).toBeGreaterThan(400);
    expect(done("greedy")).toBeGreaterThan(1_500);
    expect(machine.refused["small"]).toBeUndefined();
  });

  test("two greedy callers do the same work, whatever their connections", async () => {
    const machine = new Machine();
    machine.caller("one", 20, 1);
    machine.caller("two", 250, 1);
    await machine.run(10);
    const { one = 0, two = 0 } = machine.done;
    expect(two / one).toBeGreaterThan(0.6);
    expect(two / one).toBeLessThan(1.7);
    expect(one + two).toBeGreaterThan(6_000);
  });
});
