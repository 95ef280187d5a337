import { describe, expect, test } from "vitest";
import { guardSpecsSchema } from "../resources/guard-spec.ts";
import { keyOf } from "../resources/metadata.ts";
import { parseObject } from "../resources/parse.ts";
import type { GuardBinding } from "../resources/guard-binding.ts";
import { resolveGuards } from "./guards.ts";

function parsed(kind: string, name: string, spec: object, namespace = "team") {
  const result = parseObject(
    { apiVersion: "svc.io/v1", kind, metadata: { name, namespace }, spec },
    "controller",
  );
  if (result.kind !== "ok") throw new Error(JSON.stringify(result.findings));
  return result.resource;
}

function agent(guards: readonly object[]) {
  const resource = parsed("Agent", "a", { guards });
  if (resource.kind !== "Agent") throw new Error("no Agent");
  return resource;
}

function bindings(...resources: readonly ReturnType<typeof parsed>[]) {
  return new Map(resources.map((resource) => [keyOf(resource), resource as GuardBinding] as const));
}

const ENFORCED = parsed("GuardBinding", "strict", { classifier: { type: "stub" } });
const AUDITED = parsed("GuardBinding", "lax", {
  classifier: { type: "custom", endpoint: "http://classifier:9000", auth: { secretRef: "s" } },
  enforcement: "audit",
  thresholds: { injection: 0.9 },
});

const resolve = (guards: readonly object[]) =>
  resolveGuards(agent(guards), bindings(ENFORCED, AUDITED));

test("a guard is its binding, with what the Agent scans", () => {
  const { resolved, problems } = resolve([
    { binding: "strict" },
    { binding: "lax", scan: { prompts: false, toolResults: { tools: ["*"] } } },
  ]);
  expect(problems).toEqual([]);
  expect(resolved).toEqual({
    version: 1,
    workload: "team/a",
    guards: [
      {
        binding: "strict",
        classifier: { type: "stub" },
        thresholds: { injection: 0.5, jailbreak: 0.5 },
        enforcement: "enforce",
        timeoutMs: 2000,
        audit: { savePayload: true, maxPayloadChars: 2000 },
        scan: { prompts: true, responses: false },
      },
      {
        binding: "lax",
        classifier: {
          type: "custom",
          endpoint: "http://classifier:9000",
          auth: {
            secretRef: "s",
            secretKey: "token",
            header: "Authorization",
            prefix: "Bearer ",
          },
        },
        thresholds: { injection: 0.9, jailbreak: 0.5 },
        enforcement: "audit",
        timeoutMs: 2000,
        audit: { savePayload: true, maxPayloadChars: 2000 },
        scan: { prompts: false, responses: false, toolResults: { tools: ["*"] } },
      },
    ],
  });
  expect(guardSpecsSchema.parse(JSON.parse(JSON.stringify(resolved)))).toEqual(resolved);
});

describe("an override", () => {
  test.each([
    ["strict", undefined, "enforce", []],
    ["strict", "enforce", "enforce", []],
    ["strict", "audit", "enforce", ["RelaxedGuard"]],
    ["lax", undefined, "audit", []],
    ["lax", "audit", "audit", []],
    ["lax", "enforce", "enforce", []],
  ])("%s with %s is %s", (binding, own, enforcement, reasons) => {
    const { resolved, problems } = resolve([
      { binding, ...(own === undefined ? {} : { enforcement: own }) },
    ]);
    expect(resolved.guards.map((guard) => guard.enforcement)).toEqual([enforcement]);
    expect(problems.map(({ reason }) => reason)).toEqual(reasons);
  });
});

test("a binding that does not exist in the Agent's namespace is a problem", () => {
  const elsewhere = parsed("GuardBinding", "strict", { classifier: { type: "stub" } }, "other");
  const { resolved, problems } = resolveGuards(agent([{ binding: "strict" }]), bindings(elsewhere));
  expect(resolved.guards).toEqual([]);
  expect(problems).toEqual([
    {
      reason: "UnknownGuardBinding",
      binding: "strict",
      message:
        "spec.guards[0]: there is no GuardBinding strict in the namespace team. Create it, or " +
        "correct the name.",
    },
  ]);
});

test("an Agent without guards has none", () =>
  expect(resolve([])).toEqual({
    resolved: { version: 1, workload: "team/a", guards: [] },
    problems: [],
  }));
