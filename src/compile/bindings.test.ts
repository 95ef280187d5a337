import { describe, expect, test } from "vitest";
import { parseDocuments } from "../resources/parse.ts";
import { buildResourceSet } from "../resources/resource-set.ts";
import { bindingSpecsSchema } from "../resources/binding-spec.ts";
import { type CompiledBindings, compileBindings } from "./bindings.ts";

const SERVICES: Record<
  string,
  {
    authTypes: Record<string, { required: string[]; optional: string[] }>;
    configKeys: Record<string, string>;
    scopeKeys: Record<string, string>;
  }
> = {
  github: {
    authTypes: {
      token: { required: ["token"], optional: [] },
      app: { required: ["appId"], optional: ["extra"] },
    },
    configKeys: { host: "h" },
    scopeKeys: { repositories: "r" },
  },
  aws: {
    authTypes: { keys: { required: ["b-c", "b.c"], optional: [] } },
    configKeys: {},
    scopeKeys: {},
  },
  gcp: { authTypes: { key: { required: ["c"], optional: [] } }, configKeys: {}, scopeKeys: {} },
};

function compile(text: string, env: Record<string, string> = {}): CompiledBindings {
  const { resources, problems } = parseDocuments(text, "f.yaml");
  expect(problems).toEqual([]);
  return compileBindings(buildResourceSet(resources), { env, service: (type) => SERVICES[type] });
}

const secret = (name: string, data: Record<string, string>): string =>
  JSON.stringify({ apiVersion: "v1", kind: "Secret", metadata: { name }, stringData: data });
const provider = (name: string, spec: object): string =>
  JSON.stringify({ apiVersion: "svc.io/v1", kind: "Provider", metadata: { name }, spec });
const agent = (name: string, providers: string[]): string =>
  JSON.stringify({
    apiVersion: "svc.io/v1",
    kind: "Agent",
    metadata: { name },
    spec: { providers },
  });
const docs = (...all: string[]): string => all.join("\n---\n");

const GITHUB = { type: "github", auth: { type: "token", secretRef: "gh" } };

test("an agent's sidecar gets specs without secrets, and the secrets by environment", () => {
  const { sidecars, statuses, missing } = compile(
    docs(
      secret("gh", { token: "ghp_x", other: "y" }),
      provider("code", { ...GITHUB, policy: { allow: ["pulls:*"] } }),
      agent("a", ["code"]),
      agent("b", []),
    ),
  );
  expect([...sidecars.keys()]).toEqual(["default/a", "default/b"]);
  expect(sidecars.get("default/b")?.specs.bindings).toEqual([]);
  const config = sidecars.get("default/a");
  expect(config?.specs).toMatchObject({
    version: 1,
    workload: "default/a",
    bindings: [
      {
        name: "code",
        type: "github",
        auth: { type: "token", env: { token: "SVC_SECRET_CODE_TOKEN" } },
        policy: { allow: ["pulls:*"], deny: [] },
        audit: { enforcement: "enforce" },
      },
    ],
  });
  expect(bindingSpecsSchema.parse(JSON.parse(JSON.stringify(config?.specs)))).toEqual(
    config?.specs,
  );
  expect([...(config?.environment ?? [])].map(([name, value]) => [name, value.reveal()])).toEqual([
    ["SVC_SECRET_CODE_TOKEN", "ghp_x"],
  ]);
  expect(JSON.stringify(config?.specs)).not.toContain("ghp_x");
  expect(statuses).toMatchObject([
    { kind: "Provider", name: "code", ready: true, reason: "Ready" },
  ]);
  expect(missing.size).toBe(0);
});

test("names that become one in capitals stay apart", () => {
  const { sidecars } = compile(
    docs(
      secret("gh", { token: "1" }),
      secret("gh2", { token: "2" }),
      provider("a-b", GITHUB),
      provider("a--b", { ...GITHUB, auth: { type: "token", secretRef: "gh2" } }),
      agent("a", ["a-b", "a--b"]),
    ),
  );
  const names = [...(sidecars.get("default/a")?.environment.keys() ?? [])];
  expect(new Set(names).size).toBe(2);
});

describe("a Provider that cannot be used is left out, and says why", () => {
  test.each<[string, string, string, RegExp]>([
    [
      "no Secret",
      provider("code", GITHUB),
      "SecretDoesNotExist",
      /Secret default\/gh does not exist/,
    ],
    [
      "no key in it",
      docs(secret("gh", { other: "x" }), provider("code", GITHUB)),
      "SecretKeyDoesNotExist",
      /has no key token/,
    ],
    [
      "a variable that is not set",
      docs(secret("gh", { token: "${GH}" }), provider("code", GITHUB)),
      "EnvironmentVariableNotSet",
      /GH, which is not set/,
    ],
    [
      "another way to authenticate",
      docs(
        secret("gh", { token: "x" }),
        provider("code", { ...GITHUB, auth: { type: "password", secretRef: "gh" } }),
      ),
      "AuthTypeUnknown",
      /github authenticates by token, app/,
    ],
    [
      "a setting it does not have",
      docs(secret("gh", { token: "x" }), provider("code", { ...GITHUB, config: { hots: "x" } })),
      "ConfigInvalid",
      /unknown hots; github has host/,
    ],
    [
      "a scope it cannot be held to",
      docs(
        secret("gh", { token: "x" }),
        provider("code", { ...GITHUB, scope: { repositories: ["o/*"], projects: ["p"] } }),
      ),
      "ConfigInvalid",
      /spec\.scope: github does not support projects; it supports repositories/,
    ],
    [
      "a scope it cannot be held to, though nothing is in it",
      docs(secret("gh", { token: "x" }), provider("code", { ...GITHUB, scope: { arns: [] } })),
      "ConfigInvalid",
      /does not support arns/,
    ],
    [
      "a service without a plugin",
      docs(secret("gh", { token: "x" }), provider("code", { ...GITHUB, type: "slack" })),
      "ConfigInvalid",
      /no plugin/,
    ],
  ])("%s", (_name, text, reason, message) => {
    const { statuses, sidecars, missing } = compile(docs(text, agent("a", ["code", "gone"])));
    expect(statuses).toMatchObject([
      { ready: false, reason, message: expect.stringMatching(message) as string },
    ]);
    expect(sidecars.get("default/a")?.specs.bindings).toEqual([]);
    expect(missing.get("default/a")).toEqual([
      "Provider code is not ready",
      "there is no Provider gone",
    ]);
  });
});

test("three names that become one in capitals stay apart, and each has its own secret", () => {
  const { sidecars } = compile(
    docs(
      secret("one", { c: "of a-b" }),
      secret("two", { "b-c": "first of a", "b.c": "second of a" }),
      provider("a-b", { type: "gcp", auth: { type: "key", secretRef: "one" } }),
      provider("a", { type: "aws", auth: { type: "keys", secretRef: "two" } }),
      agent("a", ["a-b", "a"]),
    ),
  );
  const { environment } = sidecars.get("default/a") ?? {};
  expect([...(environment ?? [])].map(([name, value]) => [name, value.reveal()])).toEqual([
    ["SVC_SECRET_A_B_C", "of a-b"],
    ["SVC_SECRET_A_B_C_2", "first of a"],
    ["SVC_SECRET_A_B_C_3", "second of a"],
  ]);
});

test("the hosts of a Provider are those of its binding", () => {
  const { sidecars } = compile(
    docs(
      secret("gh", { token: "1" }),
      provider("own", { ...GITHUB, hosts: ["api.example.com"] }),
      provider("usual", GITHUB),
      agent("a", ["own", "usual"]),
    ),
  );
  expect(sidecars.get("default/a")?.specs.bindings.map(({ hosts }) => hosts)).toEqual([
    ["api.example.com"],
    undefined,
  ]);
});

describe("what depends on a variable of the environment", () => {
  const annotated = (text: string): string => {
    const resource = JSON.parse(text) as { metadata: Record<string, unknown> };
    resource.metadata["annotations"] = { "svc.io/when-env": "GH" };
    return JSON.stringify(resource);
  };

  test.each<[name: string, text: string, reason: string]>([
    [
      "a Provider",
      docs(secret("gh", { token: "1" }), annotated(provider("code", GITHUB))),
      "Skipped",
    ],
    [
      "a Secret",
      docs(annotated(secret("gh", { token: "1" })), provider("code", GITHUB)),
      "SecretDoesNotExist",
    ],
  ])("%s is skipped without it", (_name, text, reason) => {
    const all = docs(text, agent("a", ["code"]));
    expect(compile(all).statuses).toMatchObject([{ ready: false, reason }]);
    expect(compile(all).sidecars.get("default/a")?.specs.bindings).toEqual([]);
    expect(compile(all, { GH: "1" }).statuses).toMatchObject([{ ready: true }]);
  });
});

test("an agent that would run as root, and one that is skipped, have no sidecar", () => {
  const { sidecars } = compile(
    docs(
      agent("a", []),
      "{apiVersion: svc.io/v1, kind: Agent, metadata: {name: root}, spec: {runAsUser: 0}}",
      "{apiVersion: svc.io/v1, kind: Agent, metadata: {name: skipped, annotations: " +
        "{svc.io/when-env: NOT_SET}}, spec: {}}",
    ),
  );
  expect([...sidecars.keys()]).toEqual(["default/a"]);
});
