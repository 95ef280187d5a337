import { describe, expect, test } from "vitest";
import { permitFor } from "../request/authorize.ts";
import { JsonBody } from "../request/json-body.ts";
import { prepareAttempt } from "./prepare.ts";
import { parseRoute } from "../request/routes.ts";
import { accessKey, agent, provider, snapshot } from "../testing.ts";
import { chat } from "../testing-samples.ts";

const openai = provider("openai", { fallbacks: [{ provider: "default/anthropic", model: "m" }] });
const anthropic = provider("anthropic");
const other = provider("gemini");

const route = parseRoute("/v1/chat/completions");
if (route === undefined) throw new Error("no route");
const grant = { ref: "openai/m", provider: openai, model: "m" };
const permit = permitFor({
  caller: agent(openai, anthropic, other),
  grant,
  route,
  snapshot: snapshot(openai, anthropic, other),
});
if (permit === undefined) throw new Error("no permit");

const source = {
  route,
  stream: false,
  body: JsonBody.read(Buffer.from(JSON.stringify(chat("openai/m")))),
  vendorHeaders: { anthropicVersion: undefined, anthropicBeta: undefined },
  outputCap: undefined,
};

test("a permit names the requested provider and its fallbacks", () => {
  expect(permit.targets.map(({ provider: { name }, model }) => [name, model])).toEqual([
    ["openai", "m"],
    ["anthropic", "m"],
  ]);
});

test("its targets can be prepared, with the key of each", () => {
  const keys = permit.targets.map((target) => {
    const { set } = prepareAttempt(permit, target, source);
    return set.find(([name]) => name === "authorization" || name === "x-api-key")?.[1];
  });
  expect(keys).toEqual(["Bearer sk-secret-openai", "sk-secret-anthropic"]);
});

test.each([
  ["another provider of the caller", { provider: other, model: "m" }],
  ["another model of the same provider", { provider: openai, model: "secret-model" }],
  ["a copy of a target", { ...permit.targets[0] }],
])("%s gets no key", (_name, target) => {
  expect(() => prepareAttempt(permit, target, source)).toThrow("the permit does not allow");
});

describe("fallbacks that a permit leaves out", () => {
  const external = { maxTokensPerDay: undefined };
  const fallbacks = [{ provider: "default/anthropic", model: undefined }];
  const first = provider("openai", { fallbacks, external });

  function targetsOf(
    kind: "agent" | "key",
    fallback: ReturnType<typeof provider> | undefined,
    path = "/v1/chat/completions",
  ): string[] {
    const asked = parseRoute(path);
    if (asked === undefined) throw new Error("no route");
    const all = fallback === undefined ? [first] : [first, fallback];
    const found = permitFor({
      caller: kind === "agent" ? agent(...all) : accessKey(first),
      grant: { ref: "openai/m", provider: first, model: "m" },
      route: asked,
      snapshot: snapshot(...all),
    });
    return found?.targets.map(({ provider: { name }, model }) => `${name}/${model}`) ?? [];
  }

  test("none, of a provider that may be used: the model is the requested one", () => {
    expect(targetsOf("agent", anthropic)).toEqual(["openai/m", "anthropic/m"]);
    expect(targetsOf("key", provider("anthropic", { external }))).toEqual([
      "openai/m",
      "anthropic/m",
    ]);
  });

  test.each<[name: string, targets: () => string[]]>([
    ["one without external access, for a key", () => targetsOf("key", anthropic)],
    ["one that does not exist", () => targetsOf("agent", undefined)],
    [
      "one that does not allow the model",
      () => targetsOf("agent", provider("anthropic", { allowsModel: (model) => model !== "m" })),
    ],
    ["one without the endpoint", () => targetsOf("agent", anthropic, "/v1/embeddings")],
  ])("%s", (_name, targets) => {
    expect(targets()).toEqual(["openai/m"]);
  });
});

test.each([
  [true, "relayed/default/openai@https://openai.test:443"],
  [false, undefined],
])(
  "a provider whose answers are read to the end (%s) is reached by the relay",
  (readsToEnd, to) => {
    const read = provider("openai", { readsToEnd });
    const found = permitFor({
      caller: agent(read),
      grant: { ref: "openai/m", provider: read, model: "m" },
      route,
      snapshot: snapshot(read),
    });
    if (found === undefined) throw new Error("no permit");
    const { set } = prepareAttempt(found, found.targets[0], source);
    expect(set.find(([name]) => name === "x-svc-relay")?.[1]).toBe(to);
  },
);
