import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { expectLinear } from "../platform/testing-work.ts";
import { PROVIDER_KINDS } from "../policy/snapshot.ts";
import { withProblems } from "../policy/status.ts";
import { modelProviderSchema } from "../resources/model-provider.ts";
import { parseDocuments } from "../resources/parse.ts";
import type { ResourceSet } from "../resources/resource-set.ts";
import { buildResourceSet } from "../resources/resource-set.ts";
import type { PolicyOptions } from "./policy.ts";
import { compilePolicy } from "./policy.ts";

const options: PolicyOptions = {
  env: {},
  now: 0,
  tokenHashesOf: (namespace, name) => [
    createHash("sha256").update(`${namespace}/${name}`).digest("hex"),
  ],
  guardEndpoint: undefined,
  mockEndpoint: { host: "127.0.0.1", port: 1, tls: false, basePath: "/v1" },
};

const load = (text: string): ResourceSet => {
  const { resources, problems } = parseDocuments(text, "f.yaml");
  expect(problems).toEqual([]);
  return buildResourceSet(resources);
};

const SCENE = `
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {a: sk-literal, b: '\${KEY}'}
---
apiVersion: svc.io/v1
kind: ModelProvider
metadata: {name: a}
spec: {provider: openai, apiKeySecretRef: {name: keys, key: a}}
---
apiVersion: svc.io/v1
kind: ModelProvider
metadata: {name: b}
spec: {provider: anthropic, apiKeySecretRef: {name: keys, key: b}}
---
apiVersion: svc.io/v1
kind: Agent
metadata: {name: app}
spec: {models: [a/*, b/m]}
`;

describe("compilePolicy", () => {
  test("says when the next key expires, and that it has expired when it has", () => {
    const key = (name: string, expiresAt: string) => `
---
apiVersion: svc.io/v1
kind: AccessKey
metadata: {name: ${name}}
spec: {modelProvider: a, keySHA256: ${createHash("sha256").update(name).digest("hex")}, expiresAt: "${expiresAt}"}
`;
    const resources = load(
      [SCENE, key("x", "2026-11-21T12:00:00Z"), key("y", "2026-11-20T12:00:00Z")].join(""),
    );
    const compiled = (now: string) => {
      const { recheckAt, statuses } = compilePolicy(resources, {
        ...options,
        env: { KEY: "sk-env" },
        now: Date.parse(now),
      });
      const expired = statuses.filter(({ reason }) => reason === "KeyExpired");
      return [
        recheckAt === undefined ? "never" : new Date(recheckAt).toISOString(),
        expired.map(({ name }) => name),
      ];
    };
    expect(compiled("2026-11-19T00:00:00Z")).toEqual(["2026-11-20T12:00:00.000Z", []]);
    expect(compiled("2026-11-20T12:00:00Z")).toEqual(["2026-11-21T12:00:00.000Z", ["y"]]);
    expect(compiled("2026-11-21T12:00:00Z")).toEqual(["never", ["x", "y"]]);
  });

  test("an agent that would run as root is known, and may use nothing", () => {
    const text = SCENE.replace("spec: {models", "spec: {runAsUser: 0, models");
    const { snapshot, statuses } = compilePolicy(load(text), { ...options, env: { KEY: "k" } });
    const [agent] = snapshot.agentsByTokenHash.values();
    expect(agent?.grants).toEqual([]);
    for (const model of ["a/x", "m", "b/m"])
      expect(agent?.resolveModel(model)).toEqual({
        kind: "denied",
        reason: "Agent app is not in use: its spec.runAsUser must not be 0",
      });
    expect(statuses.find(({ kind }) => kind === "Agent")).toMatchObject({
      ready: false,
      reason: "RunsAsRoot",
    });
  });

  test("the kinds of the schema are those of the policy", () => {
    expect(modelProviderSchema.shape.spec.shape.provider.options).toEqual([...PROVIDER_KINDS]);
  });

  test("the version follows content, secrets, tokens and the mock, and nothing else", () => {
    const version = (text: string, more: Partial<PolicyOptions> = {}) =>
      compilePolicy(load(text), { ...options, env: { KEY: "sk-env" }, ...more }).snapshot.version;
    const before = version(SCENE);
    expect(version(SCENE)).toBe(before);
    expect(version(SCENE, { env: { KEY: "sk-env", OTHER: "x" } })).toBe(before);
    const changed = [
      version(SCENE.replace("sk-literal", "sk-rotated")),
      version(SCENE, { env: { KEY: "sk-env-2" } }),
      version(SCENE, { env: {} }),
      version(SCENE, { tokenHashesOf: () => ["other"] }),
      version(SCENE, { mockEndpoint: undefined }),
      version(SCENE.replace("b/m", "b/n")),
      version(SCENE.replace("provider: anthropic", "provider: gemini")),
    ];
    expect(new Set([before, ...changed]).size).toBe(changed.length + 1);
  });

  test("no printed form of the result holds a secret", () => {
    const result = compilePolicy(load(SCENE), { ...options, env: { KEY: "sk-env" } });
    const shown =
      inspect(result, { depth: 12, showHidden: true }) +
      JSON.stringify(result) +
      JSON.stringify([...result.snapshot.providers.values()]);
    expect(shown).not.toMatch(/sk-(?:literal|env)/);
    expect(result.snapshot.providers.get("default/b")?.apiKey?.reveal()).toBe("sk-env");
  });

  test("an agent is found by the hash of its token only", () => {
    const { snapshot } = compilePolicy(load(SCENE), options);
    expect([...snapshot.agentsByTokenHash.keys()]).toEqual(options.tokenHashesOf("default", "app"));
  });

  test("names that are properties of every object are no models and no providers", () => {
    const agent = [...compilePolicy(load(SCENE), options).snapshot.agentsByTokenHash.values()][0];
    for (const name of ["__proto__", "constructor/x", "toString", "__proto__/m"]) {
      expect(agent?.resolveModel(name).kind, name).toBe(
        name.startsWith("toString") || name === "__proto__" ? "granted" : "unknown",
      );
    }
  });

  test("the work grows in proportion to the number of providers and agents", () => {
    const documents = (size: number): string =>
      [
        ...Array.from(
          { length: size },
          (_, i) =>
            `apiVersion: svc.io/v1\nkind: ModelProvider\nmetadata: {name: p${i}}\nspec: ` +
            `{provider: mock, allowedModels: ["m-*"], fallbacks: [{provider: ` +
            `p${(i + 1) % size}}]}\n`,
        ),
        ...Array.from(
          { length: 5 * size },
          (_, i) =>
            `apiVersion: svc.io/v1\nkind: Agent\nmetadata: {name: a${i}}\nspec: {models: ` +
            `[p${i % size}/m-1, p${(i + 7) % size}/*]}\n`,
        ),
      ].join("---\n");
    expectLinear((size) => {
      const resources = load(documents(size));
      return () => {
        const { snapshot, statuses } = compilePolicy(resources, options);
        expect(snapshot.providers.size).toBe(size);
        expect(snapshot.agentsByTokenHash.size).toBe(5 * size);
        expect(statuses).toHaveLength(6 * size);
      };
    }, 50);
  });
});

describe("withProblems", () => {
  test("an object whose last good version serves stays ready, and says what is wrong", () => {
    const { statuses } = compilePolicy(load(SCENE), { ...options, env: { KEY: "k" } });
    const { problems } = parseDocuments(
      SCENE.replace("models: [a/*", "tools: [{type: x}], modles: [], models: [a/*") +
        "---\nkind: Agent\nmetadata: {name: new}\n",
      "f.yaml",
    );
    const agents = withProblems(statuses, problems).filter(({ kind }) => kind === "Agent");
    expect(agents).toMatchObject([
      {
        name: "app",
        ready: true,
        reason: "NotSupportedYet",
        message: expect.stringMatching(
          /^the last good version is in use: f\.yaml:\d+: Agent app: spec\.tools/,
        ),
      },
      { name: "new", ready: false, reason: "InvalidSpec" },
    ]);
  });
});

describe("examples/quickstart", () => {
  const dir = fileURLToPath(new URL("../../examples/quickstart/", import.meta.url));
  const resources = load(
    readdirSync(dir)
      .filter((file) => file.endsWith(".yaml"))
      .map((file) => readFileSync(dir + file, "utf8"))
      .join("---\n"),
  );
  const compile = (env: Record<string, string>) => {
    const { snapshot, statuses } = compilePolicy(resources, { ...options, env });
    const agent = [...snapshot.agentsByTokenHash.values()][0];
    return {
      statuses,
      providers: [...snapshot.providers.keys()],
      resolve: (model: string) => agent?.resolveModel(model).kind,
    };
  };

  test("works with the mock alone when no key is set", () => {
    const { statuses, providers, resolve } = compile({});
    expect(providers).toEqual(["default/mock"]);
    expect(statuses.filter(({ ready }) => !ready).every(({ reason }) => reason === "Skipped")).toBe(
      true,
    );
    expect(statuses.find(({ kind }) => kind === "Agent")).toMatchObject({
      name: "hello",
      ready: true,
      reason: "Ready",
    });
    expect([resolve("mock/any"), resolve("any"), resolve("openai/gpt-5")]).toEqual([
      "granted",
      "granted",
      "denied",
    ]);
  });

  test("takes in each provider whose key is set", () => {
    const { statuses, providers, resolve } = compile({
      OPENAI_API_KEY: "a",
      ANTHROPIC_API_KEY: "b",
      GEMINI_API_KEY: "c",
    });
    expect(providers.toSorted()).toEqual([
      "default/anthropic",
      "default/gemini",
      "default/mock",
      "default/openai",
    ]);
    expect(statuses.every(({ ready, reason }) => ready && reason === "Ready")).toBe(true);
    expect([resolve("openai/gpt-5"), resolve("gpt-5")]).toEqual(["granted", "ambiguous"]);
  });
});
