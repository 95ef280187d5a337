/** The rights of an access key, as compiled from its resource. */
import { describe, expect, test } from "vitest";
import type { AccessKeyPolicy } from "../policy/snapshot.ts";
import { parseDocuments } from "../resources/parse.ts";
import { buildResourceSet } from "../resources/resource-set.ts";
import { compilePolicy } from "./policy.ts";

const HASH = "0".repeat(64);

function key(
  restrictions: string,
  exposed = "",
): { readonly policy: AccessKeyPolicy; readonly reason: string | undefined } {
  const text = `
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {a: sk-literal}
---
apiVersion: svc.io/v1
kind: ModelProvider
metadata: {name: a}
spec:
  provider: openai
  apiKeySecretRef: {name: keys, key: a}
  externalAccess: {enabled: true}
  ${exposed}
---
apiVersion: svc.io/v1
kind: AccessKey
metadata: {name: laptop}
spec: {modelProvider: a, keySHA256: "${HASH}", restrictions: {${restrictions}}}
`;
  const { resources, problems } = parseDocuments(text, "f.yaml");
  expect(problems).toEqual([]);
  const { snapshot, statuses } = compilePolicy(buildResourceSet(resources), {
    env: {},
    now: 0,
    tokenHashesOf: (namespace, name) => [`${namespace}/${name}`],
    guardEndpoint: undefined,
    mockEndpoint: undefined,
  });
  const policy = snapshot.keysByHash.get(HASH)?.key;
  if (policy === undefined) throw new Error(JSON.stringify(statuses));
  return { policy, reason: statuses.find(({ name }) => name === "laptop")?.reason };
}

const grants = ({ policy }: { readonly policy: AccessKeyPolicy }): string[] =>
  policy.grants.map(({ ref }) => ref);

describe("an access key", () => {
  test("may be used from every address if none is given", () => {
    expect(key("").policy.allowsAddress("203.0.113.1")).toBe(true);
  });

  test("may only be used from the addresses that are given", () => {
    const { policy } = key('allowedCIDRs: ["10.0.0.0/8", "2001:db8::/32"]');
    expect(policy.allowsAddress("10.1.2.3")).toBe(true);
    expect(policy.allowsAddress("2001:db8::1")).toBe(true);
    expect(policy.allowsAddress("11.1.2.3")).toBe(false);
    expect(policy.allowsAddress("2001:db9::1")).toBe(false);
    expect(policy.allowsAddress("")).toBe(false);
  });

  test("has the models that both it and its provider allow", () => {
    expect(grants(key('allowedModels: ["m*", "x"]', 'allowedModels: ["m-1", "x*"]'))).toEqual([
      "a/m-1",
      "a/x",
    ]);
    expect(grants(key("", 'allowedModels: ["m-1", "x*"]'))).toEqual(["a/m-1", "a/x*"]);
  });

  test("has none that its provider denies", () => {
    const exposed = 'allowedModels: ["m*"], deniedModels: ["m-1", "m-secret*"]';
    const compiled = key(
      'allowedModels: ["m-1", "m-2", "m-secret-3", "m-secret*"]',
      exposed.replace(", deniedModels", "\n  deniedModels"),
    );
    expect(grants(compiled)).toEqual(["a/m-2"]);
    for (const model of ["m-1", "m-secret-3", "a/m-1"])
      expect(compiled.policy.resolveModel(model).kind).toBe("denied");
    expect(compiled.policy.resolveModel("a/m-2").kind).toBe("granted");
  });

  test.each(["", "m*", "*"])("resolves no pattern and no empty name: %j", (model) => {
    expect(key("").policy.resolveModel(model)).toEqual({ kind: "unknown" });
  });

  test.each([
    ["what its provider exposes", 'allowedModels: ["m-1"]', "Ready"],
    ["a pattern of what it exposes", 'allowedModels: ["m*"]', "Ready"],
    ["what it does not expose", 'allowedModels: ["m-1", "y"]', "DegradedRestrictions"],
    [
      "a pattern of what it does not expose",
      'allowedModels: ["m-1", "y*"]',
      "DegradedRestrictions",
    ],
    ["nothing that it exposes", 'allowedModels: ["y"]', "ModelNotAllowed"],
    ["a pattern of what it denies", 'allowedModels: ["m-1", "m-secret*"]', "DegradedRestrictions"],
  ])("that names %s", (_name, restrictions, reason) => {
    const exposed = 'allowedModels: ["m*"]\n  deniedModels: ["m-secret*"]';
    expect(key(restrictions, exposed).reason).toBe(reason);
  });
});
