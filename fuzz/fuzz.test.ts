/**
 * A short, deterministic run as part of `make test`. `make fuzz` runs each target for
 * SVC_FUZZ_SECONDS with its own seed; a finding is printed with its seed and becomes a test.
 */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { TARGETS } from "./targets.ts";

const SECONDS = Number(process.env["SVC_FUZZ_SECONDS"] ?? 0);

const SHORT = { seed: 4_711, numRuns: 300 };
const LONG = { interruptAfterTimeLimit: SECONDS * 1_000, numRuns: Number.MAX_SAFE_INTEGER };

test.each(Object.keys(TARGETS))("%s", { timeout: (SECONDS + 60) * 1_000 }, async (name) => {
  const target = TARGETS[name];
  if (target === undefined) throw new Error(name);
  const options = SECONDS === 0 ? SHORT : LONG;
  const details = await fc.check(target(), options);
  if (details.failed)
    throw new Error(fc.defaultReportMessage(details), { cause: details.errorInstance });
  expect(details.numRuns).toBeGreaterThan(0);
  if (SECONDS > 0) process.stdout.write(`${name}: ${details.numRuns} runs, seed ${details.seed}\n`);
});
