import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { createLimits } from "../limits/limits.ts";
import { CapturedLog, FakeClock } from "../platform/testing.ts";
import type { ObjectStatus } from "../policy/status.ts";
import { parseDocuments } from "../resources/parse.ts";
import { buildResourceSet } from "../resources/resource-set.ts";
import { usageFrom } from "./usage.ts";

const RESOURCES = [
  { kind: "Agent", metadata: { name: "a" }, spec: { models: [] } },
  { kind: "ModelProvider", metadata: { name: "m" }, spec: { provider: "mock" } },
  {
    kind: "Provider",
    metadata: { name: "p" },
    spec: { type: "github", auth: { type: "token", secretRef: "gh" } },
  },
  {
    kind: "AccessKey",
    metadata: { name: "k" },
    spec: { modelProvider: "m", keySHA256: "1".repeat(64) },
  },
].map((object) => JSON.stringify({ apiVersion: "svc.io/v1", ...object }));

test("each object shows what its own counter counted today", async () => {
  const clock = new FakeClock();
  const { log } = new CapturedLog();
  const limits = createLimits({ clock, log, registry: new Registry(), processId: "p1" });
  const { resources, problems } = parseDocuments(RESOURCES.join("\n---\n"), "f.yaml");
  expect(problems).toEqual([]);
  const set = buildResourceSet(resources);
  const count = (scope: string, accounts: string[], requests: number): void =>
    limits.record(
      scope,
      accounts,
      { tokens: 10 * requests, microUsd: 5, requests, unpriced: true },
      clock.now(),
    );
  count("agent/default/a", ["agent"], 1);
  count("external/default/m", ["provider", "key/k"], 2);
  count("external-service/default/p", ["provider"], 3);
  const objects = resources.map(
    ({ kind, namespace, name }) => ({ kind, namespace, name }) as ObjectStatus,
  );
  const usage = await usageFrom(limits, () => set)(objects);
  expect(Object.fromEntries(usage)).toEqual({
    "Agent/default/a": {
      tokensToday: 10,
      requestsToday: 1,
      costTodayUSD: 0.000005,
      unpricedToday: 1,
      inFlight: 0,
    },
    "ModelProvider/default/m": { tokensToday: 20, requestsToday: 2 },
    "Provider/default/p": { requestsToday: 3 },
    "AccessKey/default/k": {
      tokensToday: 20,
      requestsToday: 2,
      costTodayUSD: 0.000005,
      unpricedToday: 1,
      inFlight: 0,
    },
  });
});
