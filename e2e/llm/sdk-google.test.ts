/**
 * The official `@google/genai` client, unmodified but for base URL and key, to each upstream
 * dialect.
 */
import { ApiError, type FunctionDeclaration, GoogleGenAI, type Part, Type } from "@google/genai";
import { describe, expect, test } from "vitest";
import { useFixture } from "../support/fixture.ts";
import { expectChat, expectMediated } from "../support/mediated.ts";
import { MODELS, ONE_CALL, PNG, TWO_CALLS } from "../support/samples.ts";
import { DIALECTS } from "../support/vendors.ts";

const fixture = useFixture();

function client(apiKey = fixture.token, apiVersion?: string): GoogleGenAI {
  return new GoogleGenAI({
    apiKey,
    httpOptions: { baseUrl: fixture.stack.baseUrl, retryOptions: { attempts: 1 } },
    ...(apiVersion === undefined ? {} : { apiVersion }),
  });
}

const WEATHER: FunctionDeclaration = {
  name: "weather",
  description: "The weather of a city.",
  parameters: {
    type: Type.OBJECT,
    properties: { city: { type: Type.STRING } },
    required: ["city"],
  },
};
const TOOLS = [{ functionDeclarations: [WEATHER] }];

describe.each(DIALECTS)("to %s", (upstream) => {
  const model = `${upstream}/${MODELS[upstream]}`;
  const vendor = (): (typeof fixture.vendors)["openai"] => fixture.vendors[upstream];

  test("chat", async () => {
    vendor().next(
      vendor().says({ text: ["Hello ", "there"], usage: { input: 20, cached: 8, output: 5 } }),
    );
    const answer = await client().models.generateContent({
      model,
      contents: "Hi",
      config: {
        systemInstruction: "Be brief.",
        temperature: 0.5,
        maxOutputTokens: 50,
        stopSequences: ["END"],
      },
    });
    expect(answer.text).toBe("Hello there");
    expect(answer.candidates?.[0]?.finishReason).toBe("STOP");
    expect(answer.usageMetadata).toMatchObject({
      promptTokenCount: 20,
      cachedContentTokenCount: 8,
      candidatesTokenCount: 5,
    });
    const headers = answer.sdkHttpResponse?.headers ?? {};
    expect(headers["x-svc-model-id"]).toBe(model);
    expect(headers["x-svc-input-tokens"]).toBe("20");
    expect(headers["x-svc-cached-input-tokens"]).toBe("8");
    expect(headers["x-svc-output-tokens"]).toBe("5");
    expect(headers["x-svc-cost-usd"]).toMatch(/^0\.\d*[1-9]\d*$/);
    expectChat(fixture, vendor(), vendor().only, MODELS[upstream], false);
    expect(vendor().only.body).toContain("Be brief.");
    expect(vendor().only.body).toContain("END");
  });

  test("streaming", async () => {
    vendor().next(vendor().says({ text: ["One", " two", " three"] }));
    const stream = await client().models.generateContentStream({ model, contents: "Count" });
    let text = "";
    let finish: string | undefined;
    let usage: { promptTokenCount?: number; candidatesTokenCount?: number } | undefined;
    for await (const chunk of stream) {
      text += chunk.text ?? "";
      finish = chunk.candidates?.[0]?.finishReason ?? finish;
      usage = chunk.usageMetadata ?? usage;
    }
    expect(text).toBe("One two three");
    expect(finish).toBe("STOP");
    expect(usage).toMatchObject({ promptTokenCount: 11, candidatesTokenCount: 7 });
    expectChat(fixture, vendor(), vendor().only, MODELS[upstream], true);
  });

  test.each([
    ["one tool call", ONE_CALL],
    ["parallel tool calls", TWO_CALLS],
  ])("%s, with its results", async (_name, calls) => {
    vendor().next(vendor().says({ toolCalls: calls }), vendor().says({ text: ["Sunny."] }));
    const question = { role: "user", parts: [{ text: "Weather?" }] };
    const first = await client().models.generateContent({
      model,
      contents: [question],
      config: { tools: TOOLS },
    });
    const got = first.functionCalls ?? [];
    expect(got.map((call) => [call.name, call.args])).toEqual(
      calls.map((call) => [call.name, call.args]),
    );
    const results = got.map((call, i): Part => ({
      functionResponse: {
        name: call.name ?? "",
        response: { output: `result-${i}` },
        ...(call.id === undefined ? {} : { id: call.id }),
      },
    }));
    const second = await client().models.generateContent({
      model,
      contents: [question, first.candidates?.[0]?.content ?? {}, { role: "user", parts: results }],
      config: { tools: TOOLS },
    });
    expect(second.text).toBe("Sunny.");
    const turn = await vendor().request(1);
    expectChat(fixture, vendor(), turn, MODELS[upstream], false);
    calls.forEach((_call, i) => expect(turn.body).toContain(`result-${i}`));
  });

  test.each([
    ["one tool call", ONE_CALL],
    ["parallel tool calls", TWO_CALLS],
  ])("%s, streamed", async (_name, calls) => {
    vendor().next(vendor().says({ text: ["Let me see."], toolCalls: calls }));
    const stream = await client().models.generateContentStream({
      model,
      contents: "Weather?",
      config: { tools: TOOLS },
    });
    const got: unknown[] = [];
    let text = "";
    for await (const chunk of stream) {
      for (const part of chunk.candidates?.[0]?.content?.parts ?? []) text += part.text ?? "";
      for (const call of chunk.functionCalls ?? []) got.push([call.name, call.args]);
    }
    expect(text).toBe("Let me see.");
    expect(got).toEqual(calls.map((call) => [call.name, call.args]));
  });

  test("an image in base64", async () => {
    vendor().next(vendor().says({ text: ["A dot."] }));
    const answer = await client().models.generateContent({
      model,
      contents: [
        {
          role: "user",
          parts: [{ text: "What is this?" }, { inlineData: { mimeType: "image/png", data: PNG } }],
        },
      ],
    });
    expect(answer.text).toBe("A dot.");
    const { body } = vendor().only;
    expect(body.split(PNG).length - 1).toBe(1);
    expect(body).toContain("image/png");
    expect(body).toContain("What is this?");
  });

  test("an error of the upstream keeps its status and message", async () => {
    vendor().next(vendor().fails({ status: 400, message: "temperature is too hot" }));
    const error = await client()
      .models.generateContent({ model, contents: "Hi" })
      .catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(ApiError);
    expect((error as ApiError).status).toBe(400);
    expect((error as ApiError).message).toContain("temperature is too hot");
    expect((error as ApiError).message).toContain("INVALID_ARGUMENT");
    expect(vendor().requests).toHaveLength(1);
  });

  test("429 is retried, then handed on", async () => {
    vendor().always(
      vendor().fails({ status: 429, message: "slow down", headers: { "retry-after-ms": "1" } }),
    );
    const error = await client()
      .models.generateContent({ model, contents: "Hi" })
      .catch((caught: unknown) => caught);
    expect(error).toMatchObject({ status: 429 });
    expect((error as ApiError).message).toContain("RESOURCE_EXHAUSTED");
    expect((error as ApiError).message).toContain("slow down");
    expect(vendor().requests).toHaveLength(3);
  });
});

describe("refusals of the gateway", () => {
  test("a wrong key is 401", async () => {
    const error = await client("svcw_wrong")
      .models.generateContent({ model: "gemini/x", contents: "Hi" })
      .catch((caught: unknown) => caught);
    expect(error).toMatchObject({ status: 401 });
    expect((error as ApiError).message).toContain("UNAUTHENTICATED");
  });

  test("an unknown model is 404", async () => {
    const error = await client()
      .models.generateContent({ model: "nobody/nothing", contents: "Hi" })
      .catch((caught: unknown) => caught);
    expect(error).toMatchObject({ status: 404 });
    expect((error as ApiError).message).toContain("NOT_FOUND");
  });
});

describe("other ways in", () => {
  const body = JSON.stringify({ contents: [{ role: "user", parts: [{ text: "Hi" }] }] });
  const headers = { "content-type": "application/json" };
  const url = (more: string): string => `${fixture.stack.baseUrl}${more}`;

  test("Google's SDK may look under /v1", async () => {
    const { gemini } = fixture.vendors;
    gemini.next(gemini.says({ text: ["Hello"] }));
    const answer = await client(fixture.token, "v1").models.generateContent({
      model: `gemini/${MODELS.gemini}`,
      contents: "Hi",
    });
    expect(answer.text).toBe("Hello");
    expectChat(fixture, gemini, gemini.only, MODELS.gemini, false);
  });

  test("a bare model's name, where it is unambiguous, and one whose slash is escaped", async () => {
    const { gemini } = fixture.vendors;
    gemini.always(gemini.says({ text: ["Hello"] }));
    for (const model of [`gemini%2F${MODELS.gemini}`, `gemini/${MODELS.gemini}`]) {
      const response = await fetch(url(`/v1beta/models/${model}:generateContent`), {
        method: "POST",
        body,
        headers: { ...headers, "x-goog-api-key": fixture.token },
      });
      expect(response.status, model).toBe(200);
    }
    for (const request of gemini.requests)
      expectChat(fixture, gemini, request, MODELS.gemini, false);
  });

  test("the key in the query opens the door, and goes no further: not upstream, not into the log", async () => {
    const { gemini } = fixture.vendors;
    gemini.always(gemini.says({ text: ["Hello"] }));
    const path = `/v1beta/models/gemini/${MODELS.gemini}`;
    const whole = await fetch(url(`${path}:generateContent?key=${fixture.token}`), {
      method: "POST",
      body,
      headers,
    });
    expect(whole.status).toBe(200);
    const streamed = await fetch(
      url(`${path}:streamGenerateContent?alt=sse&key=${fixture.token}`),
      { method: "POST", body, headers },
    );
    expect(streamed.status).toBe(200);
    await streamed.text();
    for (const request of gemini.requests) expectMediated(fixture, gemini, request);
    const wrong = await fetch(url(`${path}:generateContent?key=svcw_notthisone`), {
      method: "POST",
      body,
      headers,
    });
    expect(wrong.status).toBe(401);
    await fixture.stack.callOf(streamed.headers.get("x-svc-call-id") ?? "");
    expect(fixture.stack.logs.replace(/^ {2}curl .*$/m, "")).not.toContain(fixture.token);
    expect(fixture.stack.logs).not.toContain("svcw_notthisone");
    for (const name of DIALECTS)
      expect(fixture.stack.logs).not.toContain(fixture.vendors[name].key);
  });

  test("keys that differ are refused", async () => {
    const response = await fetch(
      url(`/v1beta/models/gemini/x:generateContent?key=${fixture.token}`),
      {
        method: "POST",
        body,
        headers: { ...headers, "x-goog-api-key": "svcw_another" },
      },
    );
    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({
      error: { code: 401, status: "UNAUTHENTICATED" },
    });
    expect(fixture.vendors.gemini.requests).toHaveLength(0);
  });

  test("tokens are counted by gemini, and by no other", async () => {
    const { gemini } = fixture.vendors;
    gemini.next(gemini.replies(200, { totalTokens: 42 }));
    const counted = await client().models.countTokens({
      model: `gemini/${MODELS.gemini}`,
      contents: "Hi",
    });
    expect(counted.totalTokens).toBe(42);
    expectMediated(fixture, gemini, gemini.only);
    expect(gemini.only.path).toBe(`${gemini.basePath}/models/${MODELS.gemini}:countTokens`);
    await expect(
      client().models.countTokens({ model: "openai/gpt-4o-mini", contents: "Hi" }),
    ).rejects.toMatchObject({ status: 501 });
  });

  test("the list of models is the agent's", async () => {
    const names: string[] = [];
    for await (const model of await client().models.list()) names.push(model.name ?? "");
    expect(names).toEqual(["models/openai/*", "models/anthropic/*", "models/gemini/*"]);
  });

  test.each([
    ["/v1/chat/completions", "error.message"],
    ["/v1/messages", "error.message"],
    ["/v1/embeddings", "error.message"],
    ["/v1/responses", "error.message"],
    ["/v1beta/models/gemini/x:generateContent", "error.message"],
  ])("GET %s is 405", async (path, where) => {
    const response = await fetch(url(path), {
      headers: { authorization: `Bearer ${fixture.token}` },
    });
    expect(response.status).toBe(405);
    expect(await response.json()).toHaveProperty(where);
  });
});
