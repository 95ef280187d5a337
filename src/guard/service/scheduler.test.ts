import { describe, expect, test } from "vitest";
import { settled } from "../../platform/testing.ts";
import type { Scores } from "../protocol.ts";
import { Scheduler, type TokenWindow } from "./scheduler.ts";

const never = new AbortController().signal;

/** A window whose first token says which text it is of. */
const windowOf = (text: number, length = 4): TokenWindow => [
  text,
  ...Array.from({ length: length - 1 }, () => 0),
];
const windowsOf = (text: number, count: number, length?: number): TokenWindow[] =>
  Array.from({ length: count }, () => windowOf(text, length));

/** A model whose runs the test ends. */
class Runs {
  readonly batches: number[][] = [];
  #ends: ((error?: Error) => void)[] = [];

  readonly run = async (batch: readonly TokenWindow[]): Promise<readonly Scores[]> => {
    this.batches.push(batch.map(([text]) => text ?? -1));
    await new Promise<void>((resolve, reject) =>
      this.#ends.push((error) => (error === undefined ? resolve() : reject(error))),
    );
    return batch.map(([text = 0]) => ({
      benign: 1 - text / 10,
      injection: text / 10,
      jailbreak: 0,
    }));
  };

  async end(error?: Error): Promise<void> {
    await settled();
    this.#ends.shift()?.(error);
    await settled();
  }
}

function start(
  maxBatch = 4,
  maxTokens = 10_000,
): { readonly runs: Runs; readonly scheduler: Scheduler } {
  const runs = new Runs();
  const pause = (): Promise<void> => Promise.resolve();
  return { runs, scheduler: new Scheduler({ run: runs.run, maxBatch, maxTokens, pause }) };
}

describe("scheduler", () => {
  test("texts that arrive together share a run", async () => {
    const { runs, scheduler } = start();
    const all = [1, 2, 3].map((text) => scheduler.classify(windowsOf(text, 1), never));
    await runs.end();
    expect((await Promise.all(all)).map(({ injection }) => injection)).toEqual([0.1, 0.2, 0.3]);
    expect(runs.batches).toEqual([[1, 2, 3]]);
  });

  test("one run at a time; what arrives meanwhile shares the next", async () => {
    const { runs, scheduler } = start();
    const all = [scheduler.classify(windowsOf(1, 1), never)];
    await settled();
    all.push(...[2, 3].map((text) => scheduler.classify(windowsOf(text, 1), never)));
    await settled();
    expect(runs.batches).toEqual([[1]]);
    await runs.end();
    expect(runs.batches).toEqual([[1], [2, 3]]);
    await runs.end();
    await Promise.all(all);
  });

  test("a long text fills runs alone, and then takes turns with others", async () => {
    const { runs, scheduler } = start();
    const long = scheduler.classify(windowsOf(1, 14), never);
    await settled();
    const short = [2, 3].map((text) => scheduler.classify(windowsOf(text, 1), never));
    const second = scheduler.classify(windowsOf(4, 3), never);
    await runs.end();
    await runs.end();
    await Promise.all(short);
    for (let run = 0; run < 4; run += 1) await runs.end();
    expect((await long).injection).toBe(0.1);
    expect((await second).injection).toBe(0.4);
    expect(runs.batches).toEqual([
      [1, 1, 1, 1],
      [1, 2, 3, 4],
      [1, 4, 1, 4],
      [1, 1, 1, 1],
      [1, 1, 1],
    ]);
  });

  test("a run has a bounded number of tokens with its padding; one window may have more", async () => {
    const { runs, scheduler } = start(16, 100);
    const all = [
      scheduler.classify(windowsOf(1, 2, 200), never),
      scheduler.classify(windowsOf(2, 1, 30), never),
      scheduler.classify(windowsOf(3, 1, 20), never),
      scheduler.classify(windowsOf(4, 1, 33), never),
      scheduler.classify(windowsOf(5, 1, 20), never),
    ];
    for (let run = 0; run < 4; run += 1) await runs.end();
    await Promise.all(all);
    expect(runs.batches).toEqual([[1], [2, 3, 4], [5], [1]]);
  });

  test("what arrives between two runs takes part in the next", async () => {
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let pauses = 0;
    const runs = new Runs();
    const scheduler = new Scheduler({
      run: runs.run,
      maxBatch: 1,
      maxTokens: 100,
      pause: () => gates[pauses++]?.promise ?? Promise.resolve(),
    });
    const long = scheduler.classify(windowsOf(1, 3), never);
    gates[0]?.resolve();
    await runs.end();
    const short = scheduler.classify(windowsOf(2, 1), never);
    gates[1]?.resolve();
    for (let run = 0; run < 3; run += 1) await runs.end();
    await Promise.all([long, short]);
    expect(runs.batches).toEqual([[1], [1], [2], [1]]);
  });

  test("windows of very different length do not share a run, and nobody is left out", async () => {
    const { runs, scheduler } = start();
    const all = [
      scheduler.classify(windowsOf(1, 3, 512), never),
      scheduler.classify(windowsOf(2, 1, 10), never),
      scheduler.classify(windowsOf(3, 1, 20), never),
      scheduler.classify(windowsOf(4, 1, 21), never),
    ];
    for (let run = 0; run < 4; run += 1) await runs.end();
    await Promise.all(all);
    expect(runs.batches).toEqual([[1, 1, 1], [2, 3], [4]]);
  });

  test("aborted: the remaining windows are not run, and others are not affected", async () => {
    const { runs, scheduler } = start(1);
    const aborter = new AbortController();
    const gone = scheduler.classify(windowsOf(1, 100), aborter.signal);
    const stays = scheduler.classify(windowsOf(2, 2), never);
    await settled();
    aborter.abort(new Error("gone"));
    await expect(gone).rejects.toThrow("gone");
    for (let run = 0; run < 3; run += 1) await runs.end();
    expect((await stays).injection).toBe(0.2);
    expect(runs.batches).toEqual([[1], [2], [2]]);
    await expect(scheduler.classify(windowsOf(3, 1), aborter.signal)).rejects.toThrow("gone");
    expect(runs.batches).toHaveLength(3);
  });

  test("a run that fails fails its texts only", async () => {
    const { runs, scheduler } = start(1);
    const bad = scheduler.classify(windowsOf(1, 5), never);
    const good = scheduler.classify(windowsOf(2, 1), never);
    const failed = expect(bad).rejects.toThrow("broken");
    await runs.end(new Error("broken"));
    await runs.end();
    await failed;
    expect((await good).injection).toBe(0.2);
    expect(runs.batches).toEqual([[1], [2]]);
    const later = scheduler.classify(windowsOf(3, 1), never);
    await runs.end();
    await later;
  });

  test("windows that cannot be made fail their text only", async () => {
    const { runs, scheduler } = start(1);
    function* broken(): Generator<TokenWindow> {
      yield windowOf(1);
      throw new Error("not a text");
    }
    const bad = scheduler.classify(broken(), never);
    const good = scheduler.classify(windowsOf(2, 1), never);
    await expect(bad).rejects.toThrow("not a text");
    await runs.end();
    await runs.end();
    expect((await good).injection).toBe(0.2);
  });

  test("a text without a window is benign", async () => {
    const { runs, scheduler } = start();
    expect(await scheduler.classify([], never)).toEqual({ benign: 1, injection: 0, jailbreak: 0 });
    expect(runs.batches).toEqual([]);
  });
});
