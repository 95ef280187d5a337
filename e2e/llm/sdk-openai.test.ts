/** The official `openai` client, unmodified but for base URL and key, to each upstream dialect. */
import OpenAI, {
  type APIError,
  AuthenticationError,
  BadRequestError,
  NotFoundError,
  RateLimitError,
} from "openai";
import { describe, expect, test } from "vitest";
import { useFixture } from "../support/fixture.ts";
import { expectChat, expectMediated } from "../support/mediated.ts";
import { MODELS, ONE_CALL, PNG, TWO_CALLS, WEATHER_SCHEMA } from "../support/samples.ts";
import { DIALECTS } from "../support/vendors.ts";

const fixture = useFixture();

function client(apiKey = fixture.token): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${fixture.stack.baseUrl}/v1`, maxRetries: 0 });
}

const TOOLS: OpenAI.ChatCompletionTool[] = [
  {
    type: "function",
    function: {
      name: "weather",
      description: "The weather of a city.",
      parameters: { ...WEATHER_SCHEMA },
    },
  },
];

describe.each(DIALECTS)("to %s", (upstream) => {
  const model = `${upstream}/${MODELS[upstream]}`;
  const vendor = (): (typeof fixture.vendors)["openai"] => fixture.vendors[upstream];

  test("chat", async () => {
    vendor().next(
      vendor().says({ text: ["Hello ", "there"], usage: { input: 20, cached: 8, output: 5 } }),
    );
    const { data, response } = await client()
      .chat.completions.create({
        model,
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "Hi" },
        ],
        temperature: 0.5,
        max_tokens: 50,
        stop: "END",
      })
      .withResponse();
    expect(data.object).toBe("chat.completion");
    expect(data.choices).toHaveLength(1);
    expect(data.choices[0]?.message).toMatchObject({ role: "assistant", content: "Hello there" });
    expect(data.choices[0]?.finish_reason).toBe("stop");
    expect(data.usage).toMatchObject({ prompt_tokens: 20, completion_tokens: 5, total_tokens: 25 });
    expect(data.usage?.prompt_tokens_details?.cached_tokens).toBe(8);
    expect(response.headers.get("x-svc-model-id")).toBe(model);
    expect(response.headers.get("x-svc-retries")).toBe("0");
    expect(response.headers.get("x-svc-fell-back-from")).toBeNull();
    expect(response.headers.get("x-svc-input-tokens")).toBe("20");
    expect(response.headers.get("x-svc-cached-input-tokens")).toBe("8");
    expect(response.headers.get("x-svc-output-tokens")).toBe("5");
    expect(response.headers.get("x-svc-duration-ms")).toMatch(/^\d+$/);
    expect(response.headers.get("x-svc-cost-usd")).toMatch(/^0\.\d*[1-9]\d*$/);
    expect(response.headers.get("x-svc-call-id")).toMatch(/^[0-9a-f-]{32,36}$/);
    expectChat(fixture, vendor(), vendor().only, MODELS[upstream], false);
    expect(vendor().only.body).toContain("Be brief.");
    expect(vendor().only.body).toContain("END");
  });

  test("streaming", async () => {
    vendor().next(vendor().says({ text: ["One", " two", " three"] }));
    const stream = await client().chat.completions.create({
      model,
      messages: [{ role: "user", content: "Count" }],
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = "";
    let finish: string | null = null;
    let usage: OpenAI.CompletionUsage | null | undefined;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      finish = chunk.choices[0]?.finish_reason ?? finish;
      usage = chunk.usage ?? usage;
    }
    expect(text).toBe("One two three");
    expect(finish).toBe("stop");
    expect(usage).toMatchObject({ prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 });
    expectChat(fixture, vendor(), vendor().only, MODELS[upstream], true);
  });

  test.each([
    ["one tool call", ONE_CALL],
    ["parallel tool calls", TWO_CALLS],
  ])("%s, with its results", async (_name, calls) => {
    vendor().next(vendor().says({ toolCalls: calls }), vendor().says({ text: ["Sunny."] }));
    const question: OpenAI.ChatCompletionMessageParam = { role: "user", content: "Weather?" };
    const first = await client().chat.completions.create({
      model,
      messages: [question],
      tools: TOOLS,
    });
    const message = first.choices[0]?.message;
    expect(first.choices[0]?.finish_reason).toBe("tool_calls");
    const got = (message?.tool_calls ?? []).filter((call) => call.type === "function");
    expect(got.map((call) => [call.function.name, JSON.parse(call.function.arguments)])).toEqual(
      calls.map((call) => [call.name, call.args]),
    );
    expect(new Set(got.map((call) => call.id)).size).toBe(calls.length);
    const second = await client().chat.completions.create({
      model,
      messages: [
        question,
        message as OpenAI.ChatCompletionMessage,
        ...got.map((call, i): OpenAI.ChatCompletionMessageParam => ({
          role: "tool",
          tool_call_id: call.id,
          content: `result-${i}`,
        })),
      ],
      tools: TOOLS,
    });
    expect(second.choices[0]?.message.content).toBe("Sunny.");
    const turn = await vendor().request(1);
    expectChat(fixture, vendor(), turn, MODELS[upstream], false);
    calls.forEach((call, i) => {
      expect(turn.body).toContain(`result-${i}`);
      expect(turn.body).toContain((call.args as { city: string }).city);
    });
  });

  test.each([
    ["one tool call", ONE_CALL],
    ["parallel tool calls", TWO_CALLS],
  ])("%s, streamed", async (_name, calls) => {
    vendor().next(vendor().says({ text: ["Let me see."], toolCalls: calls }));
    const runner = client().chat.completions.stream({
      model,
      messages: [{ role: "user", content: "Weather?" }],
      tools: TOOLS,
    });
    const final = await runner.finalChatCompletion();
    expect(final.choices[0]?.finish_reason).toBe("tool_calls");
    expect(final.choices[0]?.message.content).toBe("Let me see.");
    const got = (final.choices[0]?.message.tool_calls ?? []).filter(
      (call) => call.type === "function",
    );
    expect(got.map((call) => [call.function.name, JSON.parse(call.function.arguments)])).toEqual(
      calls.map((call) => [call.name, call.args]),
    );
    expect(new Set(got.map((call) => call.id)).size).toBe(calls.length);
  });

  test("an image in base64", async () => {
    vendor().next(vendor().says({ text: ["A dot."] }));
    const answer = await client().chat.completions.create({
      model,
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "What is this?" },
            { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } },
          ],
        },
      ],
    });
    expect(answer.choices[0]?.message.content).toBe("A dot.");
    const { body } = vendor().only;
    expect(body.split(PNG).length - 1).toBe(1);
    expect(body).toContain("image/png");
    expect(body).toContain("What is this?");
  });

  test("an error of the upstream keeps its status and message", async () => {
    vendor().next(vendor().fails({ status: 400, message: "temperature is too hot" }));
    const error = await client()
      .chat.completions.create({ model, messages: [{ role: "user", content: "Hi" }] })
      .catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(BadRequestError);
    const { message, headers, type } = error as APIError;
    expect(message).toContain("temperature is too hot");
    expect(type).toBe("invalid_request_error");
    expect(headers?.get("x-svc-retries")).toBe("0");
    expect(headers?.get("x-svc-model-id")).toBe(model);
    expect(vendor().requests).toHaveLength(1);
  });

  test("429 is retried, then handed on", async () => {
    vendor().always(
      vendor().fails({ status: 429, message: "slow down", headers: { "retry-after-ms": "1" } }),
    );
    const error = await client()
      .chat.completions.create({ model, messages: [{ role: "user", content: "Hi" }] })
      .catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(RateLimitError);
    expect((error as APIError).message).toContain("slow down");
    expect((error as APIError).headers?.get("x-svc-retries")).toBe("2");
    expect(vendor().requests).toHaveLength(3);
  });
});

describe("refusals of the gateway", () => {
  test("a wrong key is 401", async () => {
    const error = await client("svcw_wrong")
      .chat.completions.create({
        model: "openai/gpt-4o-mini",
        messages: [{ role: "user", content: "Hi" }],
      })
      .catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(AuthenticationError);
    expect((error as APIError).code).toBe("invalid_key");
  });

  test("an unknown model is 404", async () => {
    const error = await client()
      .chat.completions.create({
        model: "nobody/nothing",
        messages: [{ role: "user", content: "Hi" }],
      })
      .catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(NotFoundError);
    expect((error as APIError).code).toBe("model_not_found");
    expect((error as APIError).param).toBe("model");
  });
});

describe("other endpoints", () => {
  test("embeddings pass through", async () => {
    const { openai } = fixture.vendors;
    const answer = {
      object: "list",
      data: [{ object: "embedding", index: 0, embedding: [0.5, -0.25] }],
      model: "text-embedding-3-small",
      usage: { prompt_tokens: 3, total_tokens: 3 },
    } satisfies OpenAI.CreateEmbeddingResponse;
    openai.next(openai.replies(200, answer));
    const { data, response } = await client()
      .embeddings.create({
        model: "openai/text-embedding-3-small",
        input: "hello",
        encoding_format: "float",
      })
      .withResponse();
    expect(data).toEqual(answer);
    expect(response.headers.get("x-svc-input-tokens")).toBe("3");
    expect(response.headers.get("x-svc-output-tokens")).toBe("0");
    expectMediated(fixture, openai, openai.only);
    expect(openai.only.path).toBe(`${openai.basePath}/embeddings`);
    expect(openai.only.json["model"]).toBe("text-embedding-3-small");
  });

  test("embeddings at anthropic, which has none, are 501", async () => {
    const error = await client()
      .embeddings.create({ model: "anthropic/embed", input: "hello" })
      .catch((caught: unknown) => caught);
    expect(error).toMatchObject({ status: 501, code: "not_implemented" });
    expect(fixture.vendors.anthropic.requests).toHaveLength(0);
  });

  test("responses pass through", async () => {
    const { openai } = fixture.vendors;
    const answer = {
      id: "resp_1",
      object: "response",
      created_at: 1_700_000_000,
      status: "completed",
      model: "gpt-4o-mini",
      output: [
        {
          type: "message",
          id: "msg_1",
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text: "Hello", annotations: [] }],
        },
      ],
      usage: {
        input_tokens: 9,
        input_tokens_details: { cached_tokens: 4 },
        output_tokens: 2,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 11,
      },
    };
    openai.next(openai.replies(200, answer));
    const { data, response } = await client()
      .responses.create({ model: "openai/gpt-4o-mini", input: "Hi" })
      .withResponse();
    expect(data.output_text).toBe("Hello");
    expect(response.headers.get("x-svc-input-tokens")).toBe("9");
    expect(response.headers.get("x-svc-cached-input-tokens")).toBe("4");
    expect(response.headers.get("x-svc-output-tokens")).toBe("2");
    expectMediated(fixture, openai, openai.only);
    expect(openai.only.path).toBe(`${openai.basePath}/responses`);
    expect(openai.only.json).toEqual({ model: "gpt-4o-mini", input: "Hi" });
  });

  test("the list of models is the agent's", async () => {
    const models = await client().models.list();
    expect(models.data.map((model) => model.id)).toEqual(["openai/*", "anthropic/*", "gemini/*"]);
    expect((await client().models.retrieve("openai/gpt-4o")).id).toBe("openai/gpt-4o");
    await expect(client("svcw_wrong").models.list()).rejects.toBeInstanceOf(AuthenticationError);
  });
});
