import { describe, expect, test } from "vitest";
import type { GuardBinding } from "../resources/guard-binding.ts";
import type { GuardItem } from "../resources/guard-list.ts";
import { guardSpecsSchema } from "../resources/guard-spec.ts";
import { keyOf } from "../resources/metadata.ts";
import { parseObject } from "../resources/parse.ts";
import { guardsOfAgent, guardSpecsOf, resolveGuards } from "./guards.ts";

function parsed(kind: string, name: string, spec: object, metadata: object = {}) {
  const result = parseObject(
    { apiVersion: "svc.io/v1", kind, metadata: { name, namespace: "team", ...metadata }, spec },
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

/** Items of a list as a manifest has them. */
const items = (guards: readonly object[]): readonly GuardItem[] => agent(guards).spec.guards ?? [];

function scopeOf(env: Record<string, string>, ...resources: readonly ReturnType<typeof parsed>[]) {
  const bindings = new Map(
    resources.map((resource) => [keyOf(resource), resource as GuardBinding] as const),
  );
  return { bindings, env };
}

const ENFORCED = parsed("GuardBinding", "strict", { classifier: { type: "stub" } });
const AUDITED = parsed("GuardBinding", "lax", {
  classifier: { type: "custom", endpoint: "http://classifier:9000", auth: { secretRef: "s" } },
  enforcement: "audit",
  thresholds: { injection: 0.9 },
});
const SCOPE = scopeOf({}, ENFORCED, AUDITED);

test("a guard is its binding, with what the Agent scans", () => {
  const writer = agent([
    { binding: "strict" },
    { binding: "lax", scan: { prompts: false, toolResults: { tools: ["*"] } } },
  ]);
  const resolved = guardsOfAgent(writer, SCOPE);
  expect(resolved.problems).toEqual([]);
  const specs = guardSpecsOf(writer, resolved);
  expect(specs).toEqual({
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
  expect(guardSpecsSchema.parse(JSON.parse(JSON.stringify(specs)))).toEqual(specs);
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
    const guard = { binding, ...(own === undefined ? {} : { enforcement: own }) };
    const { guards, problems } = guardsOfAgent(agent([guard]), SCOPE);
    expect(guards.map((one) => one.enforcement)).toEqual([enforcement]);
    expect(problems.map(({ reason }) => reason)).toEqual(reasons);
  });
});

describe("several lists", () => {
  const tools = (...names: readonly string[]) => ({ toolResults: { tools: names } });
  const merged = (...lists: readonly (readonly object[])[]) =>
    resolveGuards(
      "team",
      lists.map((list, index) => ({ place: `list${index}`, items: items(list) })),
      SCOPE,
    );

  test.each([
    ["audit", "audit", "audit"],
    ["audit", "enforce", "enforce"],
    ["enforce", "audit", "enforce"],
    [undefined, "enforce", "enforce"],
    ["enforce", undefined, "enforce"],
    [undefined, undefined, "audit"],
  ])("a binding with %s and %s is %s", (first, second, enforcement) => {
    const guard = (own: string | undefined) => [
      { binding: "lax", ...(own === undefined ? {} : { enforcement: own }) },
    ];
    const { guards, problems } = merged(guard(first), guard(second));
    expect(guards.map((one) => one.enforcement)).toEqual([enforcement]);
    expect(problems).toEqual([]);
  });

  test.each([
    [{}, {}, { prompts: true, responses: false }],
    [{ prompts: false }, {}, { prompts: true, responses: false }],
    [{ prompts: false }, { prompts: false }, { prompts: false, responses: false }],
    [{ responses: true }, {}, { prompts: true, responses: true }],
    [tools("a"), {}, { prompts: true, responses: false, ...tools("a") }],
    [
      tools("a", "b"),
      tools("b", "c"),
      { prompts: true, responses: false, ...tools("a", "b", "c") },
    ],
    [tools("a"), tools("*"), { prompts: true, responses: false, ...tools("a", "*") }],
    [tools(), tools(), { prompts: true, responses: false }],
  ])("a binding that scans %j and %j scans %j", (first, second, scan) => {
    const { guards } = merged(
      [{ binding: "lax", scan: first }],
      [{ binding: "lax", scan: second }],
    );
    expect(guards.map((one) => one.scan)).toEqual([scan]);
  });

  test("different bindings all apply, in the order in which they are named", () => {
    const { guards } = merged([{ binding: "lax" }], [{ binding: "strict" }, { binding: "lax" }]);
    expect(guards.map(({ binding }) => binding.name)).toEqual(["lax", "strict"]);
  });

  test("each place is told; what denies calls comes first", () => {
    const { guards, problems } = merged(
      [{ binding: "strict", enforcement: "audit" }],
      [{ binding: "lax" }, { binding: "absent" }],
    );
    expect(guards.map(({ enforcement }) => enforcement)).toEqual(["enforce", "audit"]);
    expect(problems).toEqual([
      {
        reason: "UnknownGuardBinding",
        binding: "absent",
        fact: "list1[1]: there is no GuardBinding absent in the namespace team",
        message:
          "list1[1]: there is no GuardBinding absent in the namespace team. Create it, or " +
          "correct the name.",
      },
      {
        reason: "RelaxedGuard",
        binding: "strict",
        fact: 'list0[0].enforcement: "audit" would relax the GuardBinding strict, which enforces',
        message:
          'list0[0].enforcement: "audit" would relax the GuardBinding strict, which enforces. ' +
          "Remove it; an override can only tighten a binding.",
      },
    ]);
  });
});

describe("a binding that cannot be used is unknown", () => {
  const elsewhere = parsed(
    "GuardBinding",
    "strict",
    { classifier: { type: "stub" } },
    { namespace: "other" },
  );
  const optional = parsed(
    "GuardBinding",
    "strict",
    { classifier: { type: "stub" } },
    { annotations: { "svc.io/when-env": "GUARD" } },
  );
  const reasons = (scope: ReturnType<typeof scopeOf>) =>
    guardsOfAgent(agent([{ binding: "strict" }]), scope).problems.map(({ reason }) => reason);

  test.each([
    ["in no namespace", scopeOf({}), ["UnknownGuardBinding"]],
    ["in another namespace", scopeOf({}, elsewhere), ["UnknownGuardBinding"]],
    ["skipped", scopeOf({}, optional), ["UnknownGuardBinding"]],
    ["skipped by an empty variable", scopeOf({ GUARD: "" }, optional), ["UnknownGuardBinding"]],
    ["not skipped", scopeOf({ GUARD: "1" }, optional), []],
  ])("%s", (_, scope, expected) => expect(reasons(scope)).toEqual(expected));
});

test.each(["Strict", "STRICT", "strict ", "team/strict", "../other/strict", ""])(
  "a list cannot name a binding as %j",
  (binding) => expect(() => agent([{ binding }])).toThrow("spec"),
);

test("an Agent without guards has none", () =>
  expect(guardsOfAgent(agent([]), SCOPE)).toEqual({ guards: [], problems: [] }));
