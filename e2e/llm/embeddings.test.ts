/** Embeddings with the official clients of OpenAI and Google, to providers of both. */
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { useFixture } from "../support/fixture.ts";
import { expectMediated } from "../support/mediated.ts";
import { accessKeyYaml, providerYaml, rawKey } from "../support/resources.ts";

const fixture = useFixture({
  models: ["openai/*", "anthropic/*", "gemini/*", "chain/*", "mock/*"],
  providers: { gemini: { spec: { externalAccess: { enabled: true } } } },
  files: ({ gemini }) => ({
    "mock.yaml": JSON.stringify({
      apiVersion: "svc.io/v1",
      kind: "ModelProvider",
      metadata: { name: "mock" },
      spec: { provider: "mock" },
    }),
    "key.yaml": accessKeyYaml("to-gemini", "gemini"),
    "chain.yaml": providerYaml("chain", gemini, {
      spec: { fallbacks: [{ provider: "openai", model: "text-embedding-3-small" }] },
    }),
  }),
});

const MODEL = "gemini-embedding-001";
/** Exact in 32 bits, which is how OpenAI's client asks for them. */
const VECTORS = [
  [0.5, -0.25],
  [1, 0.125],
];
const GEMINI_ANSWER = { embeddings: VECTORS.map((values) => ({ values })) };
const OPENAI_ANSWER = {
  object: "list",
  data: VECTORS.map((embedding, index) => ({ object: "embedding", index, embedding })),
  model: "text-embedding-3-small",
  usage: { prompt_tokens: 3, total_tokens: 3 },
};

function openaiClient(apiKey = fixture.token, baseURL = `${fixture.stack.baseUrl}/v1`): OpenAI {
  return new OpenAI({ apiKey, baseURL, maxRetries: 0 });
}

function googleClient(): GoogleGenAI {
  const httpOptions = { baseUrl: fixture.stack.baseUrl, retryOptions: { attempts: 1 } };
  return new GoogleGenAI({ apiKey: fixture.token, httpOptions });
}

describe("OpenAI's client at Gemini", () => {
  test.each([undefined, "float", "base64"] as const)("encoding %s", async (encoding) => {
    const { gemini } = fixture.vendors;
    gemini.next(gemini.replies(200, GEMINI_ANSWER));
    const { data, response } = await openaiClient()
      .embeddings.create({
        model: `gemini/${MODEL}`,
        input: ["hello", "world"],
        dimensions: 2,
        ...(encoding === undefined ? {} : { encoding_format: encoding }),
      })
      .withResponse();
    const shown = data.data.map(({ embedding }) => embedding);
    if (encoding === "base64") expect(typeof shown[0]).toBe("string");
    else expect(shown).toEqual(VECTORS);
    expectMediated(fixture, gemini, gemini.only);
    expect(gemini.only.path).toBe(`${gemini.basePath}/models/${MODEL}:batchEmbedContents`);
    const request = (text: string): object => ({
      model: `models/${MODEL}`,
      content: { parts: [{ text }] },
      outputDimensionality: 2,
    });
    expect(gemini.only.json).toEqual({ requests: [request("hello"), request("world")] });
    // Gemini reports no usage: the client sees the estimate that is billed, which is marked.
    const tokens = data.usage.prompt_tokens;
    expect(tokens).toBeGreaterThan(0);
    expect(response.headers.get("x-svc-input-tokens")).toBe(String(tokens));
    expect(response.headers.get("x-svc-output-tokens")).toBe("0");
    const line = await fixture.stack.callOf(response.headers.get("x-svc-call-id") ?? "");
    expect(line).toMatchObject({ operation: "embeddings", usage: "estimated" });
  });

  test("one text, on /ext/v1", async () => {
    const { gemini } = fixture.vendors;
    gemini.next(gemini.replies(200, { embeddings: [{ values: VECTORS[0] }] }));
    const outside = openaiClient(rawKey("to-gemini"), `${fixture.stack.externalUrl}/ext/v1`);
    const answer = await outside.embeddings.create({ model: MODEL, input: "hello" });
    expect(answer.data[0]?.embedding).toEqual(VECTORS[0]);
  });

  test("token ids are refused, because they are of another model's tokenizer", async () => {
    for (const input of [[1, 2], [[1, 2]]]) {
      const error = await openaiClient()
        .embeddings.create({ model: `gemini/${MODEL}`, input })
        .catch((caught: unknown) => caught);
      expect(error).toMatchObject({ status: 400, code: "unsupported_by_upstream" });
    }
    expect(fixture.vendors.gemini.requests).toHaveLength(0);
  });

  test("an error of Gemini keeps its status", async () => {
    const { gemini } = fixture.vendors;
    gemini.next(gemini.fails({ status: 400, message: "too many texts" }));
    const error = await openaiClient()
      .embeddings.create({ model: `gemini/${MODEL}`, input: "x" })
      .catch((caught: unknown) => caught);
    expect(error).toMatchObject({ status: 400 });
    expect((error as Error).message).toContain("too many texts");
  });

  test("a chain from Gemini to OpenAI", async () => {
    const { gemini, openai } = fixture.vendors;
    gemini.always(gemini.fails({ status: 503, message: "overloaded" }));
    openai.next(openai.replies(200, OPENAI_ANSWER));
    const answer = await openaiClient().embeddings.create({
      model: `chain/${MODEL}`,
      input: ["hello", "world"],
      encoding_format: "float",
    });
    expect(answer.data.map(({ embedding }) => embedding)).toEqual(VECTORS);
    expect(answer.usage.prompt_tokens).toBe(3);
    expect(openai.only.json).toEqual({
      model: "text-embedding-3-small",
      input: ["hello", "world"],
      encoding_format: "float",
    });
  });
});

describe("Google's client", () => {
  const ask = (model: string) =>
    googleClient().models.embedContent({
      model,
      contents: ["hello", "world"],
      config: { taskType: "RETRIEVAL_QUERY", outputDimensionality: 2 },
    });

  test("at Gemini: what it asks passes, under the name of the model there", async () => {
    const { gemini } = fixture.vendors;
    gemini.next(gemini.replies(200, GEMINI_ANSWER));
    const answer = await ask(`gemini/${MODEL}`);
    expect(answer.embeddings?.map(({ values }) => values)).toEqual(VECTORS);
    expectMediated(fixture, gemini, gemini.only);
    expect(gemini.only.path).toBe(`${gemini.basePath}/models/${MODEL}:batchEmbedContents`);
    const { requests } = gemini.only.json as { requests: object[] };
    for (const request of requests)
      expect(request).toMatchObject({
        model: `models/${MODEL}`,
        taskType: "RETRIEVAL_QUERY",
        outputDimensionality: 2,
      });
  });

  test("at OpenAI", async () => {
    const { openai } = fixture.vendors;
    openai.next(openai.replies(200, OPENAI_ANSWER));
    const answer = await ask("openai/text-embedding-3-small");
    expect(answer.embeddings?.map(({ values }) => values)).toEqual(VECTORS);
    expectMediated(fixture, openai, openai.only);
    expect(openai.only.json).toEqual({
      model: "text-embedding-3-small",
      input: ["hello", "world"],
      encoding_format: "float",
      dimensions: 2,
    });
  });

  test("at the mock, which gives equal texts equal vectors", async () => {
    const [hello, world] = (await ask("mock/embed")).embeddings ?? [];
    expect(hello?.values).toHaveLength(8);
    expect(world?.values).toHaveLength(8);
    expect(hello?.values).not.toEqual(world?.values);
    expect((await ask("mock/embed")).embeddings).toEqual([hello, world]);
  });

  test("at Anthropic, which has none, is 501", async () => {
    await expect(ask("anthropic/embed")).rejects.toMatchObject({ status: 501 });
    expect(fixture.vendors.anthropic.requests).toHaveLength(0);
  });
});

describe("Gemini's request for one content", () => {
  const post = async (model: string, body: object): Promise<Response> =>
    fetch(`${fixture.stack.baseUrl}/v1beta/models/${model}:embedContent`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-goog-api-key": fixture.token },
      body: JSON.stringify(body),
    });
  const content = { parts: [{ text: "hello" }] };

  test("at Gemini", async () => {
    const { gemini } = fixture.vendors;
    const answer = { embedding: { values: [0.5] }, usageMetadata: { promptTokenCount: 2 } };
    gemini.next(gemini.replies(200, answer));
    const response = await post(`gemini/${MODEL}`, { model: "models/another", content });
    expect(await response.json()).toEqual(answer);
    expect(response.headers.get("x-svc-input-tokens")).toBe("2");
    expect(gemini.only.path).toBe(`${gemini.basePath}/models/${MODEL}:embedContent`);
    // The body cannot name a model that the gateway has not allowed.
    expect(gemini.only.json).toEqual({ model: `models/${MODEL}`, content });
  });

  test("at OpenAI", async () => {
    const { openai } = fixture.vendors;
    openai.next(openai.replies(200, { ...OPENAI_ANSWER, data: OPENAI_ANSWER.data.slice(0, 1) }));
    const response = await post("openai/text-embedding-3-small", { content });
    expect(await response.json()).toEqual({ embedding: { values: VECTORS[0] } });
    expect(openai.only.json["input"]).toEqual(["hello"]);
  });
});
