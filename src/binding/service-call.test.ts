/** Audit records of calls: the names that they contain are those that people search for. */
import { expect, test } from "vitest";
import type { ActionResolution, ServiceResource } from "../providers/contract.ts";
import { request } from "../providers/testing.ts";
import { requestFields } from "./service-call.ts";
import type { ServicePermit } from "./verdict.ts";

function fieldsOf(resources: readonly ServiceResource[]): ReturnType<typeof requestFields> {
  const resolution: ActionResolution = {
    kind: "resolved",
    actions: [{ action: "blobs:read", resources }],
  };
  const verdict = { kind: "permitted", binding: undefined, resolution, violations: [] };
  return requestFields({
    arrival: {
      id: "1",
      request: request("GET https://host.example/path"),
      snapshot: { version: "1", workload: "w", bindingsOf: () => [] },
      startedAt: 0,
    },
    verdict: verdict as unknown as ServicePermit,
  });
}

test("a resource is recorded by the name that says most", () => {
  expect(
    fieldsOf([
      { kind: "scoped", key: "containers", value: "reports/con", shown: "reports/con/a.csv" },
      { kind: "scoped", key: "containers", value: "reports/con", shown: "reports/con/b.csv" },
      { kind: "scoped", key: "subscriptions", value: "s" },
      { kind: "none" },
      { kind: "unscopable", reason: "x" },
    ]).resource,
  ).toEqual(["reports/con/a.csv", "reports/con/b.csv", "s"]);
});

test("resources without end are recorded up to a thousand", () => {
  const resources = Array.from({ length: 200_000 }, (_, n): ServiceResource => ({
    kind: "scoped",
    key: "arns",
    value: `arn:aws:s3:::b/${n}`,
  }));
  const { resource } = fieldsOf(resources);
  expect(resource).toHaveLength(1_001);
  expect((resource as readonly string[]).at(-1)).toMatch(/^…199000 more, sha256:[0-9a-f]{32}$/);
});
