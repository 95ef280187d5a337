import OpenAI from "openai";
import type { ResponseInput, Tool } from "openai/resources/responses/responses";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type MockServer, startMock } from "./server.ts";

let mock: MockServer;
let client: OpenAI;

beforeAll(async () => {
  mock = await startMock();
  const baseURL = `http://${mock.host}:${mock.port}/v1`;
  client = new OpenAI({ apiKey: "none", baseURL, maxRetries: 0 });
});

afterAll(() => mock.close());

const TOOLS: Tool[] = [
  { type: "function", name: "get_time", parameters: { type: "object" }, strict: false },
  { type: "custom", name: "apply_patch" },
  { type: "web_search" },
];

test("a text, whole and streamed, is the same", async () => {
  const ask = { model: "echo", instructions: "Be brief.", input: "Hello there" };
  const whole = await client.responses.create(ask);
  expect(whole).toMatchObject({
    status: "completed",
    model: "echo",
    output_text: "You said: Hello there",
    usage: { input_tokens: 4, output_tokens: 4, total_tokens: 8 },
  });
  const runner = client.responses.stream(ask);
  const numbers: number[] = [];
  for await (const event of runner) numbers.push(event.sequence_number);
  expect(numbers).toEqual(numbers.map((_, index) => index));
  const streamed = await runner.finalResponse();
  expect(streamed.output_text).toBe(whole.output_text);
  expect(streamed.usage).toEqual(whole.usage);
});

test.each([false, true])(
  "tools that the message names are called; streamed: %s",
  async (stream) => {
    const input: ResponseInput = [
      { role: "user", content: [{ type: "input_text", text: "get_time, then apply_patch" }] },
    ];
    const ask = { model: "echo", input, tools: TOOLS };
    const { output } = stream
      ? await client.responses.stream(ask).finalResponse()
      : await client.responses.create(ask);
    expect(output).toMatchObject([
      { type: "function_call", name: "get_time", call_id: "call_mock_0" },
      { type: "custom_tool_call", name: "apply_patch", call_id: "call_mock_1" },
    ]);
    const answer = await client.responses.create({
      ...ask,
      input: [
        ...input,
        ...(output as ResponseInput),
        { type: "function_call_output", call_id: "call_mock_0", output: "noon" },
      ],
    });
    expect(answer.output_text).toBe("The tool said: noon");
  },
);

test.each<[object, number]>([
  [{ input: "x" }, 200],
  [{ input: [] }, 200],
  [{}, 400],
  [{ input: [null, 7, "x"] }, 400],
  [{ input: { a: 1 } }, 400],
  [{ input: "x", tools: 7 }, 400],
  [{ input: "x", previous_response_id: "resp_1" }, 400],
])("%j is answered with %i", async (body, status) => {
  const response = await fetch(`http://${mock.host}:${mock.port}/v1/responses`, {
    method: "POST",
    body: JSON.stringify({ model: "echo", ...body }),
  });
  expect(response.status).toBe(status);
});

test.each(["embedContent", "batchEmbedContents"])(
  "embeddings in Gemini's form: %s",
  async (method) => {
    const content = { parts: [{ text: "hello" }] };
    const single = method === "embedContent";
    const response = await fetch(`http://${mock.host}:${mock.port}/v1beta/models/echo:${method}`, {
      method: "POST",
      body: JSON.stringify(single ? { content } : { requests: [{ content }, { content }] }),
    });
    const answer = (await response.json()) as {
      embedding?: { values: number[] };
      embeddings?: { values: number[] }[];
    };
    const vectors = answer.embeddings ?? [answer.embedding];
    expect(vectors.map((vector) => vector?.values.length)).toEqual(single ? [8] : [8, 8]);
  },
);
