/** Several Providers of one host: each request is judged by every one of them. */
import { describe, expect, test } from "vitest";
import type {
  ActionResolution,
  ProviderInstance,
  ProviderPlugin,
  ServiceRequest,
} from "../providers/contract.ts";
import { request } from "../providers/testing.ts";
import type { BindingSpec } from "../resources/binding-spec.ts";
import { type Binding, compileBindingPolicy, compileSnapshot } from "./binding.ts";
import { judge } from "./judge.ts";
import { bindingNames, type ServiceVerdict, violationsOf } from "./verdict.ts";

const HOST = "api.service.example";

/** `/<repository>/<action>` is that action on that repository. */
function resolveAction({ path }: ServiceRequest): ActionResolution {
  const [, owner = "", name = "", action] = path.split("/");
  if (action === undefined) return { kind: "unresolved", reason: "There is no action." };
  const value = `${owner}/${name}`;
  return {
    kind: "resolved",
    actions: [{ action, resources: [{ kind: "scoped", key: "repositories", value }] }],
  };
}

const plugin = {
  providerName: "github",
  scopeKeys: { repositories: "owner/name" },
  scopeIgnoresCase: false,
  credentialHeaders: ["x-key"],
  credentialQuery: ["key"],
} as unknown as ProviderPlugin;

function bound(name: string, spec: Partial<BindingSpec>, hosts: readonly string[]): Binding {
  const policy: BindingSpec = {
    name,
    type: "github",
    auth: { type: "token", env: {} },
    config: {},
    policy: { allow: undefined, deny: [], httpRules: [] },
    scope: {},
    audit: { enforcement: "enforce", logRequests: false },
    ...spec,
  };
  const instance = { resolveAction } as unknown as ProviderInstance;
  return { name, plugin, instance, hosts, policy: compileBindingPolicy(policy, plugin) };
}

const reader = bound(
  "reader",
  {
    policy: { allow: ["read"], deny: [], httpRules: [] },
    scope: { repositories: ["acme/readonly"] },
  },
  [HOST],
);
const writer = bound("writer", { scope: { repositories: ["acme/open"] } }, [HOST]);

function verdictOf(path: string, ...bindings: readonly Binding[]): ServiceVerdict {
  return judge(request(`POST https://${HOST}${path}`), compileSnapshot("1", "default/a", bindings));
}

describe("a host of two Providers, one that reads and one that writes", () => {
  test.each([
    ["/acme/readonly/read", "reader"],
    ["/acme/open/read", "writer"],
    ["/acme/open/write", "writer"],
  ])("%s goes out with the credential of %s", (path, name) => {
    for (const bindings of [
      [reader, writer],
      [writer, reader],
    ]) {
      expect(verdictOf(path, ...bindings)).toMatchObject({ kind: "permitted", binding: { name } });
    }
  });

  test.each([
    ["/acme/readonly/write", ["action_denied", "out_of_scope"]],
    ["/acme/secret/read", ["out_of_scope", "out_of_scope"]],
    ["/acme/open", ["unresolved_action", "unresolved_action"]],
    ["/ACME/open/write", ["action_denied", "out_of_scope"]],
  ])("%s is denied by both, and the denial names both", (path, codes) => {
    const verdict = verdictOf(path, reader, writer);
    expect(verdict.kind).toBe("denied");
    expect(bindingNames(verdict)).toEqual(["reader", "writer"]);
    expect(violationsOf(verdict).map(({ code }) => code)).toEqual(codes);
  });

  test("the first of several that allow it is used", () => {
    const other = bound("other", { scope: { repositories: ["acme/*"] } }, [HOST]);
    expect(verdictOf("/acme/open/write", other, writer).binding?.name).toBe("other");
    expect(verdictOf("/acme/open/write", writer, other).binding?.name).toBe("writer");
  });

  test("one in audit mode is used only where no other allows the request", () => {
    const audit = { enforcement: "audit", logRequests: false } as const;
    const lax = bound("lax", { scope: { repositories: ["acme/none"] }, audit }, [HOST]);
    expect(verdictOf("/acme/open/write", lax, writer)).toMatchObject({
      binding: { name: "writer" },
      violations: [],
    });
    expect(verdictOf("/acme/secret/write", writer, lax)).toMatchObject({
      kind: "permitted",
      binding: { name: "lax" },
      violations: [{ code: "out_of_scope" }],
    });
  });

  test("a disguised credential of any of them is refused", () => {
    const snapshot = compileSnapshot("1", "default/a", [reader, writer]);
    expect(judge(request(`GET https://${HOST}/acme/open/read?%6bey=x`), snapshot)).toMatchObject({
      kind: "denied",
      refusal: { status: 400, code: "malformed_request" },
    });
  });
});

describe("the bindings of a host", () => {
  const wide = bound("wide", {}, ["*.service.example"]);
  const narrow = bound("narrow", {}, ["*.api.service.example"]);
  const exact = bound("exact", {}, [HOST, HOST]);
  const twin = bound("twin", {}, ["*.service.example", HOST]);
  const snapshot = compileSnapshot("1", "default/a", [wide, twin, narrow, exact]);

  test.each([
    [HOST, ["twin", "exact"]],
    ["x.api.service.example", ["narrow"]],
    ["other.service.example", ["wide", "twin"]],
    ["service.example", []],
    ["xservice.example", []],
    [".service.example", []],
  ])("%s: %j", (host, names) => {
    expect(snapshot.bindingsOf(host).map(({ name }) => name)).toEqual(names);
  });
});

describe("what a verdict says", () => {
  const only = bound(
    "only",
    {
      policy: {
        allow: ["read", "list"],
        deny: [],
        httpRules: [
          { methods: ["*"], paths: ["/admin/**"], action: "deny" },
          { methods: ["*"], paths: ["/**"], action: "allow" },
        ],
      },
      scope: { repositories: ["acme/open"] },
    },
    [HOST],
  );

  test("a host that is not bound has no binding, and nothing was asked", () => {
    const verdict = judge(
      request(`GET https://other.example/`),
      compileSnapshot("1", "ns/a", [only]),
    );
    expect(verdict).toMatchObject({
      kind: "denied",
      binding: undefined,
      resolution: undefined,
      violations: [],
      refusal: { status: 403, code: "unknown_host" },
      others: [],
    });
  });

  test.each<[string, object]>([
    [
      "/admin/open/read",
      {
        code: "http_rule",
        rule: "policy.httpRules[0]: deny * /admin/**",
        message: "POST on this path is not allowed for only.",
      },
    ],
    [
      "/acme/open/write",
      {
        code: "action_denied",
        rule: "policy.allow: not on the list",
        message: "The action write is not allowed for only.",
        action: "write",
        allowed: ["read", "list"],
      },
    ],
    [
      "/acme/other/read",
      {
        code: "out_of_scope",
        rule: "spec.scope.repositories: not in it",
        message: "acme/other is outside the scope of only.",
        action: "read",
        resource: "acme/other",
      },
    ],
    [
      "/acme/open",
      {
        code: "unresolved_action",
        rule: "the action cannot be determined",
        message: "There is no action.",
      },
    ],
  ])("a denial of %s has one violation", (path, violation) => {
    const verdict = verdictOf(path, only);
    expect(violationsOf(verdict)).toEqual([violation]);
    expect(bindingNames(verdict)).toEqual(["only"]);
    expect(verdict).toMatchObject({ kind: "denied", refusal: undefined, others: [] });
  });
});
