/** Bodies of a caller that wants another model, address, key or price than the gateway selects. */
import { describe, expect, test } from "vitest";
import { hashKey } from "../../access/credentials.ts";
import { FEATURES, type AgentLimits, type ModelProviderPolicy } from "../../policy/snapshot.ts";
import { agent, Gateway, NO_LIMITS, provider, snapshot, TOKEN } from "../testing.ts";

type Surface = "chat" | "responses" | "anthropic" | "gemini";

const PATHS: Readonly<Record<Surface, string>> = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  anthropic: "/v1/messages",
  gemini: "/v1beta/models/gemini%2Fm:generateContent",
};

const BODIES: Readonly<Record<Surface, object>> = {
  chat: { model: "openai/m", messages: [{ role: "user", content: "hi" }] },
  responses: { model: "openai/m", input: "hi" },
  anthropic: { model: "anthropic/m", max_tokens: 9, messages: [{ role: "user", content: "hi" }] },
  gemini: { contents: [{ role: "user", parts: [{ text: "hi" }] }] },
};

const BUDGET: Partial<AgentLimits> = { maxTokensPerDay: 1_000_000 };

/** @returns the refusal's code, or `sent` */
function send(
  surface: Surface,
  more: object,
  limits: Partial<AgentLimits> = {},
  overrides: Partial<ModelProviderPolicy> = {},
): string {
  const all = (["openai", "anthropic", "gemini"] as const).map((name) => provider(name, overrides));
  const gateway = new Gateway(...all);
  const caller = { ...agent(...all), limits: { ...NO_LIMITS, ...limits } };
  gateway.policy = {
    ...snapshot(...all),
    agentsByTokenHash: new Map([[hashKey(TOKEN), caller]]),
  };
  const { exchange } = gateway
    .trip()
    .request({ path: PATHS[surface], body: { ...BODIES[surface], ...more } });
  expect(gateway.defects).toEqual([]);
  if (exchange.last.kind === "proceed") return "sent";
  const body = exchange.responded.body;
  return (
    /(\w+_not_allowed|FIELD_NOT_ALLOWED|FEATURE_NOT_ALLOWED)/.exec(body)?.[1]?.toLowerCase() ?? body
  );
}

const REMOTE: readonly (readonly [Surface, object])[] = [
  ["chat", { api_base: "https://evil.test" }],
  ["chat", { apiBase: "https://evil.test" }],
  ["chat", { "API-Base": "https://evil.test" }],
  ["chat", { base_url: "https://evil.test" }],
  ["chat", { api_key: "sk-own" }],
  ["chat", { extra_headers: { authorization: "x" } }],
  ["chat", { extra_body: { model: "x" } }],
  ["chat", { litellm_params: {} }],
  ["chat", { data_sources: [{ type: "azure_search", parameters: { endpoint: "https://x" } }] }],
  ["chat", { dataSources: [{}] }],
  ["chat", { kv_transfer_params: { remote_host: "10.0.0.1" } }],
  ["responses", { tools: [{ type: "mcp", server_url: "https://x", server_label: "x" }] }],
  ["responses", { tools: [{ type: "mcp", connector_id: "connector_gmail", authorization: "t" }] }],
  ["anthropic", { mcp_servers: [{ type: "url", url: "https://x" }] }],
  ["anthropic", { mcpServers: [{ type: "url", url: "https://x" }] }],
  ["anthropic", { tools: [{ type: "x_1", config: { inner: [{ authorization_token: "t" }] } }] }],
  ["gemini", { tools: [{ retrieval: { externalApi: { endpoint: "https://x" } } }] }],
  ["gemini", { tools: [{ retrieval: { external_api: { api_auth: {} } } }] }],
  ["gemini", { tools: { mcpServers: [{}] } }],
];

const OTHER_MODELS: readonly (readonly [Surface, object])[] = [
  ["chat", { route: "fallback" }],
  ["chat", { preset: "expensive" }],
  ["chat", { model_list: [] }],
  ["chat", { fallbacks: [{ "gpt-4": ["gpt-5"] }] }],
  ["chat", { models: [1] }],
  ["chat", { models: ["m", 1] }],
  ["chat", { models: ["m", { name: "n" }] }],
  ["chat", { context_window_fallbacks: [] }],
  ["chat", { providerOptions: { gateway: { models: ["x"] } } }],
  ["responses", { prompt: { id: "pmpt_1" } }],
  ["responses", { tools: [{ type: "image_generation", model: "gpt-image-1" }] }],
  ["anthropic", { tools: [{ type: "advisor_20260301", name: "a", model: "claude-opus" }] }],
  ["anthropic", { tools: [{ type: "x_1", deep: { deeper: { Model: "claude-opus" } } }] }],
];

const UNMETERED: readonly (readonly [Surface, object])[] = [
  ["responses", { background: true }],
  ["responses", { background: "true" }],
  ["chat", { service_tier: 1 }],
  ["chat", { enable_search: true }],
  ["responses", { tools: [{ type: "web_search" }] }],
  ["responses", { tools: [{ type: "code_interpreter", container: { type: "auto" } }] }],
  ["responses", { tools: [{ type: "something_new" }] }],
  ["responses", { tools: [{ type: 7 }] }],
  ["responses", { tools: [{ type: ["function"] }] }],
  ["responses", { service_tier: "priority" }],
  ["chat", { service_tier: "PRIORITY" }],
  ["chat", { serviceTier: "priority" }],
  ["chat", { web_search_options: {} }],
  ["chat", { plugins: [{ id: "web" }] }],
  ["chat", { search_parameters: { mode: "on" } }],
  ["anthropic", { tools: [{ type: "web_search_20250305", name: "web_search" }] }],
  ["anthropic", { tools: [{ type: "code_execution_20250825", name: "x" }] }],
  ["anthropic", { tools: [{ type: "function", name: "x" }] }],
  ["anthropic", { speed: "fast" }],
  ["anthropic", { inference_geo: "us" }],
  ["gemini", { tools: [{ googleSearch: {} }] }],
  ["gemini", { tools: [{ functionDeclarations: [], code_execution: {} }] }],
  ["gemini", { tools: { url_context: {} } }],
];

/** Bodies of ordinary clients, some of which contain words of the lists as data. */
const ORDINARY: readonly (readonly [Surface, object])[] = [
  [
    "chat",
    { tools: [{ type: "function", function: { name: "f", parameters: { model: 1, url: 2 } } }] },
  ],
  ["chat", { tools: [{ type: "custom", custom: { name: "f" } }], tool_choice: "auto" }],
  ["chat", { tools: [], models: null, plugins: [], background: false, service_tier: "auto" }],
  ["chat", { metadata: { api_key: "just a word" }, user: "api_base", service_tier: "flex" }],
  ["chat", { enable_search: false, service_tier: "DEFAULT" }],
  ["chat", { tools: [{ function: { name: "f" } }, { type: "function", headers: null }] }],
  ["chat", { tools: ["not a tool"] }],
  ["chat", { top_k: 5, repetition_penalty: 1.1, guided_json: {}, provider: { order: ["a"] } }],
  [
    "responses",
    { tools: [{ type: "function", name: "f", parameters: { properties: { url: {} } } }] },
  ],
  ["responses", { tools: [{ type: "local_shell" }, { type: "apply_patch" }], prompt: "text" }],
  ["anthropic", { tools: [{ name: "f", input_schema: { properties: { model: {}, url: {} } } }] }],
  ["anthropic", { tools: [{ type: "bash_20250124", name: "bash" }], speed: "standard" }],
  ["anthropic", { tools: [{ type: "custom", name: "f", input_schema: {} }], service_tier: "auto" }],
  ["gemini", { tools: [{ functionDeclarations: [{ name: "f", parameters: { url: 1 } }] }] }],
  ["gemini", { tools: [{ function_declarations: [{ name: "model" }] }, { computerUse: {} }] }],
];

describe("addresses and keys", () => {
  test.each(REMOTE)("%s %j is refused", (surface, more) => {
    expect(send(surface, more)).toBe("field_not_allowed");
    expect(send(surface, more, {}, { allowedFeatures: new Set(FEATURES) })).toBe("sent");
  });
});

describe("other models", () => {
  test.each(OTHER_MODELS)("%s %j is refused", (surface, more) => {
    expect(send(surface, more)).toBe("field_not_allowed");
    expect(send(surface, more, {}, { allowedFeatures: new Set(FEATURES) })).toBe("sent");
  });

  test.each([
    [{ models: ["m", "n"] }, "sent"],
    [{ fallbacks: [{ model: "n" }] }, "sent"],
    [{ models: ["secret-model"] }, "field_not_allowed"],
    [{ models: ["m", "secret-model"] }, "field_not_allowed"],
    [{ models: "m" }, "sent"],
    [{ models: "secret-model" }, "field_not_allowed"],
    [{ fallbacks: { model: "secret-model" } }, "field_not_allowed"],
    [{ Models: ["secret-model"] }, "field_not_allowed"],
    [{ models: ["../anthropic/m", "*"] }, "field_not_allowed"],
  ])("a list of models is judged like the model: %j", (more, result) => {
    const secret = (name: string) => name !== "secret-model" && !name.includes("*");
    const opened = provider("openai");
    const gateway = new Gateway(opened);
    const caller = agent(opened);
    gateway.policy = {
      ...snapshot(opened),
      agentsByTokenHash: new Map([
        [
          hashKey(TOKEN),
          {
            ...caller,
            resolveModel: (name) =>
              secret(name.replace("openai/", ""))
                ? caller.resolveModel(name)
                : { kind: "denied", reason: "no" },
          },
        ],
      ]),
    };
    const { exchange } = gateway.trip().request({ body: { ...BODIES.chat, ...more } });
    expect(exchange.last.kind === "proceed" ? "sent" : exchange.responded.body).toContain(result);
  });
});

describe("a feature that is allowed opens no other", () => {
  const REMOTE_TOOL = { tools: [{ type: "x_1", server_url: "https://x" }] };
  const MODEL_TOOL = { tools: [{ type: "x_1", model: "claude-opus" }] };
  const FALLBACK_TOOL = { tools: [{ type: "x_1", fallback_model: "claude-opus" }] };

  test.each([
    ["otherModels", REMOTE_TOOL, "field_not_allowed"],
    ["remoteResources", REMOTE_TOOL, "sent"],
    ["otherModels", MODEL_TOOL, "sent"],
    ["remoteResources", MODEL_TOOL, "field_not_allowed"],
    ["otherModels", FALLBACK_TOOL, "sent"],
    ["remoteResources", FALLBACK_TOOL, "field_not_allowed"],
  ] as const)("%s, of a tool: %j", (feature, more, result) => {
    const allowedFeatures = new Set([feature]);
    expect(send("anthropic", more, {}, { allowedFeatures })).toBe(result);
  });
});

test("a refusal names the member by its place", () => {
  const gateway = new Gateway(provider("anthropic"));
  const tools = [{ name: "f" }, { config: { inner: [{}, { url: "https://x" }] } }];
  const body = { ...BODIES.anthropic, tools };
  const { exchange } = gateway.trip().request({ path: PATHS.anthropic, body });
  expect(exchange.responded.body).toContain("tools[1].config.inner[1].url is not allowed");
});

describe("features whose cost is not known", () => {
  test.each(UNMETERED)("%s %j is refused where a budget applies", (surface, more) => {
    expect(send(surface, more, BUDGET)).toBe("feature_not_allowed");
    expect(send(surface, more, { maxMicroUsdPerDay: 1_000_000 })).toBe("feature_not_allowed");
    expect(send(surface, more, { maxTokensPerRequest: 100_000 })).toBe("feature_not_allowed");
    expect(send(surface, more, { requestsPerMinute: 10 })).toBe("sent");
    expect(send(surface, more, BUDGET, { allowedFeatures: new Set(FEATURES) })).toBe("sent");
  });

  test("a fallback that does not allow the feature does not get it either", () => {
    const opened = provider("openai", {
      allowedFeatures: new Set(["remoteResources"]),
      fallbacks: [{ provider: "default/other", model: undefined }],
    });
    const gateway = new Gateway(opened, provider("other"));
    const { exchange } = gateway.trip().request({ body: { ...BODIES.chat, api_base: "x" } });
    expect(exchange.responded.body).toContain(
      "add remoteResources to spec.allowedFeatures of the ModelProvider other",
    );
  });
});

test.each(ORDINARY)("%s %j passes, with a budget too", (surface, more) => {
  expect(send(surface, more, BUDGET)).toBe("sent");
});

test("a tool that nests without end is refused", () => {
  let tool: object = { x: 1 };
  for (let n = 0; n < 100; n++) tool = { x: tool };
  expect(send("anthropic", { tools: [{ type: "custom", deep: tool }] })).toBe("field_not_allowed");
});

describe("a translation, which has none of what a vendor bills apart", () => {
  const sentToAnthropic = (more: object): string =>
    send("responses", { model: "anthropic/m", ...more }, BUDGET);

  test("web search is dropped, so that agents which always send it may have a budget", () => {
    expect(sentToAnthropic({ tools: [{ type: "web_search" }] })).toBe("sent");
    expect(sentToAnthropic({ service_tier: "priority" })).toBe("sent");
  });

  test.each<[string, object]>([
    ["a tool that is not dropped", { tools: [{ type: "code_interpreter" }] }],
    ["a background call", { background: true }],
  ])("%s is refused by the translation", (_name, more) => {
    expect(sentToAnthropic(more)).toContain("unsupported_by_upstream");
  });

  test.each<[string, object]>([
    ["an address", { tools: [{ type: "mcp", server_url: "https://x" }] }],
    ["another model", { tools: [{ type: "image_generation", model: "gpt-image-1" }] }],
  ])("%s is refused as anywhere", (_name, more) => {
    expect(sentToAnthropic(more)).toBe("field_not_allowed");
  });

  test("a chain that ends at the vendor's own API is judged by it", () => {
    const openai = provider("openai");
    const anthropic = provider("anthropic", {
      fallbacks: [{ provider: openai.key, model: undefined }],
    });
    const gateway = new Gateway(anthropic, openai);
    const caller = { ...agent(anthropic, openai), limits: { ...NO_LIMITS, ...BUDGET } };
    gateway.policy = {
      ...snapshot(anthropic, openai),
      agentsByTokenHash: new Map([[hashKey(TOKEN), caller]]),
    };
    const body = { model: "anthropic/m", input: "hi", tools: [{ type: "web_search" }] };
    const { responded } = gateway.trip().request({ path: PATHS.responses, body }).exchange;
    expect(responded.status).toBe(403);
    expect(responded.body).toContain("feature_not_allowed");
  });
});
