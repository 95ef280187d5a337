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
