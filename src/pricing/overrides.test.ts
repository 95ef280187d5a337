import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { FakeClock } from "../platform/testing.ts";
import type { WatchedFile } from "../platform/watched-file.ts";
import { PriceFileError } from "../resources/model-prices.ts";
import { parsePriceFile, watchOverrides } from "./overrides.ts";
import type { PriceTable } from "./price-book.ts";
import { createPriceBook } from "./price-book.ts";

describe("parsePriceFile", () => {
  test("reads a map of models, numbers as they are written", () => {
    const table = parsePriceFile(
      `my-model: {input: 0.10, output: 2}\n"llama-*":\n  input: 1\n  cachedInput: ` +
        `0.000001\n  output: "3.5"\n`,
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
        '{"m": {"input": 1.5, "output": 2, "longPrompt": {"above": 1000, "inputPercent": ' +
          '200, "outputPercent": 150}}}',
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
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: svc-model-prices, namespace: " +
          "svc}\ndata:\n  a.yaml: |\n    m: {input: 1, output: 2}\n  b: |\n    n: {input: 3, " +
          "output: 4}\n",
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
  const dir = mkdtempSync(path.join(os.tmpdir(), "svc-prices-"));
  const file = path.join(dir, "prices.yaml");
  let changes: PriceTable[];
  let errors: string[];

  const watch = (): Promise<WatchedFile> =>
    watchOverrides({
      path: file,
      clock: new FakeClock(),
      intervalMs: 60_000,
      onChange: (table) => changes.push(table),
      onError: (error) => errors.push(error.message),
    });

  beforeEach(() => {
    rmSync(file, { force: true });
    changes = [];
    errors = [];
  });

  afterAll(() => rmSync(dir, { recursive: true }));

  test("tells of changes only, and keeps the last good prices", async () => {
    writeFileSync(file, "m: {input: 1, output: 1}");
    const overrides = await watch();
    await overrides.refresh();
    expect(changes).toEqual([{ m: { input: "1", output: "1" } }]);

    writeFileSync(file, "m: {input: bad, output: 1}");
    await overrides.refresh();
    await overrides.refresh();
    expect([errors.length, changes.length]).toEqual([1, 1]);

    writeFileSync(file, "m: {input: 2, output: 1}");
    await overrides.refresh();
    expect(changes.at(-1)).toEqual({ m: { input: "2", output: "1" } });

    rmSync(file);
    await overrides.refresh();
    expect(changes.at(-1)).toEqual({});
    overrides.close();
  });

  test("no file is no error, and no change", async () => {
    const overrides = await watch();
    expect([changes, errors]).toEqual([[], []]);
    overrides.close();
  });
});
