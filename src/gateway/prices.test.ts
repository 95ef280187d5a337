import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { CapturedLog, FakeClock } from "../platform/testing.ts";
import { openPrices } from "./prices.ts";

test("the ConfigMap overrides the shipped prices, the file overrides both", async () => {
  const dir = mkdtempSync(path.join(os.tmpdir(), "svc-prices-"));
  const pricesFile = path.join(dir, "prices.yaml");
  writeFileSync(pricesFile, "of-file: {input: 1, output: 1}");
  const prices = await openPrices(
    { pricesFile, pricesReloadMs: 60_000 },
    new FakeClock(),
    new CapturedLog().log,
  );
  try {
    const input = (model: string): bigint | undefined => prices.current().priceOf(model)?.input;
    const shipped = input("gpt-5");
    prices.setConfigMap({
      "gpt-5": { input: "7", output: "7" },
      "of-file": { input: "9", output: "9" },
    });
    expect([input("gpt-5"), input("of-file")]).toEqual([7_000_000n, 1_000_000n]);
    prices.setConfigMap({});
    expect([input("gpt-5"), input("of-file")]).toEqual([shipped, 1_000_000n]);
    expect(shipped).not.toBe(7_000_000n);
  } finally {
    prices.close();
    rmSync(dir, { recursive: true });
  }
});
