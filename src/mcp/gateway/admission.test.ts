import { expect, test } from "vitest";
import type { AdmitRequest, Limits } from "../../limits/contract.ts";
import type { AccessKeyPolicy, McpServerPolicy } from "../../policy/snapshot.ts";
import { admitRequests } from "./admission.ts";

function admit(
  limits: Partial<AccessKeyPolicy["limits"]>,
  maxRequestsPerDay?: number,
): { readonly asked: AdmitRequest | undefined; readonly recorded: unknown[] } {
  let asked: AdmitRequest | undefined;
  const recorded: unknown[] = [];
  const counters = {
    admit: (request: AdmitRequest) => {
      asked = request;
      return { kind: "admitted", lease: { id: "c", scope: request.scope, day: "d" } };
    },
    settle: (_lease: unknown, used: unknown) => recorded.push(used),
    record: (...args: unknown[]) => recorded.push(args),
  } as unknown as Limits;
  const caller = { name: "k", limits } as AccessKeyPolicy;
  const server = { key: "default/s", maxRequestsPerDay } as McpServerPolicy;
  const result = admitRequests(counters, { caller, server, callId: "c", requests: 3, now: 7 });
  expect(result).toBeUndefined();
  return { asked, recorded };
}

const USED = { tokens: 0, microUsd: 0, requests: 3, unpriced: false };

test("requests without limits are counted", () => {
  expect(admit({})).toEqual({
    asked: undefined,
    recorded: [["external-service/default/s", ["provider", "key/k"], USED, 7]],
  });
});

test("each limit is checked on its account, and the requests count at once", () => {
  const { asked, recorded } = admit({ requestsPerMinute: 5, maxRequestsPerDay: 8 }, 9);
  expect(asked).toMatchObject({
    scope: "external-service/default/s",
    reserve: { requests: 3 },
    checks: [
      { kind: "rate", account: "key/k", limit: 5 },
      { kind: "daily", account: "key/k", unit: "requests", limit: 8 },
      { kind: "daily", account: "provider", unit: "requests", limit: 9 },
    ],
  });
  expect(recorded).toEqual([USED]);
});
