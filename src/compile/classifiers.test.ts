import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { parseDocuments } from "../resources/parse.ts";
import { buildResourceSet } from "../resources/resource-set.ts";
import { compileClassifier } from "./classifiers.ts";

const SERVICE = "http://svc-guard:8092";

interface Scene {
  readonly classifier: object;
  readonly guardEndpoint?: string;
  readonly secret?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly spec?: object;
  readonly name?: string;
  readonly labels?: object;
}

function compiled({
  classifier,
  guardEndpoint,
  secret,
  env = {},
  spec,
  name = "g",
  labels,
}: Scene) {
  const objects = [
    {
      apiVersion: "svc.io/v1",
      kind: "GuardBinding",
      metadata: { name, ...(labels === undefined ? {} : { labels }) },
      spec: { classifier, ...spec },
    },
    ...(secret === undefined
      ? []
      : [{ apiVersion: "v1", kind: "Secret", metadata: { name: "s" }, stringData: secret }]),
  ];
  const { resources, problems } = parseDocuments(
    objects.map((object) => JSON.stringify(object)).join("\n---\n"),
    "f.yaml",
  );
  expect(problems).toEqual([]);
  const set = buildResourceSet(resources);
  const [binding] = set.guardBindings.values();
  if (binding === undefined) throw new Error("no GuardBinding");
  return compileClassifier(binding, set, { env, guardEndpoint });
}

describe("the address", () => {
  const at = (type: string, endpoint?: string) => ({
    type,
    ...(endpoint === undefined ? {} : { endpoint }),
  });
  test.each([
    [at("stub"), SERVICE, "classify", `${SERVICE}/classify`],
    [at("stub"), `${SERVICE}/`, "classify", `${SERVICE}/classify`],
    [at("promptGuard"), SERVICE, "classify", `${SERVICE}/classify`],
    [at("llamaGuard"), SERVICE, "classify", `${SERVICE}/classify`],
    [at("stub", "http://g:1"), SERVICE, "classify", "http://g:1/classify"],
    [at("stub", "http://g:1"), undefined, "classify", "http://g:1/classify"],
    [at("promptGuard", "https://g/v1"), undefined, "classify", "https://g/v1/classify"],
    [at("custom", "https://g/v1/classify"), undefined, "classify", "https://g/v1/classify"],
    [at("custom", "https://g/v1/classify/"), undefined, "classify", "https://g/v1/classify"],
    [at("custom", "https://g/declassify"), undefined, "classify", "https://g/declassify/classify"],
    [at("custom", "https://[::1]:9/a"), undefined, "classify", "https://[::1]:9/a/classify"],
    [at("llamaGuard", "https://l/v1"), SERVICE, "chat", "https://l/v1/chat/completions"],
    [at("llamaGuard", "https://l/v1/"), SERVICE, "chat", "https://l/v1/chat/completions"],
    [
      at("llamaGuard", "https://l/v1/chat/completions"),
      SERVICE,
      "chat",
      "https://l/v1/chat/completions",
    ],
  ])("%j with the service %s is %s %s", (classifier, guardEndpoint, protocol, url) => {
    const { policy, reason } = compiled({
      classifier,
      ...(guardEndpoint === undefined ? {} : { guardEndpoint }),
    });
    expect(policy).toMatchObject({ protocol, url });
    expect([policy.problem, reason]).toEqual([undefined, "Ready"]);
  });

  test.each(["stub", "promptGuard", "llamaGuard"])("%s needs the service", (type) => {
    const { policy, reason } = compiled({ classifier: { type } });
    expect(reason).toBe("GuardServiceNotAvailable");
    expect(policy).toMatchObject({ url: undefined, header: undefined });
    expect(policy.problem).toMatch(
      /^spec\.classifier\.endpoint is not set, and the installation has no guard service: set it/,
    );
  });
});

describe("the secret", () => {
  const auth = (more: object = {}) => ({
    classifier: {
      type: "custom",
      endpoint: "https://g",
      auth: { secretRef: "s", ...more },
    },
  });

  test("becomes a header, and is never shown", () => {
    const { policy } = compiled({ ...auth(), secret: { token: "hush-hush\n" } });
    expect(policy.header?.name).toBe("Authorization");
    expect(policy.header?.value.reveal()).toBe("Bearer hush-hush");
    expect(inspect(policy, { depth: 9 }) + JSON.stringify(policy)).not.toContain("hush");
  });

  test("has the key, the header and the prefix that the binding names", () => {
    const { policy } = compiled({
      ...auth({ secretKey: "k", header: "X-Api-Key", prefix: "" }),
      secret: { token: "no", k: "yes" },
    });
    expect([policy.header?.name, policy.header?.value.reveal()]).toEqual(["X-Api-Key", "yes"]);
  });

  test.each([
    ["no Secret", undefined, {}, "SecretDoesNotExist"],
    ["no key", { other: "x" }, {}, "SecretKeyDoesNotExist"],
    ["an empty value", { token: "" }, {}, "SecretValueInvalid"],
    ["a value of two lines", { token: "a\nb: c" }, {}, "SecretValueInvalid"],
    ["a value that is not ASCII", { token: "ä" }, {}, "SecretValueInvalid"],
    ["a variable that is not set", { token: "${TOKEN}" }, {}, "EnvironmentVariableNotSet"],
    ["a variable", { token: "${TOKEN}" }, { TOKEN: "t" }, "Ready"],
  ])("%s", (_, secret, env, reason) => {
    const found = compiled({ ...auth(), ...(secret === undefined ? {} : { secret }), env });
    expect(found.reason).toBe(reason);
    // Without its secret a classifier is not asked at all.
    expect(found.policy.url === undefined).toBe(reason !== "Ready");
    expect(found.policy.problem === undefined).toBe(reason === "Ready");
  });
});

describe("the id, for which verdicts are remembered", () => {
  const BASE: Scene = {
    classifier: { type: "custom", endpoint: "https://g", auth: { secretRef: "s" } },
    secret: { token: "a" },
  };
  const idOf = (scene: Scene) => compiled(scene).policy.id;

  test("is the same for the same classifier", () => expect(idOf(BASE)).toBe(idOf({ ...BASE })));

  test("contains no value", () => expect(idOf(BASE)).toMatch(/^[0-9a-f]{64}$/));

  const custom = (more: object) => ({ ...BASE.classifier, ...more });
  test.each<[string, Scene]>([
    ["value of the secret", { ...BASE, secret: { token: "b" } }],
    ["endpoint", { ...BASE, classifier: custom({ endpoint: "https://h" }) }],
    ["model", { ...BASE, classifier: custom({ model: "m" }) }],
    ["type", { ...BASE, classifier: custom({ type: "stub" }) }],
    ["header", { ...BASE, classifier: custom({ auth: { secretRef: "s", header: "X" } }) }],
    ["threshold", { ...BASE, spec: { thresholds: { injection: 0.1 } } }],
    ["name", { ...BASE, name: "h" }],
    ["label", { ...BASE, labels: { a: "b" } }],
  ])("changes with the %s", (_, scene) => expect(idOf(scene)).not.toBe(idOf(BASE)));

  test("changes with the address of the service", () => {
    const stub = { classifier: { type: "stub" } };
    expect(idOf({ ...stub, guardEndpoint: "http://a" })).not.toBe(
      idOf({ ...stub, guardEndpoint: "http://b" }),
    );
  });
});
