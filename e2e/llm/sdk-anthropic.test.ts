/**
 * The official `@anthropic-ai/sdk` client, unmodified but for base URL and key, to each upstream
 * dialect.
 */
import Anthropic, {
  type APIError,
  AuthenticationError,
  BadRequestError,
  NotFoundError,
  RateLimitError,
} from "@anthropic-ai/sdk";
import { describe, expect, test } from "vitest";
import { useFixture } from "../support/fixture.ts";
import { expectChat, expectMediated } from "../support/mediated.ts";
import { MODELS, ONE_CALL, PNG, TWO_CALLS, WEATHER_SCHEMA } from "../support/samples.ts";
import { DIALECTS } from "../support/vendors.ts";

const fixture = useFixture();

function client(apiKey = fixture.token): Anthropic {
  return new Anthropic({ apiKey, authToken: null, baseURL: fixture.stack.baseUrl, maxRetries: 0 });
}

const TOOLS: Anthropic.Tool[] = [
  {
    name: "weather",
    description: "The weather of a city.",
    input_schema: { ...WEATHER_SCHEMA, required: ["city"] },
  },
];

describe.each(DIALECTS)("to %s", (upstream) => {
  const model = `${upstream}/${MODELS[upstream]}`;
  const vendor = (): (typeof fixture.vendors)["openai"] => fixture.vendors[upstream];
  const ask = { model, max_tokens: 50, messages: [{ role: "user" as const, content: "Hi" }] };

  test("chat", async () => {
    vendor().next(
      vendor().says({ text: ["Hello ", "there"], usage: { input: 20, cached: 8, output: 5 } }),
    );
    const { data, response } = await client()
      .messages.create({ ...ask, system: "Be brief.", stop_sequences: ["END"] })
      .withResponse();
    expect(data).toMatchObject({ type: "message", role: "assistant", stop_reason: "end_turn" });
    expect(data.content).toHaveLength(1);
    expect(data.content[0]).toMatchObject({ type: "text", text: "Hello there" });
    // Anthropic's input count excludes cache reads.
    expect(data.usage).toMatchObject({
      input_tokens: 12,
      cache_read_input_tokens: 8,
      output_tokens: 5,
    });
    expect(response.headers.get("x-svc-model-id")).toBe(model);
    expect(response.headers.get("x-svc-input-tokens")).toBe("20");
    expect(response.headers.get("x-svc-cached-input-tokens")).toBe("8");
    expect(response.headers.get("x-svc-output-tokens")).toBe("5");
    expect(response.headers.get("x-svc-cost-usd")).toMatch(/^0\.\d*[1-9]\d*$/);
    expectChat(fixture, vendor(), vendor().only, MODELS[upstream], false);
    expect(vendor().only.body).toContain("Be brief.");
    expect(vendor().only.body).toContain("END");
  });

  test("streaming", async () => {
    vendor().next(vendor().says({ text: ["One", " two", " three"] }));
    const stream = client().messages.stream(ask);
    const pieces: string[] = [];
    stream.on("text", (piece) => pieces.push(piece));
    const final = await stream.finalMessage();
    expect(pieces.join("")).toBe("One two three");
    expect(pieces.length).toBeGreaterThan(1);
    expect(final.stop_reason).toBe("end_turn");
    expect(final.usage.input_tokens).toBe(11);
    expect(final.usage.output_tokens).toBe(7);
    expectChat(fixture, vendor(), vendor().only, MODELS[upstream], true);
  });

  test.each([
    ["one tool call", ONE_CALL],
    ["parallel tool calls", TWO_CALLS],
  ])("%s, with its results", async (_name, calls) => {
    vendor().next(
      vendor().says({ text: ["Let me see."], toolCalls: calls }),
      vendor().says({ text: ["Sunny."] }),
    );
    const first = await client().messages.create({ ...ask, tools: TOOLS });
    expect(first.stop_reason).toBe("tool_use");
    expect(first.content[0]).toMatchObject({ type: "text", text: "Let me see." });
    const got = first.content.filter((block) => block.type === "tool_use");
    expect(got.map((block) => [block.name, block.input])).toEqual(
      calls.map((call) => [call.name, call.args]),
    );
    expect(new Set(got.map((block) => block.id)).size).toBe(calls.length);
    const second = await client().messages.create({
      ...ask,
      tools: TOOLS,
      messages: [
        ...ask.messages,
        { role: "assistant", content: first.content },
        {
          role: "user",
          content: got.map((block, i) => ({
            type: "tool_result",
            tool_use_id: block.id,
            content: `result-${i}`,
          })),
        },
      ],
    });
    expect(second.content[0]).toMatchObject({ type: "text", text: "Sunny." });
    const turn = await vendor().request(1);
    expectChat(fixture, vendor(), turn, MODELS[upstream], false);
    calls.forEach((_call, i) => expect(turn.body).toContain(`result-${i}`));
  });

  test.each([
    ["one tool call", ONE_CALL],
    ["parallel tool calls", TWO_CALLS],
  ])("%s, streamed", async (_name, calls) => {
    vendor().next(vendor().says({ text: ["Let me see."], toolCalls: calls }));
    const final = await client()
      .messages.stream({ ...ask, tools: TOOLS })
      .finalMessage();
    expect(final.stop_reason).toBe("tool_use");
    expect(final.content[0]).toMatchObject({ type: "text", text: "Let me see." });
    const got = final.content.filter((block) => block.type === "tool_use");
    expect(got.map((block) => [block.name, block.input])).toEqual(
      calls.map((call) => [call.name, call.args]),
    );
    expect(new Set(got.map((block) => block.id)).size).toBe(calls.length);
  });

  test("an image in base64", async () => {
    vendor().next(vendor().says({ text: ["A dot."] }));
    const answer = await client().messages.create({
      ...ask,
      messages: [
        {
          role: "user",
          content: [
            { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } },
            { type: "text", text: "What is this?" },
          ],
        },
      ],
    });
    expect(answer.content[0]).toMatchObject({ text: "A dot." });
    const { body } = vendor().only;
    expect(body.split(PNG).length - 1).toBe(1);
    expect(body).toContain("image/png");
    expect(body).toContain("What is this?");
  });

  test("an error of the upstream keeps its status and message", async () => {
    vendor().next(vendor().fails({ status: 400, message: "temperature is too hot" }));
    const error = (await client()
      .messages.create(ask)
      .catch((caught: unknown) => caught)) as APIError;
    expect(error).toBeInstanceOf(BadRequestError);
    expect(error.error).toMatchObject({ type: "error", error: { type: "invalid_request_error" } });
    expect(error.message).toContain("temperature is too hot");
    expect(error.headers?.get("x-svc-model-id")).toBe(model);
    expect(vendor().requests).toHaveLength(1);
  });

  test("429 is retried, then handed on", async () => {
    vendor().always(
      vendor().fails({ status: 429, message: "slow down", headers: { "retry-after-ms": "1" } }),
    );
    const error = (await client()
      .messages.create(ask)
      .catch((caught: unknown) => caught)) as APIError;
    expect(error).toBeInstanceOf(RateLimitError);
    expect(error.error).toMatchObject({ type: "error", error: { type: "rate_limit_error" } });
    expect(error.message).toContain("slow down");
    expect(vendor().requests).toHaveLength(3);
  });
});

describe("refusals of the gateway", () => {
  test("a wrong key is 401, as x-api-key and as bearer", async () => {
    const { baseUrl } = fixture.stack;
    for (const key of [
      { apiKey: "svcw_wrong", authToken: null },
      { apiKey: null, authToken: "svcw_wrong" },
    ]) {
      const error = (await new Anthropic({ ...key, baseURL: baseUrl, maxRetries: 0 }).messages
        .create({
          model: "anthropic/x",
          max_tokens: 5,
          messages: [{ role: "user", content: "Hi" }],
        })
        .catch((caught: unknown) => caught)) as APIError;
      expect(error).toBeInstanceOf(AuthenticationError);
      expect(error.error).toMatchObject({ type: "error", error: { type: "authentication_error" } });
    }
  });

  test("the token as bearer is as good", async () => {
    const { anthropic } = fixture.vendors;
    anthropic.next(anthropic.says({ text: ["Hello"] }));
    const bearer = new Anthropic({
      apiKey: null,
      authToken: fixture.token,
      baseURL: fixture.stack.baseUrl,
      maxRetries: 0,
    });
    await bearer.messages.create({
      model: "anthropic/claude-sonnet-4-5",
      max_tokens: 5,
      messages: [{ role: "user", content: "Hi" }],
    });
    expectMediated(fixture, anthropic, anthropic.only);
  });

  test("an unknown model is 404", async () => {
    const error = (await client()
      .messages.create({
        model: "nobody/nothing",
        max_tokens: 5,
        messages: [{ role: "user", content: "Hi" }],
      })
      .catch((caught: unknown) => caught)) as APIError;
    expect(error).toBeInstanceOf(NotFoundError);
    expect(error.error).toMatchObject({ type: "error", error: { type: "not_found_error" } });
  });
});

describe("other endpoints", () => {
  const ask = { messages: [{ role: "user" as const, content: "Hi" }] };

  test("tokens are counted by anthropic", async () => {
    const { anthropic } = fixture.vendors;
    anthropic.next(
      anthropic.replies(200, { input_tokens: 42 } satisfies Anthropic.MessageTokensCount),
    );
    const { data, response } = await client()
      .messages.countTokens({ ...ask, model: "anthropic/claude-sonnet-4-5" })
      .withResponse();
    expect(data).toEqual({ input_tokens: 42 });
    expect(response.headers.get("x-svc-call-id")).not.toBeNull();
    expectMediated(fixture, anthropic, anthropic.only);
    expect(anthropic.only.path).toBe(`${anthropic.basePath}/messages/count_tokens`);
    expect(anthropic.only.json["model"]).toBe("claude-sonnet-4-5");
  });

  test.each(["openai", "gemini"] as const)("counting tokens at %s is 501", async (upstream) => {
    const error = (await client()
      .messages.countTokens({ ...ask, model: `${upstream}/${MODELS[upstream]}` })
      .catch((caught: unknown) => caught)) as APIError;
    expect(error).toMatchObject({ status: 501, error: { type: "error" } });
    expect(fixture.vendors[upstream].requests).toHaveLength(0);
  });

  test("the version and the betas that the client names reach anthropic, and only anthropic", async () => {
    const { anthropic, openai } = fixture.vendors;
    anthropic.always(anthropic.says({ text: ["Hello"] }));
    openai.always(openai.says({ text: ["Hello"] }));
    const headers = {
      "anthropic-beta": "context-1m-2025-08-07",
      "anthropic-version": "2023-01-01",
    };
    for (const model of ["anthropic/claude-sonnet-4-5", "openai/gpt-4o-mini"]) {
      await client().messages.create({ ...ask, max_tokens: 5, model }, { headers });
    }
    expect(anthropic.only.headers["anthropic-beta"]).toBe("context-1m-2025-08-07");
    expect(anthropic.only.headers["anthropic-version"]).toBe("2023-01-01");
    expect(openai.only.headers["anthropic-beta"]).toBeUndefined();
    expectMediated(fixture, openai, openai.only);
  });

  test("the list of models is the agent's", async () => {
    const models = await client().models.list();
    expect(models.data.map((model) => model.id)).toEqual(["openai/*", "anthropic/*", "gemini/*"]);
  });
});
