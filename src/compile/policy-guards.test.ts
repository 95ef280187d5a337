/** The guards of callers as compiled from resources, and the attempts to get around them. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { parseDocuments } from "../resources/parse.ts";
import { buildResourceSet } from "../resources/resource-set.ts";
import { compilePolicy } from "./policy.ts";

const HASH = "0".repeat(64);

/** Objects besides those of {@link scene}; an object replaces the one with its kind and name. */
type Objects = readonly Readonly<{ kind: string; metadata: object; [field: string]: unknown }>[];

const object = (kind: string, name: string, spec: object, metadata: object = {}) => ({
  apiVersion: kind === "Secret" ? "v1" : "svc.io/v1",
  kind,
  metadata: { name, ...metadata },
  ...(kind === "Secret" ? { stringData: spec } : { spec }),
});

const ENFORCED = object("GuardBinding", "strict", { classifier: { type: "stub" } });
const AUDITED = object("GuardBinding", "lax", {
  classifier: { type: "stub" },
  enforcement: "audit",
});

const provider = (name: string, externalAccess: object, more: object = {}) =>
  object("ModelProvider", name, { provider: "mock", externalAccess, ...more });
const agent = (guards: readonly object[]) => object("Agent", "app", { models: ["p/m"], guards });
const key = (spec: object) =>
  object("AccessKey", "k", { modelProvider: "p", keySHA256: HASH, ...spec });

const OPEN = { enabled: true };

/** @param guardEndpoint null for none */
function compiled(objects: Objects, guardEndpoint: string | null = "http://svc-guard:8092") {
  const text = objects.map((one) => JSON.stringify(one)).join("\n---\n");
  const { resources, problems } = parseDocuments(text, "f.yaml");
  expect(problems).toEqual([]);
  const { snapshot, statuses } = compilePolicy(buildResourceSet(resources), {
    env: {},
    now: 0,
    tokenHashesOf: (namespace, name) => [
      createHash("sha256").update(`${namespace}/${name}`).digest("hex"),
    ],
    guardEndpoint: guardEndpoint ?? undefined,
    mockEndpoint: { host: "127.0.0.1", port: 1, tls: false, basePath: "/v1" },
  });
  const statusOf = (id: string) => {
    const [kind, name] = id.split("/");
    const found = statuses.find((status) => status.kind === kind && status.name === name);
    return found && { ready: found.ready, reason: found.reason, message: found.message };
  };
  return {
    version: snapshot.version,
    agent: [...snapshot.agentsByTokenHash.values()][0],
    key: snapshot.keysByHash.get(HASH)?.key,
    statusOf,
    reasonOf: (id: string) => statusOf(id)?.reason,
  };
}

/** `<binding>:<enforcement>` of a caller's guards. */
const guardsOf = (
  caller:
    | { readonly guards: readonly { readonly binding: string; readonly enforcement: string }[] }
    | undefined,
) => caller?.guards.map(({ binding, enforcement }) => `${binding}:${enforcement}`);

test("a caller without guards has none, and nothing is asked", () => {
  const { agent: app, key: laptop } = compiled([
    provider("p", OPEN),
    object("Agent", "app", { models: ["p/m"] }),
    key({}),
    ENFORCED,
  ]);
  expect([app?.guards, laptop?.guards]).toEqual([[], []]);
});

test("a guard has everything that the stage needs", () => {
  const { agent: app } = compiled([
    provider("p", OPEN),
    agent([
      { binding: "strict", scan: { toolResults: { tools: ["web", "mail"] } } },
      { binding: "quiet", enforcement: "enforce", scan: { toolResults: { tools: ["a", "*"] } } },
    ]),
    ENFORCED,
    object("GuardBinding", "quiet", {
      classifier: { type: "llamaGuard", endpoint: "https://l/v1", model: "m" },
      thresholds: { injection: 0.9, jailbreak: 0.1 },
      enforcement: "audit",
      timeoutMs: 7,
      audit: { savePayload: false },
    }),
  ]);
  expect(app?.guards).toMatchObject([
    {
      binding: "strict",
      enforcement: "enforce",
      timeoutMs: 2000,
      maxPayloadChars: 2000,
      classifier: { type: "stub", protocol: "classify", url: "http://svc-guard:8092/classify" },
      scan: { prompts: true, responses: false, toolResults: new Set(["web", "mail"]) },
    },
    {
      binding: "quiet",
      thresholds: { injection: 0.9, jailbreak: 0.1 },
      enforcement: "enforce",
      timeoutMs: 7,
      maxPayloadChars: undefined,
      classifier: { protocol: "chat", url: "https://l/v1/chat/completions", model: "m" },
      scan: { toolResults: "all" },
    },
  ]);
});

describe("the guards of a key", () => {
  const lax = (enforcement?: string) => ({
    binding: "lax",
    ...(enforcement === undefined ? {} : { enforcement }),
  });
  test.each<[string, object, object, readonly string[], string | undefined]>([
    ["are those of its ModelProvider", { guards: [lax()] }, {}, ["lax:audit"], "Ready"],
    ["are its own", {}, { guards: [lax()] }, ["lax:audit"], "Ready"],
    [
      "are both",
      { guards: [{ binding: "strict" }] },
      { guards: [lax()] },
      ["strict:enforce", "lax:audit"],
      "Ready",
    ],
    [
      "tighten the ModelProvider's",
      { guards: [lax()] },
      { guards: [lax("enforce")] },
      ["lax:enforce"],
      "Ready",
    ],
    [
      "cannot relax the ModelProvider's",
      { guards: [lax("enforce")] },
      { guards: [lax("audit")] },
      ["lax:enforce"],
      "RelaxedGuard",
    ],
    [
      "may repeat the ModelProvider's",
      { guards: [lax("enforce")] },
      { guards: [lax()] },
      ["lax:enforce"],
      "Ready",
    ],
    [
      "cannot relax a binding",
      {},
      { guards: [{ binding: "strict", enforcement: "audit" }] },
      ["strict:enforce"],
      "RelaxedGuard",
    ],
    [
      "cannot be removed by an empty list",
      { guards: [{ binding: "strict" }] },
      { guards: [] },
      ["strict:enforce"],
      "Ready",
    ],
    [
      "are not those of a ModelProvider's own relaxing",
      { guards: [{ binding: "strict", enforcement: "audit" }] },
      {},
      ["strict:enforce"],
      "Ready",
    ],
  ])("%s", (_, external, own, expected, reason) => {
    const { key: laptop, reasonOf } = compiled([
      provider("p", { ...OPEN, ...external }),
      key(own),
      ENFORCED,
      AUDITED,
    ]);
    expect(guardsOf(laptop)).toEqual(expected);
    expect(reasonOf("AccessKey/k")).toBe(reason);
    expect(laptop?.resolveModel("m").kind).toBe("granted");
  });

  test("scan what either of the lists scans", () => {
    const scans = (scan: object) => ({ guards: [{ binding: "lax", scan }] });
    const { key: laptop } = compiled([
      provider("p", { ...OPEN, ...scans({ prompts: true, responses: true }) }),
      key(scans({ prompts: false, toolResults: { tools: ["*"] } })),
      AUDITED,
    ]);
    expect(laptop?.guards[0]?.scan).toEqual({ prompts: true, responses: true, toolResults: "all" });
  });

  test.each<[string, object, readonly string[]]>([
    ["with external access: its guards apply", OPEN, ["lax:audit", "strict:enforce"]],
    ["without external access, which it cannot reach", { enabled: false }, ["lax:audit"]],
  ])("on a fallback %s", (_, access, expected) => {
    const { key: laptop } = compiled([
      provider("p", { ...OPEN, guards: [lax()] }, { fallbacks: [{ provider: "f" }] }),
      provider("f", { ...access, guards: [{ binding: "strict" }] }),
      key({}),
      ENFORCED,
      AUDITED,
    ]);
    expect(guardsOf(laptop)).toEqual(expected);
  });

  test("are none of an Agent that uses the same ModelProvider", () => {
    const { agent: app } = compiled([
      provider("p", { ...OPEN, guards: [{ binding: "strict" }] }),
      object("Agent", "app", { models: ["p/m"] }),
      ENFORCED,
    ]);
    expect(app?.guards).toEqual([]);
  });
});

describe("a binding that does not exist denies every call", () => {
  const elsewhere = object(
    "GuardBinding",
    "strict",
    { classifier: { type: "stub" } },
    { namespace: "other" },
  );
  const optional = object(
    "GuardBinding",
    "strict",
    { classifier: { type: "stub" } },
    { annotations: { "svc.io/when-env": "GUARD" } },
  );
  const named = [{ binding: "strict" }];
  const words = /^\w+ \w+ is not in use: .*GuardBinding strict /;

  test.each<[string, Objects]>([
    ["there is none", []],
    ["it is in another namespace", [elsewhere]],
    ["it is skipped", [optional]],
  ])("of an Agent: %s", (_, objects) => {
    const { agent: app, statusOf } = compiled([provider("p", OPEN), agent(named), ...objects]);
    expect(app?.grants).toEqual([]);
    for (const model of ["p/m", "m", "p/*", ""])
      expect(app?.resolveModel(model)).toEqual({
        kind: "denied",
        reason: expect.stringMatching(words),
      });
    expect(statusOf("Agent/app")).toMatchObject({ ready: false, reason: "UnknownGuardBinding" });
  });

  test("of an Agent, also if its other guards exist", () => {
    const { agent: app } = compiled([
      provider("p", OPEN),
      agent([{ binding: "lax" }, ...named]),
      AUDITED,
    ]);
    expect(app?.resolveModel("p/m").kind).toBe("denied");
  });

  test.each<[string, Objects]>([
    ["its own list", [provider("p", OPEN), key({ guards: named })]],
    ["its ModelProvider's", [provider("p", { ...OPEN, guards: named }), key({})]],
    [
      "that of a fallback",
      [
        provider("p", OPEN, { fallbacks: [{ provider: "f" }] }),
        provider("f", { ...OPEN, guards: named }),
        key({}),
      ],
    ],
  ])("of a key: %s", (_, objects) => {
    for (const more of [[], [elsewhere], [optional]]) {
      const { key: laptop, statusOf } = compiled([...objects, ...more]);
      expect(laptop?.grants).toEqual([]);
      expect(laptop?.resolveModel("m")).toEqual({
        kind: "denied",
        reason: expect.stringMatching(words),
      });
      expect(statusOf("AccessKey/k")).toMatchObject({
        ready: false,
        reason: "UnknownGuardBinding",
      });
    }
  });

  test("a ModelProvider without external access says nothing of it", () =>
    expect(compiled([provider("p", { guards: named })]).reasonOf("ModelProvider/p")).toBe("Ready"));

  test("Agents keep a ModelProvider whose external access names it", () => {
    const { agent: app, statusOf } = compiled([
      provider("p", { ...OPEN, guards: named }),
      object("Agent", "app", { models: ["p/m"] }),
    ]);
    expect(app?.resolveModel("p/m").kind).toBe("granted");
    expect(statusOf("ModelProvider/p")).toEqual({
      ready: true,
      reason: "DegradedExternalAccess",
      message:
        "spec.externalAccess.guards[0]: there is no GuardBinding strict in the namespace " +
        "default. Create it, or correct the name.",
    });
  });
});

describe("the status of a GuardBinding", () => {
  test("names all who would relax it; each of them shows it too", () => {
    const relaxing = [{ binding: "strict", enforcement: "audit" }];
    const {
      statusOf,
      reasonOf,
      agent: app,
      key: laptop,
    } = compiled([
      provider("p", { ...OPEN, guards: relaxing }),
      agent(relaxing),
      key({ guards: relaxing }),
      ENFORCED,
    ]);
    expect(statusOf("GuardBinding/strict")).toEqual({
      ready: false,
      reason: "RelaxedGuard",
      message:
        '"enforcement: audit" would relax it, and is rejected: ModelProvider p, Agent app, ' +
        "AccessKey k; it enforces for them too",
    });
    expect(statusOf("Agent/app")).toMatchObject({ ready: false, reason: "RelaxedGuard" });
    expect(statusOf("AccessKey/k")).toMatchObject({ ready: false, reason: "RelaxedGuard" });
    expect(reasonOf("ModelProvider/p")).toBe("DegradedExternalAccess");
    expect([guardsOf(app), guardsOf(laptop)]).toEqual([["strict:enforce"], ["strict:enforce"]]);
    expect(app?.resolveModel("p/m").kind).toBe("granted");
  });

  test("is not that of a binding with its name in another namespace", () => {
    const { reasonOf } = compiled([
      object(
        "Agent",
        "app",
        { guards: [{ binding: "strict", enforcement: "audit" }] },
        {
          namespace: "other",
        },
      ),
      ENFORCED,
    ]);
    expect(reasonOf("GuardBinding/strict")).toBe("Ready");
  });

  test("says that a classifier cannot be asked; the guard stays, and its calls are forwarded", () => {
    const {
      statusOf,
      agent: app,
      reasonOf,
    } = compiled(
      [
        provider("p", OPEN),
        agent([{ binding: "strict" }, { binding: "hosted" }]),
        ENFORCED,
        object("GuardBinding", "hosted", {
          classifier: { type: "custom", endpoint: "https://g", auth: { secretRef: "s" } },
        }),
      ],
      null,
    );
    expect(statusOf("GuardBinding/strict")).toMatchObject({
      ready: false,
      reason: "GuardServiceNotAvailable",
    });
    expect(statusOf("GuardBinding/hosted")).toEqual({
      ready: false,
      reason: "SecretDoesNotExist",
      message:
        "spec.classifier.auth: Secret default/s does not exist; until then its guards forward " +
        "every call as unavailable",
    });
    expect(app?.guards.map(({ classifier }) => [classifier.url, classifier.problem])).toEqual([
      [undefined, expect.stringContaining("no guard service")],
      [undefined, expect.stringContaining("does not exist")],
    ]);
    expect(reasonOf("Agent/app")).toBe("Ready");
    expect(app?.resolveModel("p/m").kind).toBe("granted");
  });
});

describe("the version of the policy", () => {
  const base: Objects = [provider("p", OPEN), agent([{ binding: "lax" }]), key({}), AUDITED];
  const secret = (token: string) => [
    ...base.slice(0, 3),
    object("GuardBinding", "lax", {
      classifier: { type: "custom", endpoint: "https://g", auth: { secretRef: "s" } },
    }),
    object("Secret", "s", { token }),
  ];
  test("is the same for the same guards", () =>
    expect(compiled(base).version).toBe(compiled([...base]).version));

  test.each<[string, () => string]>([
    [
      "enforcement of a binding",
      () =>
        compiled([
          ...base.slice(0, 3),
          object("GuardBinding", "lax", { classifier: { type: "stub" } }),
        ]).version,
    ],
    ["binding that is gone", () => compiled(base.slice(0, 3)).version],
    ["guard service", () => compiled(base, "http://other").version],
    [
      "list of a ModelProvider",
      () =>
        compiled([provider("p", { ...OPEN, guards: [{ binding: "lax" }] }), ...base.slice(1)])
          .version,
    ],
  ])("changes with the %s", (_, version) => expect(version()).not.toBe(compiled(base).version));

  test("changes with the value of a classifier's secret", () =>
    expect(compiled(secret("a")).version).not.toBe(compiled(secret("b")).version));
});

test("examples/guard is in use as it is", () => {
  const dir = new URL("../../examples/guard/", import.meta.url);
  const objects = readdirSync(dir).map(
    (file) => parse(readFileSync(new URL(file, dir), "utf8")) as Objects[number],
  );
  const { agent: reader, reasonOf } = compiled([...objects, key({ modelProvider: "mock" })]);
  const ids = ["Agent/reader", "GuardBinding/injection", "ModelProvider/mock", "AccessKey/k"];
  expect(ids.map(reasonOf)).toEqual(ids.map(() => "Ready"));
  expect(guardsOf(reader)).toEqual(["injection:enforce"]);
});
