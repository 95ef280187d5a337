import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { Secret } from "../../platform/secret.ts";
import { PROVIDER_KINDS, type ProviderKind } from "../../policy/snapshot.ts";
import type { LlmOperation } from "../request/routes.ts";
import { provider } from "../testing.ts";
import { parseRoute } from "../request/routes.ts";
import { upstreamAddress, upstreamKey, deliveryOf } from "./upstreams.ts";

const OPERATIONS: readonly LlmOperation[] = [
  "chat",
  "embeddings",
  "responses",
  "count_tokens",
  "embed_content",
];
const PATHS = (kind: ProviderKind, stream = false, apiVersion?: string) =>
  OPERATIONS.map(
    (operation) =>
      upstreamAddress(provider("p", { kind, apiVersion }), operation, "a/b c", stream)?.path,
  );

describe("paths of each kind: chat, embeddings, responses, count_tokens, embed_content", () => {
  const openai = ["/v1/chat/completions", "/v1/embeddings", "/v1/responses", undefined, undefined];

  test.each<[ProviderKind, (string | undefined)[]]>([
    ["openai", openai],
    ["openai-compatible", openai],
    ["mock", openai],
    [
      "azure-openai",
      ["/openai/chat/completions", "/openai/embeddings", "/openai/responses", undefined, undefined],
    ],
    ["anthropic", ["/v1/messages", undefined, undefined, "/v1/messages/count_tokens", undefined]],
    [
      "gemini",
      [
        "/v1beta/models/a%2Fb%20c:generateContent",
        "/v1beta/models/a%2Fb%20c:batchEmbedContents",
        undefined,
        "/v1beta/models/a%2Fb%20c:countTokens",
        "/v1beta/models/a%2Fb%20c:embedContent",
      ],
    ],
  ])("%s", (kind, paths) => {
    expect(PATHS(kind)).toEqual(paths);
  });

  test("Azure with an apiVersion names the deployment in the path", () => {
    expect(PATHS("azure-openai", false, "2024-10-21")).toEqual([
      "/openai/deployments/a%2Fb%20c/chat/completions?api-version=2024-10-21",
      "/openai/deployments/a%2Fb%20c/embeddings?api-version=2024-10-21",
      "/openai/responses?api-version=2024-10-21",
      undefined,
      undefined,
    ]);
    expect(PATHS("azure-openai", false, "a&b=c")[0]).toMatch(/\?api-version=a%26b%3Dc$/);
  });

  test("a stream has another path at Gemini only", () => {
    for (const kind of PROVIDER_KINDS) {
      const [chat] = PATHS(kind, true);
      expect(chat).toBe(
        kind === "gemini"
          ? "/v1beta/models/a%2Fb%20c:streamGenerateContent?alt=sse"
          : PATHS(kind)[0],
      );
    }
  });

  test("a model's name cannot leave its place in the path", () => {
    const path = upstreamAddress(provider("gemini"), "chat", "../../evil?x#y", false)?.path;
    expect(path).toBe("/v1beta/models/..%2F..%2Fevil%3Fx%23y:generateContent");
  });
});

describe("authority", () => {
  test.each([
    [true, "api.test", 443, "api.test"],
    [true, "api.test", 8443, "api.test:8443"],
    [true, "api.test", 80, "api.test:80"],
    [false, "api.test", 80, "api.test"],
    [false, "api.test", 443, "api.test:443"],
    [false, "127.0.0.1", 8000, "127.0.0.1:8000"],
    [true, "2001:db8::1", 443, "[2001:db8::1]"],
    [false, "::1", 8000, "[::1]:8000"],
  ])("tls %s, %s, %s: %s", (tls, host, port, authority) => {
    const endpoint = { tls, host, port, basePath: "" };
    expect(upstreamAddress(provider("openai", { endpoint }), "chat", "m", false)).toEqual({
      authority,
      path: "/chat/completions",
    });
  });
});

describe("authentication", () => {
  test.each<[ProviderKind, string, string]>([
    ["openai", "authorization", "Bearer k"],
    ["openai-compatible", "authorization", "Bearer k"],
    ["mock", "authorization", "Bearer k"],
    ["azure-openai", "api-key", "k"],
    ["anthropic", "x-api-key", "k"],
    ["gemini", "x-goog-api-key", "k"],
  ])("%s: %s", (kind, name, value) => {
    expect(upstreamKey(provider("p", { kind, apiKey: new Secret("k") }))).toEqual([name, value]);
    expect(upstreamKey(provider("p", { kind, apiKey: undefined }))).toBeUndefined();
  });

  test("a provider can be shown without showing its key", () => {
    const shown = provider("openai");
    expect(
      `${JSON.stringify(shown)}${inspect(shown, { depth: 9 })}${String(shown.apiKey)}`,
    ).not.toContain("sk-secret");
  });
});

describe("the delivery of a call", () => {
  const sent = (
    path: string,
    kind: ProviderKind,
    servesResponses?: boolean,
  ): string | undefined => {
    const route = parseRoute(path);
    if (route === undefined) throw new Error(`${path} is not a route`);
    const delivery = deliveryOf(
      provider("p", { kind, ...(servesResponses === undefined ? {} : { servesResponses }) }),
      route,
    );
    return delivery && `${delivery.kind} ${delivery.operation} ${delivery.dialect}`;
  };

  test.each<[string, ProviderKind, string | undefined]>([
    ["/v1/chat/completions", "openai", "pass chat openai"],
    ["/v1/chat/completions", "anthropic", "translate chat anthropic"],
    ["/v1/messages", "anthropic", "pass chat anthropic"],
    ["/v1/responses", "openai", "pass responses responses"],
    ["/v1/responses", "azure-openai", "pass responses responses"],
    ["/v1/responses", "mock", "pass responses responses"],
    ["/v1/responses", "openai-compatible", "translate chat openai"],
    ["/v1/responses", "anthropic", "translate chat anthropic"],
    ["/v1/responses", "gemini", "translate chat gemini"],
    ["/v1/messages/count_tokens", "anthropic", "pass count_tokens anthropic"],
    ["/v1/messages/count_tokens", "openai", undefined],
    ["/v1/embeddings", "openai-compatible", "pass embeddings openai"],
    ["/v1/embeddings", "gemini", "translate embeddings gemini"],
    ["/v1/embeddings", "anthropic", undefined],
    ["/v1beta/models/m:embedContent", "gemini", "pass embed_content gemini"],
    ["/v1beta/models/m:embedContent", "openai", "translate embeddings openai"],
    ["/v1beta/models/m:embedContent", "anthropic", undefined],
    ["/v1beta/models/m:batchEmbedContents", "gemini", "pass embeddings gemini"],
    ["/v1beta/models/m:batchEmbedContents", "mock", "translate embeddings openai"],
    ["/v1beta/models/m:batchEmbedContents", "anthropic", undefined],
  ])("%s at %s: %s", (path, kind, delivery) => {
    expect(sent(path, kind)).toBe(delivery);
  });

  test.each(PROVIDER_KINDS)("each call that %s is sent has an address there", (kind) => {
    const paths = [
      "/v1/chat/completions",
      "/v1/messages",
      "/v1/messages/count_tokens",
      "/v1/responses",
      "/v1/embeddings",
      "/v1beta/models/m:generateContent",
      "/v1beta/models/m:countTokens",
      "/v1beta/models/m:embedContent",
      "/v1beta/models/m:batchEmbedContents",
    ];
    for (const path of paths) {
      const route = parseRoute(path);
      if (route === undefined) throw new Error(`${path} is not a route`);
      const to = provider("p", { kind });
      const delivery = deliveryOf(to, route);
      const address = delivery && upstreamAddress(to, delivery.operation, "m", false);
      expect(address === undefined, path).toBe(delivery === undefined);
    }
  });

  test("a provider's own setting decides about responses", () => {
    expect(sent("/v1/responses", "openai-compatible", true)).toBe("pass responses responses");
    expect(sent("/v1/responses", "openai", false)).toBe("translate chat openai");
  });
});
