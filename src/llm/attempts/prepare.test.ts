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

describe("a request that is prepared", () => {
  const PATHS = {
    chat: "/v1/chat/completions",
    messages: "/v1/messages",
    embeddings: "/v1/embeddings",
    responses: "/v1/responses",
    gemini: "/v1beta/models/gemini%2Fm:embedContent",
  };
  const VENDOR = { anthropicVersion: "2023-01-01", anthropicBeta: "some-beta" };

  function prepared(
    path: keyof typeof PATHS,
    to: ReturnType<typeof provider>,
    body: object,
    more: Partial<Parameters<typeof prepareAttempt>[2]> = {},
  ) {
    const asked = parseRoute(PATHS[path]);
    if (asked === undefined) throw new Error("no route");
    const target = { provider: to, model: "m" };
    const raw = Buffer.from(JSON.stringify(body));
    const {
      set,
      remove,
      body: sent,
    } = prepareAttempt({ targets: [target] } as never, target, {
      ...source,
      route: asked,
      vendorHeaders: VENDOR,
      body: JsonBody.read(raw),
      ...more,
    });
    const text = sent === undefined ? undefined : Buffer.concat([...sent]).toString();
    const json = text === undefined ? undefined : (JSON.parse(text) as unknown);
    return { set: Object.fromEntries(set), remove, body: json };
  }

  test("has the headers of its provider alone", () => {
    expect(prepared("chat", openai, chat("openai/m"))).toMatchObject({
      set: {
        ":path": "/v1/chat/completions",
        ":authority": "openai.test",
        "content-type": "application/json",
        authorization: "Bearer sk-secret-openai",
      },
      remove: ["x-api-key", "api-key", "x-goog-api-key", "anthropic-version", "anthropic-beta"],
    });
  });

  test("keeps a vendor's headers where it passes, and not where it is translated", () => {
    const passed = prepared("messages", anthropic, chat("anthropic/m"));
    expect(passed.set).toMatchObject({
      "x-api-key": "sk-secret-anthropic",
      "anthropic-version": "2023-01-01",
      "anthropic-beta": "some-beta",
    });
    expect(passed.remove).toEqual(["authorization", "api-key", "x-goog-api-key"]);
    const translated = prepared("chat", anthropic, chat("openai/m", { max_tokens: 5 }));
    expect(translated.set["anthropic-version"]).not.toBe("2023-01-01");
    expect(translated.set).not.toHaveProperty("anthropic-beta");
    expect(translated.remove).toContain("anthropic-beta");
  });

  test("has no key of a provider without one, and removes the caller's", () => {
    const { set, remove } = prepared("chat", provider("mock"), chat("mock/m"));
    expect(Object.keys(set)).toEqual([":path", ":authority", "content-type"]);
    expect(remove).toContain("authorization");
  });

  test("is capped where the caller set no maximum, in the field of its provider", () => {
    const capped = { outputCap: 50 };
    expect(prepared("chat", openai, chat("openai/m"), capped).body).toMatchObject({
      model: "m",
      max_completion_tokens: 50,
    });
    const compatible = provider("p", { kind: "openai-compatible" });
    expect(prepared("chat", compatible, chat("p/m"), capped).body).toMatchObject({
      max_tokens: 50,
    });
    const uncapped = prepared("chat", openai, chat("openai/m")).body;
    expect(uncapped).not.toHaveProperty("max_completion_tokens");
  });

  test("asks for the usage of a stream of a chat, and of no other stream", () => {
    const stream = { stream: true };
    const body = { model: "openai/m", input: "x", stream: true };
    expect(prepared("chat", openai, chat("openai/m", stream), stream).body).toMatchObject({
      stream_options: { include_usage: true },
    });
    const passed = prepared("responses", openai, body, stream).body;
    expect(passed).toMatchObject({ model: "m" });
    expect(passed).not.toHaveProperty("stream_options");
  });

  test("of embeddings passes, or is translated", () => {
    const body = { model: "openai/m", input: ["a", "b"] };
    expect(prepared("embeddings", openai, body).body).toEqual({ model: "m", input: ["a", "b"] });
    const batch = prepared("embeddings", other, body);
    expect(batch.set[":path"]).toBe("/v1beta/models/m:batchEmbedContents");
    expect(batch.body).toMatchObject({ requests: [{ model: "models/m" }, { model: "models/m" }] });
    const content = { content: { parts: [{ text: "a" }] } };
    const single = prepared("gemini", other, content);
    expect(single.set[":path"]).toBe("/v1beta/models/m:embedContent");
    expect(single.body).toMatchObject(content);
    expect(prepared("gemini", openai, content).body).toMatchObject({ model: "m" });
  });

  test("at a provider without the endpoint is an error with a code", () => {
    expect(() => prepared("embeddings", anthropic, { model: "m", input: "a" })).toThrow(
      expect.objectContaining({ code: "unsupported_by_upstream" }) as Error,
    );
  });
});
