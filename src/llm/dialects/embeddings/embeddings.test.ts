import { describe, expect, test } from "vitest";
import { BadRequestError } from "../dialect.ts";
import { UpstreamFormatError } from "../model.ts";
import {
  type EmbeddingTranslation,
  passToGemini,
  translateEmbeddings,
  translateEmbeddingsAnswer,
} from "./translate.ts";

type Route = Pick<EmbeddingTranslation, "from" | "to" | "single">;
const TO_GEMINI: Route = { from: "openai", to: "gemini", single: false };
const TO_OPENAI: Route = { from: "gemini", to: "openai", single: false };
const ONE_TO_OPENAI: Route = { ...TO_OPENAI, single: true };

function translate(route: Route, body: unknown): unknown {
  const translated = translateEmbeddings({ ...route, body, model: "m", mode: "strict" });
  return {
    body: JSON.parse(translated.body.toString()) as unknown,
    notes: translated.changes.notes,
  };
}

function refused(route: Route, body: unknown): BadRequestError {
  try {
    translate(route, body);
  } catch (error) {
    if (error instanceof BadRequestError) return error;
    throw error;
  }
  throw new Error("accepted");
}

const content = (...texts: string[]) => ({ parts: texts.map((text) => ({ text })) });

describe("a request of OpenAI's client", () => {
  test("for Gemini", () => {
    const body = { model: "gemini/m", input: "a", dimensions: 8, user: "u", encoding_format: null };
    expect(translate(TO_GEMINI, body)).toEqual({
      body: { requests: [{ model: "models/m", content: content("a"), outputDimensionality: 8 }] },
      notes: [
        "user dropped: only identifies the caller to its vendor; it does not change an answer",
      ],
    });
  });

  test.each<[string, object, string, string]>([
    ["no input", {}, "input", "invalid_request"],
    ["an empty list", { input: [] }, "input", "invalid_request"],
    ["an object", { input: { a: 1 } }, "input", "invalid_request"],
    ["an object in the list", { input: ["a", {}] }, "input[1]", "invalid_request"],
    ["token ids", { input: [1, 2] }, "input[0]", "unsupported_by_upstream"],
    ["lists of token ids", { input: ["a", [1]] }, "input[1]", "unsupported_by_upstream"],
    [
      "another encoding",
      { input: "a", encoding_format: "int8" },
      "encoding_format",
      "invalid_request",
    ],
    ["dimensions in words", { input: "a", dimensions: "8" }, "dimensions", "invalid_request"],
    [
      "an unknown field",
      { input: "a", late_chunking: true },
      "late_chunking",
      "unsupported_by_upstream",
    ],
  ])("with %s is refused", (_name, body, param, code) => {
    expect(refused(TO_GEMINI, body)).toMatchObject({ param, code });
  });
});

describe("a request of Google's client", () => {
  test("for OpenAI: parts are joined, tasks are dropped", () => {
    const body = {
      requests: [
        { model: "models/x", content: content("a", "b"), taskType: "RETRIEVAL_QUERY" },
        { content: { role: "user", ...content("c") } },
      ],
    };
    expect(translate(TO_OPENAI, body)).toEqual({
      body: { model: "m", input: ["a\nb", "c"], encoding_format: "float" },
      notes: [
        "requests[0].taskType dropped: other vendors' models embed every text in the same way",
      ],
    });
  });

  test("for OpenAI: one content, in the spelling of protobuf", () => {
    const body = { content: content("a"), output_dimensionality: 4 };
    expect(translate(ONE_TO_OPENAI, body)).toEqual({
      body: { model: "m", input: ["a"], encoding_format: "float", dimensions: 4 },
      notes: [],
    });
  });

  test.each<[string, Route, object, string]>([
    ["no content", ONE_TO_OPENAI, {}, "content"],
    ["no requests", TO_OPENAI, {}, "requests"],
    ["an empty list", TO_OPENAI, { requests: [] }, "requests"],
    ["a request that is no object", TO_OPENAI, { requests: ["a"] }, "requests[0]"],
    [
      "an image",
      ONE_TO_OPENAI,
      { content: { parts: [{ inlineData: { mimeType: "image/png", data: "AA" } }] } },
      "content.parts[0]",
    ],
    [
      "lengths that differ",
      TO_OPENAI,
      { requests: [{ content: content("a") }, { content: content("b"), outputDimensionality: 2 }] },
      "requests[1].outputDimensionality",
    ],
  ])("with %s is refused", (_name, route, body, param) => {
    expect(refused(route, body).param).toBe(param);
  });
});

describe("a body for Gemini itself", () => {
  const pass = (body: Record<string, unknown>, single: boolean): unknown =>
    JSON.parse(passToGemini(body, "m", single).toString());

  test("names the allowed model only", () => {
    const own = { content: content("a"), model: "models/expensive" };
    expect(pass(own, true)).toEqual({ content: content("a"), model: "models/m" });
    expect(pass({ requests: [own, { content: content("b") }] }, false)).toEqual({
      requests: [
        { content: content("a"), model: "models/m" },
        { content: content("b"), model: "models/m" },
      ],
    });
  });

  test.each([{ requests: "x" }, { requests: [null] }, { requests: [["a"]] }])(
    "%j is refused",
    (body) => {
      expect(() => pass(body, false)).toThrow(BadRequestError);
    },
  );
});

describe("an answer", () => {
  const answer = (
    upstream: "openai" | "gemini",
    body: unknown,
    { single = false, packed = false } = {},
  ): unknown =>
    JSON.parse(
      translateEmbeddingsAnswer({
        upstream,
        client: upstream === "openai" ? "gemini" : "openai",
        body,
        single,
        model: "m",
        inputTokens: 7,
        echo: { settings: { packed }, tools: new Map() },
      }).toString(),
    );

  test("of Gemini, as numbers and packed", () => {
    const body = { embeddings: [{ values: [0.5, -0.25] }] };
    const usage = { prompt_tokens: 7, total_tokens: 7 };
    const entry = { object: "embedding", index: 0 };
    expect(answer("gemini", body)).toEqual({
      object: "list",
      data: [{ ...entry, embedding: [0.5, -0.25] }],
      model: "m",
      usage,
    });
    expect(answer("gemini", body, { packed: true })).toMatchObject({
      data: [{ ...entry, embedding: "AAAAPwAAgL4=" }],
    });
  });

  test("of OpenAI, for one and for several", () => {
    const body = { data: [{ embedding: [1] }, { embedding: [2] }] };
    expect(answer("openai", body)).toEqual({ embeddings: [{ values: [1] }, { values: [2] }] });
    const one = { data: [{ embedding: [1] }] };
    expect(answer("openai", one, { single: true })).toEqual({ embedding: { values: [1] } });
    expect(() => answer("openai", body, { single: true })).toThrow(UpstreamFormatError);
  });

  test.each([undefined, null, 7, {}, { data: {} }, { data: [7] }, { data: [{ embedding: "x" }] }])(
    "%j is not one",
    (body) => {
      expect(() => answer("openai", body)).toThrow(UpstreamFormatError);
      expect(() => answer("gemini", body)).toThrow(UpstreamFormatError);
    },
  );
});
