/**
 * The Responses API with the official `openai` client, unmodified, to each kind of provider:
 * unchanged to OpenAI, translated to the others and to servers that only have chat completions.
 */
import OpenAI, { type APIError } from "openai";
import type { Response, ResponseInput, Tool } from "openai/resources/responses/responses";
import { describe, expect, test } from "vitest";
import { useFixture } from "../support/fixture.ts";
import { chatPath, expectMediated } from "../support/mediated.ts";
import { accessKeyYaml, providerYaml, rawKey } from "../support/resources.ts";
import { MODELS, ONE_CALL, PNG, TWO_CALLS, WEATHER_SCHEMA } from "../support/samples.ts";
import type { Vendor } from "../support/vendors.ts";

/** The providers whose upstream has chats only, and the fake behind each. */
const TRANSLATED = [
  ["anthropic", "anthropic"],
  ["gemini", "gemini"],
  ["local", "openai"],
] as const;

const fixture = useFixture({
  models: [
    "openai/*",
    "anthropic/*",
    "gemini/*",
    "local/*",
    "native/*",
    "mock/*",
    "first-anthropic/*",
    "first-openai/*",
  ],
  providers: {
    openai: { spec: { externalAccess: { enabled: true } } },
    anthropic: { spec: { externalAccess: { enabled: true } } },
  },
  files: ({ openai, anthropic }) => ({
    "local.yaml": providerYaml("local", openai, { kind: "openai-compatible" }),
    "first-anthropic.yaml": providerYaml("first-anthropic", anthropic, {
      spec: { fallbacks: [{ provider: "openai", model: "gpt-4o-mini" }] },
    }),
    "first-openai.yaml": providerYaml("first-openai", openai, {
      spec: { fallbacks: [{ provider: "anthropic", model: "claude-sonnet-4-5" }] },
    }),
    "native.yaml": providerYaml("native", openai, {
      kind: "openai-compatible",
      spec: { servesResponses: true },
    }),
    "mock.yaml": JSON.stringify({
      apiVersion: "svc.io/v1",
      kind: "ModelProvider",
      metadata: { name: "mock" },
      spec: { provider: "mock" },
    }),
    "openai-key.yaml": accessKeyYaml("to-openai", "openai"),
    "anthropic-key.yaml": accessKeyYaml("to-anthropic", "anthropic"),
  }),
});

function client(): OpenAI {
  const baseURL = `${fixture.stack.baseUrl}/v1`;
  return new OpenAI({ apiKey: fixture.token, baseURL, maxRetries: 0 });
}

const TOOLS: Tool[] = [
  {
    type: "function",
    name: "weather",
    description: "The weather of a city.",
    parameters: { ...WEATHER_SCHEMA },
    strict: false,
  },
];

/** A response of OpenAI. */
const NATIVE = {
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
  usage: { input_tokens: 9, output_tokens: 2, total_tokens: 11 },
};

describe.each(TRANSLATED)("to %s", (provider, dialect) => {
  const model = `${provider}/${MODELS[dialect]}`;
  const vendor = (): Vendor => fixture.vendors[dialect];

  test("a text", async () => {
    vendor().next(
      vendor().says({ text: ["Hello ", "there"], usage: { input: 20, cached: 8, output: 5 } }),
    );
    const { data, response } = await client()
      .responses.create({
        model,
        instructions: "Be brief.",
        input: "Hi",
        max_output_tokens: 50,
        metadata: { topic: "greeting" },
      })
      .withResponse();
    expect(data.output_text).toBe("Hello there");
    expect(data).toMatchObject({
      object: "response",
      status: "completed",
      error: null,
      store: false,
      max_output_tokens: 50,
      metadata: { topic: "greeting" },
    });
    expect(data.usage).toMatchObject({
      input_tokens: 20,
      input_tokens_details: { cached_tokens: 8 },
      output_tokens: 5,
      total_tokens: 25,
    });
    expect(response.headers.get("x-svc-model-id")).toBe(model);
    expect(response.headers.get("x-svc-input-tokens")).toBe("20");
    expect(response.headers.get("x-svc-output-tokens")).toBe("5");
    expect(response.headers.get("x-svc-cached-input-tokens")).toBe("8");
    expect(response.headers.get("x-svc-retries")).toBe("0");
    expectMediated(fixture, vendor(), vendor().only);
    expect(vendor().only.path).toBe(chatPath(vendor(), MODELS[dialect], false));
    expect(vendor().only.body).toContain("Be brief.");
    expect(await fixture.stack.callOf(response.headers.get("x-svc-call-id") ?? "")).toMatchObject({
      operation: "responses",
      status: 200,
    });
  });

  test("a text, streamed", async () => {
    vendor().next(vendor().says({ text: ["One", " two", " three"] }));
    const types: string[] = [];
    const numbers: number[] = [];
    const runner = client().responses.stream({ model, input: "Count" });
    for await (const event of runner) {
      types.push(event.type);
      numbers.push(event.sequence_number);
    }
    expect(numbers).toEqual(numbers.map((_, index) => index));
    expect(types.filter((type, index) => type !== types[index - 1])).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ]);
    const final = await runner.finalResponse();
    expect(final.output_text).toBe("One two three");
    expect(final.usage).toMatchObject({ input_tokens: 11, output_tokens: 7, total_tokens: 18 });
    expectMediated(fixture, vendor(), vendor().only);
    expect(vendor().only.path).toBe(chatPath(vendor(), MODELS[dialect], true));
  });

  test.each([
    ["one tool call", ONE_CALL, false],
    ["parallel tool calls", TWO_CALLS, false],
    ["one tool call, streamed", ONE_CALL, true],
    ["parallel tool calls, streamed", TWO_CALLS, true],
  ])("%s, with its results", async (_name, calls, stream) => {
    vendor().next(
      vendor().says({ text: ["Let me see."], toolCalls: calls }),
      vendor().says({ text: ["Sunny."] }),
    );
    const input: ResponseInput = [{ role: "user", content: "Weather?" }];
    const ask = { model, input, tools: TOOLS };
    const first: Response = stream
      ? await client().responses.stream(ask).finalResponse()
      : await client().responses.create(ask);
    const got = first.output.filter((item) => item.type === "function_call");
    expect(first.status).toBe("completed");
    expect(first.output_text).toBe("Let me see.");
    expect(got.map((call) => [call.name, JSON.parse(call.arguments)])).toEqual(
      calls.map((call) => [call.name, call.args]),
    );
    expect(new Set(got.map((call) => call.call_id)).size).toBe(calls.length);
    const second = await client().responses.create({
      model,
      input: [
        ...input,
        ...(first.output as ResponseInput),
        ...got.map((call, index) => ({
          type: "function_call_output" as const,
          call_id: call.call_id,
          output: `result-${index}`,
        })),
      ],
      tools: TOOLS,
    });
    expect(second.output_text).toBe("Sunny.");
    const turn = await vendor().request(1);
    expectMediated(fixture, vendor(), turn);
    calls.forEach((call, index) => {
      expect(turn.body).toContain(`result-${index}`);
      expect(turn.body).toContain(call.args.city);
    });
  });

  test("a custom tool", async () => {
    const patch = { id: "call_patch1", name: "apply_patch", args: { input: "*** Begin Patch" } };
    vendor().next(vendor().says({ toolCalls: [patch] }), vendor().says({ text: ["Done."] }));
    const tools: Tool[] = [{ type: "custom", name: "apply_patch", description: "Edits files." }];
    const runner = client().responses.stream({ model, input: "Patch it", tools });
    const types: string[] = [];
    for await (const event of runner) types.push(event.type);
    expect(types).toContain("response.custom_tool_call_input.done");
    const first = await runner.finalResponse();
    const [call] = first.output;
    if (call?.type !== "custom_tool_call") throw new Error(`not a custom call: ${call?.type}`);
    expect(call).toMatchObject({ name: "apply_patch", input: "*** Begin Patch" });
    const second = await client().responses.create({
      model,
      input: [
        { role: "user", content: "Patch it" },
        call,
        { type: "custom_tool_call_output", call_id: call.call_id, output: "patched" },
      ],
      tools,
    });
    expect(second.output_text).toBe("Done.");
    expect((await vendor().request(1)).body).toContain("*** Begin Patch");
    expect((await vendor().request(1)).body).toContain("patched");
  });

  test("an image in base64", async () => {
    vendor().next(vendor().says({ text: ["A dot."] }));
    const answer = await client().responses.create({
      model,
      input: [
        {
          role: "user",
          content: [
            { type: "input_text", text: "What is this?" },
            { type: "input_image", detail: "auto", image_url: `data:image/png;base64,${PNG}` },
          ],
        },
      ],
    });
    expect(answer.output_text).toBe("A dot.");
    const { body } = vendor().only;
    expect(body.split(PNG).length - 1).toBe(1);
    expect(body).toContain("image/png");
  });

  test("structured output is parsed by the SDK", async () => {
    vendor().next(vendor().says({ text: ['{"city":', '"Oslo"}'] }));
    const schema = { ...WEATHER_SCHEMA, additionalProperties: false };
    const answer = await client().responses.parse({
      model,
      input: "Where?",
      text: { format: { type: "json_schema", name: "place", strict: true, schema } },
    });
    expect(answer.output_parsed).toEqual({ city: "Oslo" });
    expect(vendor().only.body).toContain('"additionalProperties":false');
  });

  test("an error of the upstream keeps its status and message", async () => {
    vendor().next(vendor().fails({ status: 400, message: "temperature is too hot" }));
    const error = await client()
      .responses.create({ model, input: "Hi" })
      .catch((caught: unknown) => caught);
    expect(error).toMatchObject({ status: 400 });
    expect((error as APIError).message).toContain("temperature is too hot");
  });

  test("a stream that ends early is an error, and no complete response", async () => {
    vendor().next(
      vendor().says({
        text: ["One", " two"],
        cut: { how: "eof", before: "content", afterContent: 1 },
      }),
    );
    const stream = await client().responses.create({ model, input: "Count", stream: true });
    const types: string[] = [];
    const read = async (): Promise<void> => {
      for await (const event of stream) types.push(event.type);
    };
    await expect(read()).rejects.toThrow(/ended the stream/);
    expect(types).toContain("response.output_text.delta");
    expect(types).not.toContain("response.completed");
  });

  test.each<[string, object, RegExp]>([
    ["previous_response_id", { previous_response_id: "resp_1" }, /whole conversation/],
    ["background", { background: true }, /only OpenAI/],
    ["a hosted tool", { tools: [{ type: "file_search", vector_store_ids: ["v"] }] }, /file_search/],
  ])("%s is refused", async (_name, more, message) => {
    const error = await client()
      .responses.create({ model, input: "Hi", ...more })
      .catch((caught: unknown) => caught);
    expect(error).toMatchObject({ status: 400, code: "unsupported_by_upstream" });
    expect((error as APIError).message).toMatch(message);
    expect(vendor().requests).toHaveLength(0);
  });
});

describe("/ext/v1", () => {
  test.each(["openai", "anthropic"] as const)("serves responses of %s", async (name) => {
    const vendor = fixture.vendors[name];
    if (name === "openai") vendor.next(vendor.replies(200, NATIVE));
    else vendor.next(vendor.says({ text: ["Hello"] }));
    const baseURL = `${fixture.stack.externalUrl}/ext/v1`;
    const outside = new OpenAI({ apiKey: rawKey(`to-${name}`), baseURL, maxRetries: 0 });
    const { data, response } = await outside.responses
      .create({ model: MODELS[name], input: "Hi" })
      .withResponse();
    expect(data.output_text).toBe("Hello");
    expect(response.headers.get("x-svc-model-id")).toBe(`${name}/${MODELS[name]}`);
    expect(response.headers.get("x-svc-input-tokens")).toBe(name === "openai" ? "9" : "11");
  });
});

describe("a chain of providers", () => {
  test("from a translation to OpenAI's own API, which gets the request unchanged", async () => {
    const { anthropic, openai } = fixture.vendors;
    anthropic.always(anthropic.fails({ status: 503, message: "overloaded" }));
    openai.next(openai.replies(200, NATIVE));
    const replayed = {
      type: "reasoning" as const,
      id: "rs_1",
      summary: [{ type: "summary_text" as const, text: "Hm." }],
      encrypted_content: "svc-foreign:anthropic:own:c2ln",
    };
    const { data, response } = await client()
      .responses.create({
        model: "first-anthropic/claude-sonnet-4-5",
        input: [{ role: "user", content: "Hi" }, replayed, { role: "user", content: "Well?" }],
      })
      .withResponse();
    expect(data.output_text).toBe("Hello");
    expect(response.headers.get("x-svc-fell-back-from")).toBe("first-anthropic/claude-sonnet-4-5");
    expect(openai.only.path).toBe(`${openai.basePath}/responses`);
    // Another vendor's reasoning, which OpenAI would refuse, has been removed.
    expect(openai.only.json).toEqual({
      model: "gpt-4o-mini",
      input: [
        { role: "user", content: "Hi" },
        { role: "user", content: "Well?" },
      ],
    });
  });

  test("from OpenAI's own API to a translation, streamed", async () => {
    const { anthropic, openai } = fixture.vendors;
    openai.always(openai.fails({ status: 503, message: "overloaded" }));
    anthropic.next(anthropic.says({ text: ["Hello", " there"] }));
    const runner = client().responses.stream({
      model: "first-openai/gpt-4o-mini",
      input: "Hi",
      tools: [{ type: "custom", name: "apply_patch" }],
    });
    const final = await runner.finalResponse();
    expect(final.output_text).toBe("Hello there");
    expect(openai.requests.map(({ path }) => path)).toEqual(
      openai.requests.map(() => `${openai.basePath}/responses`),
    );
    expect(anthropic.only.path).toBe(`${anthropic.basePath}/messages`);
  });
});

describe.each(["openai", "native"])("at %s, which has the API itself", (provider) => {
  test("a stream passes unchanged, before the totals", async () => {
    const { openai } = fixture.vendors;
    const event = (type: string, more: object): string =>
      `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
    const sent =
      event("response.created", { response: { ...NATIVE, status: "in_progress", output: [] } }) +
      event("response.of_the_future", { novelty: true }) +
      event("response.completed", { response: NATIVE });
    openai.next((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).end(sent);
    });
    const body = { model: `${provider}/gpt-4o-mini`, input: "Hi", stream: true, novelty: [1] };
    const response = await fetch(`${fixture.stack.baseUrl}/v1/responses`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${fixture.token}` },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    expect(text.slice(0, sent.length)).toBe(sent);
    expect(text.slice(sent.length)).toMatch(/^: x-svc-input-tokens=9 x-svc-output-tokens=2 /);
    expect(openai.only.path).toBe(`${openai.basePath}/responses`);
    expect(openai.only.json).toEqual({ ...body, model: "gpt-4o-mini" });
  });
});

test("the mock has the API too", async () => {
  const ask = { model: "mock/echo", input: "Hello there" };
  const whole = await client().responses.create(ask);
  expect(whole.output_text).toBe("You said: Hello there");
  const streamed = await client().responses.stream(ask).finalResponse();
  expect(streamed.output_text).toBe("You said: Hello there");
});
