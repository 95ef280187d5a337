import { describe, expect, test } from "vitest";
import type { ProviderInstance, ProviderPlugin } from "../providers/contract.ts";
import { request } from "../providers/testing.ts";
import type { BindingSpec, BindingSpecs } from "../resources/binding-spec.ts";
import { judge } from "./judge.ts";
import { applySpecs, type StartedBinding } from "./reload.ts";

const plugin = {
  providerName: "github",
  scopeKeys: {},
  scopeIgnoresCase: false,
  credentialHeaders: [],
  credentialQuery: [],
} as unknown as ProviderPlugin;

const instance = {
  resolveAction: () => ({
    kind: "resolved",
    actions: [{ action: "things:read", resources: [{ kind: "none" }] }],
  }),
} as unknown as ProviderInstance;

function spec(name: string, changes: Partial<BindingSpec> = {}): BindingSpec {
  return {
    name,
    type: "github",
    auth: { type: "token", env: { token: "SVC_SECRET_A" } },
    config: {},
    policy: { allow: undefined, deny: [], httpRules: [] },
    scope: {},
    audit: { enforcement: "enforce", logRequests: false },
    ...changes,
  };
}

function started(name: string): StartedBinding {
  return { name, plugin, instance, hosts: [`${name}.example`], spec: spec(name) };
}

const running = [started("one"), started("two")];
const denyAll = { policy: { allow: undefined, deny: ["*"], httpRules: [] } };

function apply(...bindings: readonly BindingSpec[]) {
  const specs: BindingSpecs = { version: 1, workload: "default/a", bindings: [...bindings] };
  const { snapshot, waiting } = applySpecs({ version: "2", specs }, running);
  const kindOf = (host: string): string => judge(request(`GET https://${host}/`), snapshot).kind;
  return { waiting, one: kindOf("one.example"), two: kindOf("two.example") };
}

describe("a new version of the specs", () => {
  test("with the same Providers waits for nothing", () => {
    expect(apply(spec("one"), spec("two"))).toEqual({
      waiting: [],
      one: "permitted",
      two: "permitted",
    });
  });

  test("with a new Provider is in force for the others: one that denies more denies at once", () => {
    expect(apply(spec("one", denyAll), spec("two"), spec("three"))).toEqual({
      waiting: ["Provider three (github) is new."],
      one: "denied",
      two: "permitted",
    });
  });

  test("without a Provider denies its host at once", () => {
    expect(apply(spec("two"))).toEqual({ waiting: [], one: "denied", two: "permitted" });
  });

  test("with a Provider of another type denies its host until the restart", () => {
    expect(apply(spec("one", { type: "aws" }), spec("two"))).toEqual({
      waiting: ["Provider one (aws) is new."],
      one: "denied",
      two: "permitted",
    });
  });

  test("with another Secret, other hosts or settings says so, and its policy is in force", () => {
    const auth = { type: "token", env: { token: "SVC_SECRET_B" } };
    const changes = { auth, hosts: ["x.example"], config: { region: "eu" }, ...denyAll };
    expect(apply(spec("one", changes), spec("two"))).toEqual({
      waiting: ["Provider one has another spec.hosts, spec.auth, spec.config."],
      one: "denied",
      two: "permitted",
    });
  });
});
