import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { parseDocuments, parseObject } from "./parse.ts";
import { formatProblem } from "./problem.ts";

/** A ModelProvider whose spec is the given YAML, indented. */
const provider = (spec: string) =>
  "apiVersion: svc.io/v1\nkind: ModelProvider\nmetadata:\n  name: " +
  `p\nspec:\n${spec.replaceAll(/^/gm, "  ")}\n`;
const agent = (spec: string, metadata = "{name: a}") =>
  `apiVersion: svc.io/v1\nkind: Agent\nmetadata: ${metadata}\nspec: ${spec}\n`;
const lines = (text: string) => parseDocuments(text, "f.yaml").problems.map(formatProblem);

describe("parseDocuments", () => {
  test("gives resources with defaults", () => {
    const { resources, problems } = parseDocuments(
      `${provider("provider: mock")}---\n${agent("{}", "{name: a, namespace: team}")}`,
      "f.yaml",
    );
    expect(problems).toEqual([]);
    expect(resources).toMatchObject([
      {
        kind: "ModelProvider",
        namespace: "default",
        name: "p",
        whenEnv: undefined,
        spec: {
          deniedModels: [],
          fallbacks: [],
          retries: {
            attempts: 3,
            baseIntervalMs: 200,
            maxIntervalMs: 5000,
            maxRetryAfterMs: 20_000,
          },
          timeouts: { firstByteMs: 300_000 },
        },
      },
      { kind: "Agent", namespace: "team", name: "a", spec: { models: [], runAsUser: 65_532 } },
    ]);
  });

  test("an unknown field is named with its place and what was meant", () => {
    expect(lines(provider("provider: openai\napiKeySecretRf: {name: a, key: b}"))).toEqual([
      "f.yaml:7: ModelProvider p: spec.apiKeySecretRf: unknown field; did you mean " +
        "apiKeySecretRef? (rename it to apiKeySecretRef, or remove it)",
      "f.yaml:5: ModelProvider p: spec.apiKeySecretRef: is required for the kind openai " +
        "(add apiKeySecretRef)",
    ]);
  });

  test("every problem of every document is told", () => {
    expect(
      lines(
        provider(
          "provider: opnai\nfallbacks:\n- provider: x\n  modle: y\n" +
            "retries: {attempts: 0}\ntimeouts: 5",
        ) + "---\nkind: Agnt\nmetadata: {name: x}\n",
      ),
    ).toEqual([
      "f.yaml:6: ModelProvider p: spec.provider: must be one of: openai, anthropic, " +
        "gemini, azure-openai, openai-compatible, mock (did you mean openai?)",
      "f.yaml:9: ModelProvider p: spec.fallbacks[0].modle: unknown field; did you mean " +
        "model? (rename it to model, or remove it)",
      "f.yaml:10: ModelProvider p: spec.retries.attempts: too small: expected number to be " +
        ">=1 (correct the value)",
      "f.yaml:11: ModelProvider p: spec.timeouts: must be an object, is a number (correct " +
        "the value)",
      "f.yaml:13: Agnt x: kind: unknown kind Agnt (did you mean Agent?)",
    ]);
  });

  test.each([
    ["kind: Agent\nkind: Agent\n", "f.yaml:2: a key occurs twice in one mapping"],
    [agent("{models: [a/b], models: [a/c]}"), "f.yaml:4: a key occurs twice"],
    ["kind: [\n", "f.yaml:2: the indentation is wrong, or a bracket is not closed"],
    ["a: *nothing\n", "f.yaml:1: an alias (*) names nothing before it"],
    ["a: !secret x\n", "f.yaml:1: a tag (!) is unknown"],
    ["- a\n- b\n", "f.yaml:1: must be an object with apiVersion"],
    ["just text\n", "f.yaml:1: must be an object"],
    ["metadata: {name: a}\n", "f.yaml:1: kind: is required"],
    [
      "apiVersion: svc.io/v2\nkind: Agent\nmetadata: {name: a}\nspec: {}\n",
      "f.yaml:1: Agent a: apiVersion: unknown version of this kind (use apiVersion: svc.io/v1)",
    ],
    ["apiVersion: svc.io/v1\nkind: Secret\nmetadata: {name: a}\n", "use apiVersion: v1"],
    ["apiVersion: svc.io/v1\nkind: Session\nmetadata: {name: a}\n", "Session is not supported yet"],
    [
      "apiVersion: svc.io/v1\nkind: Agent\nmetadata: {name: A}\nspec: {}\n",
      "metadata.name: must be a DNS-1123 label",
    ],
    ["apiVersion: svc.io/v1\nkind: Agent\nspec: {}\n", "metadata: is required"],
    [
      agent("{}", "{name: a, annotations: {svc.io/when-env: 'A B'}}"),
      "metadata.annotations.svc.io/when-env: must name one environment variable",
    ],
    [agent("{models: [gpt-5]}"), "spec.models[0]: must be <provider>/<model>"],
    [agent("{models: [/gpt-5]}"), "spec.models[0]"],
    [agent("{models: [p/]}"), "spec.models[0]"],
    [agent("{models: ['p/a*b']}"), "spec.models[0]"],
    [agent("{models: [Upper/m]}"), "spec.models[0]"],
    [agent("{system: 5}"), "spec.system: must be a string, is a number (put it in quotes)"],
    [provider("provider: mock\nallowedModels: []"), "spec.allowedModels: must not be empty"],
    [
      provider("provider: mock\ndeniedModels: ['*a']"),
      "spec.deniedModels[0]: must be a model name",
    ],
    [
      provider("provider: mock\nbaseURL: http://x"),
      "spec.baseURL: does not apply to the kind mock",
    ],
    [
      provider("provider: openai-compatible"),
      "spec.baseURL: is required for the kind openai-compatible (add baseURL)",
    ],
    [
      provider("provider: mock\napiVersion: v1"),
      "spec.apiVersion: does not apply to the kind mock",
    ],
    [
      provider("provider: mock\nservesResponses: true"),
      "spec.servesResponses: does not apply to the kind mock",
    ],
    [
      provider("provider: mock\nretries: {baseIntervalMs: 6000}"),
      "spec.retries.maxIntervalMs: must not be less than baseIntervalMs",
    ],
  ])("%j is refused", (text, message) => {
    const { resources } = parseDocuments(text, "f.yaml");
    expect(resources).toEqual([]);
    expect(lines(text).join("\n")).toContain(message);
  });

  test("of two documents of one name the later is refused", () => {
    const { resources, problems } = parseDocuments(
      `${agent("{system: one}")}---\n${agent("{system: two}")}`,
      "f.yaml",
    );
    expect(resources).toMatchObject([{ spec: { system: "one" } }]);
    expect(problems).toMatchObject([
      { reason: "DuplicateObject", line: 6, message: expect.stringContaining("f.yaml:1") },
    ]);
  });

  test("empty documents and comments are nothing", () =>
    expect(parseDocuments("# nothing\n---\n---\n\n---\n", "f.yaml").documents).toEqual([]));

  test("what kubectl gives back can be read", () => {
    const { problems } = parseDocuments(
      agent(
        "{}\nstatus: {ready: true, phase: Failed, later: {x: 1}}",
        "{name: a, uid: x, resourceVersion: '1', generation: 1, creationTimestamp: null, " +
          "managedFields: [{manager: m}]}",
      ),
      "f.yaml",
    );
    expect(problems).toEqual([]);
  });

  test("an alias bomb is refused, not expanded", () => {
    const bomb = [
      "a: &a [x,x,x,x,x,x,x,x,x]",
      ...["b", "c", "d", "e", "f", "g", "h"].map(
        (name, index) => `${name}: &${name} [${`*${"abcdefg"[index]},`.repeat(9)}]`,
      ),
    ].join("\n");
    expect(lines(bomb)).toEqual([expect.stringContaining("expands to too much")]);
  });
});

describe("fields that nothing acts on yet", () => {
  test.each([
    "filesystem: {readOnlyPaths: [/etc]}",
    "triggers: [{webhook: {}}]",
    "tools: [{type: custom, anything: 1}]",
    "packages: [x]",
    "volumes: [{mountPath: /x}]",
    "runAsUser: 1000",
  ])("Agent spec.%s is refused with that alone", (field) => {
    const { problems } = parseDocuments(agent(`{${field}}`), "f.yaml");
    expect(problems).toMatchObject([
      {
        reason: "NotSupportedYet",
        path: `spec.${field.split(":")[0]}`,
        message: "not supported yet",
      },
    ]);
  });

  test("inbound", () => {
    expect(lines(`${agent("{}")}inbound: {port: 80}\n`)).toEqual([
      "f.yaml:5: Agent a: inbound: not supported yet (remove it for now: it would have no effect)",
    ]);
  });

  test("an Agent as root is no error of its spec: its status says Failed", () =>
    expect(lines(agent("{runAsUser: 0}"))).toEqual([]));

  test("values that change nothing are let through", () => {
    expect(
      lines(
        agent(
          "{guards: [], rateLimits: {}, filesystem: {}, triggers: [], tools: [], packages: " +
            "[], volumes: [], runAsUser: 65532}",
        ),
      ),
    ).toEqual([]);
    expect(lines(provider("provider: mock\nexternalAccess: {enabled: false}"))).toEqual([]);
  });
});

describe("Secret", () => {
  const secret = (fields: string) =>
    `apiVersion: v1\nkind: Secret\nmetadata: {name: my.keys}\n${fields}\n`;

  test("reads data, stringData and references to the environment", () => {
    const { resources } = parseDocuments(
      secret(
        "data: {a: c2stMQ==, b: eA==}\nstringData: {b: text, c: '${KEY}', d: " +
          "'${KEY:-x:-y}', e: 'pre${KEY}', f: '${1}'}",
      ),
      "f.yaml",
    );
    const [resource] = resources;
    if (resource?.kind !== "Secret") throw new Error("no secret");
    const shown = [...resource.values].map(([key, source]) =>
      source.kind === "value"
        ? [key, source.value.reveal()]
        : [key, source.variable, source.fallback?.reveal()],
    );
    expect(shown).toEqual([
      ["a", "sk-1"],
      ["b", "text"],
      ["c", "KEY", undefined],
      ["d", "KEY", "x:-y"],
      ["e", "pre${KEY}"],
      ["f", "${1}"],
    ]);
  });

  test("data never reads the environment: whoever writes a Secret in a cluster is not who runs the gateway", () => {
    const { resources } = parseDocuments(
      secret(`data: {a: ${Buffer.from("${HOME}").toString("base64")}}`),
      "f.yaml",
    );
    expect(resources[0]?.kind === "Secret" && resources[0].values.get("a")?.kind).toBe("value");
  });

  test("no problem and no printed form shows a value", () => {
    const broken = [
      "data: {k: sk-hidden!}",
      "stringData: {k: [sk-hidden]}",
      "stringData: {k: *sk-hidden}",
      "stringData: {k: @sk-hidden}",
      'stringData: {k: "sk-hidden\\q"}',
      "stringData: sk-hidden",
      "stringData: {k: a}\n sk-hidden\nx",
      "stringData:\n  k: sk-hidden: x",
    ];
    for (const text of broken) {
      const result = parseDocuments(secret(text), "f.yaml");
      expect(result.problems.length, text).toBeGreaterThan(0);
      expect(JSON.stringify(result.problems), text).not.toContain("sk-hidden");
    }
    const { resources } = parseDocuments(
      secret("stringData: {k: sk-hidden, e: '${A:-sk-hidden}'}"),
      "f.yaml",
    );
    expect(inspect(resources, { depth: 9 }) + JSON.stringify(resources)).not.toContain("sk-hidden");
  });
});

describe("version", () => {
  const versionOf = (value: object) => {
    const result = parseObject(value);
    return result?.kind === "ok" ? result.resource.version : undefined;
  };
  const base = {
    apiVersion: "svc.io/v1",
    kind: "Agent",
    metadata: { name: "a", resourceVersion: "1" },
    spec: { system: "x" },
  };

  test("changes with the content, and not with the API server's bookkeeping or our status", () => {
    expect(versionOf(base)).toBeTypeOf("string");
    expect(
      versionOf({
        ...base,
        metadata: { name: "a", resourceVersion: "2" },
        status: { ready: true },
      }),
    ).toBe(versionOf(base));
    expect(versionOf({ ...base, spec: { system: "y" } })).not.toBe(versionOf(base));
  });
});
