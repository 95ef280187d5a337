import { describe, expect, test } from "vitest";
import type { Surface } from "../../envoy/config/surface.ts";
import { dialectOfPath, EXTERNAL_GEMINI_PATHS, GEMINI_PATHS, parseRoute } from "./routes.ts";
import { llmSurfaces } from "../surface.ts";

const plain = { audience: "internal", model: undefined, stream: undefined, query: "" };
const external = { ...plain, audience: "external" };

describe("parseRoute", () => {
  test.each([
    ["/v1/chat/completions", { ...plain, operation: "chat", dialect: "openai" }],
    ["/v1/embeddings", { ...plain, operation: "embeddings", dialect: "openai" }],
    ["/v1/responses", { ...plain, operation: "responses", dialect: "responses" }],
    ["/v1/messages", { ...plain, operation: "chat", dialect: "anthropic" }],
    [
      "/v1/messages/count_tokens?beta=true",
      { ...plain, operation: "count_tokens", dialect: "anthropic", query: "beta=true" },
    ],
    [
      "/v1beta/models/gemini-2.5-pro:generateContent?key=k",
      {
        ...plain,
        operation: "chat",
        dialect: "gemini",
        model: "gemini-2.5-pro",
        stream: false,
        query: "key=k",
      },
    ],
    [
      "/v1/models/g/gemini%2Dpro:streamGenerateContent?alt=sse",
      {
        ...plain,
        operation: "chat",
        dialect: "gemini",
        model: "g/gemini-pro",
        stream: true,
        query: "alt=sse",
      },
    ],
    [
      "/v1beta/models/a:countTokens",
      { ...plain, operation: "count_tokens", dialect: "gemini", model: "a", stream: false },
    ],
    [
      "/v1beta/models/a:embedContent",
      { ...plain, operation: "embed_content", dialect: "gemini", model: "a", stream: false },
    ],
    [
      "/v1beta/models/a:batchEmbedContents",
      { ...plain, operation: "embeddings", dialect: "gemini", model: "a", stream: false },
    ],
    ["/ext/v1/chat/completions", { ...external, operation: "chat", dialect: "openai" }],
    ["/ext/v1/messages", { ...external, operation: "chat", dialect: "anthropic" }],
    [
      "/ext/v1/messages/count_tokens",
      { ...external, operation: "count_tokens", dialect: "anthropic" },
    ],
    // Anthropic's clients with the base URL {base_url}/ext/v1.
    [
      "/ext/v1/v1/messages?beta=true",
      { ...external, operation: "chat", dialect: "anthropic", query: "beta=true" },
    ],
    [
      "/ext/v1beta/models/a:generateContent",
      { ...external, operation: "chat", dialect: "gemini", model: "a", stream: false },
    ],
  ])("%s", (path, route) => {
    expect(parseRoute(path)).toEqual(route);
  });

  test.each([
    "/v1/chat/completions/",
    "/v1/chat/completions/x",
    "/V1/messages",
    "//v1/messages",
    "/v1//messages",
    "/v1/./messages",
    "/v1/messages;x",
    "/v1%2Fmessages",
    "/v1/messages%00",
    "http://other/v1/messages",
    "/v1beta/models/:generateContent",
    "/v1beta/models/%E0%A4%A:generateContent",
    "/v1beta/models/a:predict",
    "/v1beta/models/a",
    "/__proto__",
    "/constructor",
    "/ext",
    "/ext/",
    "/ext/metrics",
    "/ext/ext/v1/messages",
    "/extv1/messages",
    "/EXT/v1/messages",
    "/ext/v1/v1/v1/messages",
    "/v1/v1/messages",
    "/v1/ext/messages",
    "/ext%2Fv1/messages",
    "",
  ])("none of ours: %s", (path) => {
    expect(parseRoute(path)).toBeUndefined();
  });
});

test("every path of the surfaces is of the audience that it is for", () => {
  const [internal, external] = llmSurfaces({ uploadIdleMs: 1 });
  const audiences = ({ paths }: Surface) =>
    new Set(paths.map((path) => path.kind === "exact" && parseRoute(path.path)?.audience));
  expect(audiences(internal as Surface)).toEqual(new Set(["internal", false]));
  expect(audiences(external as Surface)).toEqual(new Set(["external", false]));
  expect(internal?.listeners).toEqual(["svc-gateway"]);
});

test.each([
  ["/v1/models/a/b:generateContent", true],
  ["/v1beta/models/a/b:streamGenerateContent", true],
  ["/v1beta/models/a:countTokens", true],
  ["/v1/models/a/b:embedContent", true],
  ["/v1beta/models/a:batchEmbedContents", true],
  ["/v1beta/openai/gpt-5:embedContent", true],
  ["/v1beta/models/a:asyncBatchEmbedContent", false],
  ["/v1beta/models/a:toString", false],
  ["/v1beta/openai/gpt-5:generateContent", true],
  ["/v1beta/gpt-5:generateContent", false],
  ["/v2/models/a:generateContent", false],
  ["/v1/models/:generateContent", false],
  ["/v1beta/models/a:generateContent/x", false],
])("Envoy sends the processor the paths of Gemini that it knows: %s", (path, known) => {
  const sent = (paths: readonly string[], whole: string): boolean =>
    paths.some((regex) => new RegExp(`^(?:${regex})$`).test(whole));
  expect(sent(GEMINI_PATHS, path)).toBe(known);
  expect(sent(EXTERNAL_GEMINI_PATHS, `/ext${path}`)).toBe(known);
  expect(parseRoute(path) !== undefined).toBe(known);
});

test("errors speak the language of the path's clients", () => {
  expect(dialectOfPath("/v1beta/anything")).toBe("gemini");
  expect(dialectOfPath("/v1/models/x:y")).toBe("gemini");
  expect(dialectOfPath("/v1/messages/batches")).toBe("anthropic");
  expect(dialectOfPath("/v1/files")).toBe("openai");
  expect(dialectOfPath("/ext/v1/v1/messages/batches")).toBe("anthropic");
  expect(dialectOfPath("/ext/v1beta/anything")).toBe("gemini");
});
