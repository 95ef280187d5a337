/** The counters and the limits of each kind of caller. */
import { describe, expect, test } from "vitest";
import type {
  AccessKeyPolicy,
  AgentLimits,
  AgentPolicy,
  ModelProviderPolicy,
  PolicySnapshot,
} from "../policy/snapshot.ts";
import type { Check } from "./contract.ts";
import { countsCost, type LimitSubject, subjectOf } from "./subject.ts";

const NO_LIMITS: AgentLimits = {
  requestsPerMinute: undefined,
  maxConcurrentRequests: undefined,
  maxTokensPerDay: undefined,
  maxTokensPerRequest: undefined,
  maxMicroUsdPerDay: undefined,
};
const PROVIDER = "default/openai";

function ofAgent(limits: Partial<AgentLimits> = {}): LimitSubject {
  const agent: Partial<AgentPolicy> = {
    kind: "agent",
    namespace: "default",
    name: "a",
    limits: { ...NO_LIMITS, ...limits },
  };
  return subjectOf(agent as AgentPolicy, snapshot({}));
}

function snapshot(providers: Readonly<Record<string, Partial<ModelProviderPolicy>>>) {
  return { providers: new Map(Object.entries(providers)) } as unknown as PolicySnapshot;
}

function ofKey(
  limits: Partial<AccessKeyPolicy["limits"]> = {},
  providers: Parameters<typeof snapshot>[0] = {},
): LimitSubject {
  const key: Partial<AccessKeyPolicy> = {
    kind: "key",
    namespace: "default",
    name: "k",
    providerKey: PROVIDER,
    limits: {
      maxTokensPerDay: undefined,
      maxRequestsPerDay: undefined,
      requestsPerMinute: undefined,
      ...limits,
    },
  };
  return subjectOf(key as AccessKeyPolicy, snapshot(providers));
}

describe("an agent", () => {
  test("without limits is counted, and never refused", () => {
    expect(ofAgent()).toEqual({
      scope: "agent/default/a",
      accounts: ["agent"],
      checks: [],
      maxTokensPerRequest: undefined,
    });
  });

  test.each<[limit: Partial<AgentLimits>, check: Check]>([
    [{ maxConcurrentRequests: 3 }, { kind: "concurrency", account: "agent", limit: 3 }],
    [{ requestsPerMinute: 4 }, { kind: "rate", account: "agent", limit: 4, windowMs: 60_000 }],
    [{ maxTokensPerDay: 5 }, { kind: "daily", account: "agent", unit: "tokens", limit: 5 }],
    [{ maxMicroUsdPerDay: 6 }, { kind: "daily", account: "agent", unit: "microUsd", limit: 6 }],
  ])("with %j has this check and no other, also if the limit is 0", (limits, check) => {
    expect(ofAgent(limits).checks).toEqual([check]);
    const [[name] = []] = Object.entries(limits);
    expect(ofAgent({ [String(name)]: 0 }).checks).toEqual([{ ...check, limit: 0 }]);
  });

  test("with every limit is refused by what ends soonest first", () => {
    const { checks, maxTokensPerRequest } = ofAgent({
      requestsPerMinute: 1,
      maxConcurrentRequests: 2,
      maxTokensPerDay: 3,
      maxTokensPerRequest: 4,
      maxMicroUsdPerDay: 5,
    });
    expect(checks.map(({ kind, limit }) => [kind, limit])).toEqual([
      ["concurrency", 2],
      ["rate", 1],
      ["daily", 3],
      ["daily", 5],
    ]);
    expect(maxTokensPerRequest).toBe(4);
  });
});

describe("an access key", () => {
  test("counts on itself and on its provider, whichever limits there are", () => {
    expect(ofKey()).toEqual({
      scope: "external/default/openai",
      accounts: ["provider", "key/k"],
      checks: [],
      maxTokensPerRequest: undefined,
    });
  });

  test("has its own limits and those of its provider, each on its account", () => {
    const others = { "default/other": { external: { maxTokensPerDay: 1 } } };
    const providers = { [PROVIDER]: { external: { maxTokensPerDay: 9 } }, ...others };
    expect(ofKey({ maxTokensPerDay: 7, maxRequestsPerDay: 8 }, providers).checks).toEqual([
      { kind: "daily", account: "key/k", unit: "requests", limit: 8 },
      { kind: "daily", account: "key/k", unit: "tokens", limit: 7 },
      { kind: "daily", account: "provider", unit: "tokens", limit: 9 },
    ]);
  });

  test("has its own rate", () => {
    expect(ofKey({ requestsPerMinute: 5 }, {}).checks).toEqual([
      { kind: "rate", account: "key/k", limit: 5, windowMs: 60_000 },
    ]);
  });

  test.each([
    ["that is not in use", {}],
    ["without external access", { [PROVIDER]: { external: undefined } }],
    ["without a limit", { [PROVIDER]: { external: { maxTokensPerDay: undefined } } }],
  ])("of a provider %s keeps its own limits", (_name, providers) => {
    expect(ofKey({ maxRequestsPerDay: 1 }, providers).checks).toEqual([
      { kind: "daily", account: "key/k", unit: "requests", limit: 1 },
    ]);
  });
});

test.each<[name: string, subject: LimitSubject, counts: boolean]>([
  ["nothing", ofAgent(), false],
  ["calls", ofAgent({ requestsPerMinute: 1, maxConcurrentRequests: 1 }), false],
  ["requests a day", ofKey({ maxRequestsPerDay: 1 }), false],
  ["tokens of a request", ofAgent({ maxTokensPerRequest: 1 }), true],
  ["tokens a day", ofAgent({ maxTokensPerDay: 1 }), true],
  ["money", ofAgent({ requestsPerMinute: 1, maxMicroUsdPerDay: 1 }), true],
  ["requests and tokens a day", ofKey({ maxRequestsPerDay: 1, maxTokensPerDay: 1 }), true],
])("the cost of a call must be known where a limit counts %s: %#", (_name, subject, counts) => {
  expect(countsCost(subject)).toBe(counts);
});
