import { expect, test } from "vitest";
import { readFacts } from "./facts.ts";
import { JsonBody } from "./json-body.ts";
import { parseRoute } from "./routes.ts";

const read = (path: string, body: object) => {
  const route = parseRoute(path);
  if (route === undefined) throw new Error(`${path} is not a route`);
  return readFacts(route, JsonBody.read(Buffer.from(JSON.stringify(body))));
};

test.each(["/v1/chat/completions", "/v1/messages", "/v1/embeddings", "/v1/responses"])(
  "POST %s without a model is refused",
  (path) => {
    expect(() => read(path, { messages: [], input: "x", max_tokens: 1 })).toThrow(
      expect.objectContaining({ code: "invalid_request", param: "model" }),
    );
  },
);

test("the model of the path counts, whatever the body says", () => {
  const path = "/v1beta/models/openai%2Fm:generateContent";
  expect(read(path, { model: "other/m", contents: [] }).model).toBe("openai/m");
});

test.each([
  [{ model: 5 }, "model"],
  [{ model: ["m"] }, "model"],
  [{ model: null }, "model"],
  [{ model: "m", stream: "true" }, "stream"],
  [{ model: "m", stream: 1 }, "stream"],
  [{ model: "m", n: 0 }, "n"],
  [{ model: "m", n: 1.5 }, "n"],
  [{ model: "m", n: "2" }, "n"],
  [{ model: "m", max_output_tokens: -1 }, "max_output_tokens"],
  [{ model: "m", max_output_tokens: "9" }, "max_output_tokens"],
])("embeddings of %j are refused because of %s", (body, param) => {
  expect(() => read("/v1/embeddings", { input: "x", ...body })).toThrow(
    expect.objectContaining({ code: "invalid_request", param }),
  );
});

test.each([
  [{}, { stream: false, choices: 1, maxOutputTokens: undefined }],
  [
    { stream: null, n: null, max_output_tokens: null },
    { stream: false, choices: 1, maxOutputTokens: undefined },
  ],
  [
    { stream: true, n: 1, max_output_tokens: 0 },
    { stream: true, choices: 1, maxOutputTokens: 0 },
  ],
])("embeddings of %j are understood", (body, expected) => {
  expect(read("/v1/embeddings", { model: "m", input: "x", ...body })).toMatchObject({
    model: "m",
    wantsUsage: true,
    reasoning: { kind: "unspecified" },
    ...expected,
  });
});

test("Gemini's path says whether the answer is a stream", () => {
  const streams = (method: string): boolean =>
    read(`/v1beta/models/m:${method}`, { contents: [], stream: method === "generateContent" })
      .stream;
  expect(streams("generateContent")).toBe(false);
  expect(streams("streamGenerateContent")).toBe(true);
});
