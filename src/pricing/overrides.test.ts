import { describe, expect, test } from "vitest";
import type { WatchOverridesOptions } from "./overrides.ts";
import { parsePriceFile, PriceFileError, watchOverrides } from "./overrides.ts";
import type { PriceTable } from "./price-book.ts";
import { createPriceBook } from "./price-book.ts";

describe("parsePriceFile", () => {
  test("reads a map of models, numbers as they are written", () => {
    const table = parsePriceFile(
      `my-model: {input: 0.10, output: 2}\n"llama-*":\n  input: 1\n  cachedInput: 0.000001\n  output: "3.5"\n`,
    );
    expect(table).toEqual({
      "my-model": { input: "0.10", output: "2" },
      "llama-*": { input: "1", cachedInput: "0.000001", output: "3.5" },
    });
    expect(createPriceBook({}, table).priceOf("llama-3")?.cachedInput).toBe(1n);
  });

  test("reads JSON, and long prompts", () =>
    expect(
      parsePriceFile(
        '{"m": {"input": 1.5, "output": 2, "longPrompt": {"above": 1000, "inputPercent": 200, "outputPercent": 150}}}',
      ),
    ).toEqual({
      m: {
        input: "1.5",
        output: "2",
        longPrompt: { above: 1000, inputPercent: 200, outputPercent: 150 },
      },
    }));

  test("reads the ConfigMap svc-model-prices, all its keys", () =>
    expect(
      parsePriceFile(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: svc-model-prices, namespace: svc}\ndata:\n  a.yaml: |\n    m: {input: 1, output: 2}\n  b: |\n    n: {input: 3, output: 4}\n",
      ),
    ).toEqual({ m: { input: "1", output: "2" }, n: { input: "3", output: "4" } }));

  test.each([[""], ["# nothing\n"], ["{}"]])("%j has no prices", (text) =>
    expect(parsePriceFile(text)).toEqual({}),
  );

  test.each([
    ["m: {input: 1}", "m.output: is required"],
    ["m: {input: 1, output: 2, ouput: 3}", "m.ouput: unknown field; did you mean output?"],
    ["m: {input: 1e3, output: 2}", "m.input: must be US dollars"],
    ["m: {input: 0.0000001, output: 2}", "m.input: must be US dollars"],
    ["m*x: {input: 1, output: 2}", "must be a model name"],
    ["- a", "must be an object"],
    ["m: {input: 1, output: 2}\nm: {input: 1, output: 2}", "not valid YAML"],
    ["{", "not valid YAML"],
    ["kind: ConfigMap\nmetadata: {name: other}\ndata: {}", "is called svc-model-prices"],
    [
      "kind: ConfigMap\nmetadata: {name: svc-model-prices}\ndata: {m: {input: 1, output: 2}}",
      "data.m: must be text",
    ],
    [
      "kind: ConfigMap\nmetadata: {name: svc-model-prices}\ndata: {p: 'm: {input: x, output: 1}'}",
      "data.p: m.input: must be",
    ],
  ])("%j is refused", (text, message) => {
    expect(() => parsePriceFile(text)).toThrow(PriceFileError);
    expect(() => parsePriceFile(text)).toThrow(message);
  });
});

describe("watchOverrides", () => {
  const missing = () =>
    Promise.reject(Object.assign(new Error("no such file"), { code: "ENOENT" }));

  function setUp(first: () => Promise<string>) {
    const state = {
      read: first,
      changes: [] as PriceTable[],
      errors: [] as string[],
      tick: () => undefined as void,
      interval: 0,
      stopped: false,
    };
    const options: WatchOverridesOptions = {
      path: "/prices.yaml",
      onChange: (table) => state.changes.push(table),
      onError: (error) => state.errors.push(error.message),
      readText: () => state.read(),
      every: (task, intervalMs) => {
        state.tick = task;
        state.interval = intervalMs;
        return () => (state.stopped = true);
      },
    };
    return { state, options };
  }

  test("reads at once and every 60 s, tells of changes only, and keeps the last good prices", async () => {
    const { state, options } = setUp(() => Promise.resolve("m: {input: 1, output: 1}"));
    const overrides = await watchOverrides(options);
    expect([state.interval, state.changes.length, overrides.current()]).toEqual([
      60_000,
      1,
      { m: { input: "1", output: "1" } },
    ]);
    await overrides.refresh();
    expect(state.changes).toHaveLength(1);

    state.read = () => Promise.resolve("m: {input: bad, output: 1}");
    await overrides.refresh();
    await overrides.refresh();
    expect([state.errors.length, state.changes.length, overrides.current()]).toEqual([
      1,
      1,
      { m: { input: "1", output: "1" } },
    ]);

    state.read = () => Promise.resolve("m: {input: 2, output: 1}");
    await overrides.refresh();
    expect(overrides.current()).toEqual({ m: { input: "2", output: "1" } });

    state.read = missing;
    await overrides.refresh();
    expect([state.changes.at(-1), overrides.current()]).toEqual([{}, {}]);
    overrides.close();
    expect(state.stopped).toBe(true);
  });

  test("no file is no error; one that cannot be read is, once, and keeps the prices", async () => {
    const { state, options } = setUp(missing);
    const overrides = await watchOverrides(options);
    expect([state.changes, state.errors]).toEqual([[], []]);
    state.read = () => Promise.resolve("m: {input: 1, output: 1}");
    await overrides.refresh();
    state.read = () =>
      Promise.reject(Object.assign(new Error("not permitted"), { code: "EACCES" }));
    await overrides.refresh();
    await overrides.refresh();
    expect([state.errors, overrides.current()]).toEqual([
      ["not permitted"],
      { m: { input: "1", output: "1" } },
    ]);
  });
});
