import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseScript } from "./script.ts";
import { type MockServer, startMock } from "./server.ts";

let mock: MockServer;
let client: OpenAI;

beforeAll(async () => {
  mock = await startMock();
  client = new OpenAI({
    apiKey: "none",
    baseURL: `http://${mock.host}:${mock.port}/v1`,
    maxRetries: 0,
  });
});

afterAll(() => mock.close());

const post = (path: string, body: string, method = "POST"): Promise<Response> =>
  fetch(`http://${mock.host}:${mock.port}${path}`, {
    method,
    ...(method === "POST" ? { body } : {}),
  });

const hello = { model: "echo", messages: [{ role: "user" as const, content: "Hello there" }] };
const tool = {
  type: "function" as const,
  function: { name: "get_time", parameters: { type: "object" } },
};

describe("chat completions", () => {
  test("are the same for the same request, byte for byte", async () => {
    for (const body of [
      hello,
      { ...hello, stream: true, stream_options: { include_usage: true } },
    ]) {
      const [a, b] = await Promise.all(
        [1, 2].map(async () => (await post("/v1/chat/completions", JSON.stringify(body))).text()),
      );
      expect(a).toBe(b);
      expect(a).not.toBe("");
    }
  });

  test("have an id for each request: clients merge messages of one id", async () => {
    const other = { ...hello, messages: [{ role: "user" as const, content: "Hello again" }] };
    const answers = await Promise.all(
      [hello, hello, other].map((body) => client.chat.completions.create(body)),
    );
    expect(answers[0]?.id).toBe(answers[1]?.id);
    expect(answers[0]?.id).not.toBe(answers[2]?.id);
  });

  test("whole, as OpenAI's client reads them", async () => {
    const answer = await client.chat.completions.create(hello);
    expect(answer.model).toBe("echo");
    expect(answer.choices[0]).toMatchObject({
      finish_reason: "stop",
      message: { role: "assistant", content: "You said: Hello there" },
    });
    expect(answer.usage).toMatchObject({ prompt_tokens: 2, completion_tokens: 4, total_tokens: 6 });
  });

  test("with tools", async () => {
    const answer = await client.chat.completions.create({
      ...hello,
      messages: [{ role: "user", content: "call get_time" }],
      tools: [tool],
    });
    expect(answer.choices[0]).toMatchObject({
      finish_reason: "tool_calls",
      message: {
        content: null,
        tool_calls: [{ id: "call_mock_0", type: "function", function: { name: "get_time" } }],
      },
    });
  });

  test("streamed: the pieces are the whole, and usage comes last where it is asked for", async () => {
    for (const usage of [true, false]) {
      const chunks: OpenAI.ChatCompletionChunk[] = [];
      const stream = await client.chat.completions.create({
        ...hello,
        stream: true,
        ...(usage ? { stream_options: { include_usage: true } } : {}),
      });
      for await (const chunk of stream) chunks.push(chunk);
      expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("")).toBe(
        "You said: Hello there",
      );
      expect(chunks.at(-1)?.usage?.total_tokens).toBe(usage ? 6 : undefined);
      expect(chunks.filter((chunk) => chunk.choices[0]?.finish_reason === "stop")).toHaveLength(1);
    }
  });

  test("streamed with tools: the pieces of the arguments are the whole", async () => {
    const runner = client.chat.completions.stream({
      ...hello,
      messages: [{ role: "user", content: "call get_time" }],
      tools: [tool],
    });
    const answer = await runner.finalChatCompletion();
    expect(answer.choices[0]?.finish_reason).toBe("tool_calls");
    const [call] = answer.choices[0]?.message.tool_calls ?? [];
    expect(call?.type === "function" && call.function).toMatchObject({
      name: "get_time",
      arguments: '{"input":"call get_time"}',
    });
  });
});

describe("the other vendors' forms", () => {
  const time = { name: "get_time", description: "The time." };

  test("Anthropic's client reads messages, whole and streamed", async () => {
    const anthropic = new Anthropic({
      apiKey: "none",
      baseURL: `http://${mock.host}:${mock.port}`,
      maxRetries: 0,
    });
    const body = {
      model: "echo",
      max_tokens: 100,
      messages: [{ role: "user" as const, content: "call get_time" }],
      tools: [{ ...time, input_schema: { type: "object" as const } }],
    };
    const whole = await anthropic.messages.create(body);
    const streamed = await anthropic.messages.stream(body).finalMessage();
    for (const answer of [whole, streamed]) {
      expect(answer).toMatchObject({
        model: "echo",
        stop_reason: "tool_use",
        usage: { input_tokens: 2, output_tokens: 5 },
        content: [{ type: "tool_use", name: "get_time", input: { input: "call get_time" } }],
      });
    }
    expect(await anthropic.messages.countTokens(body)).toEqual({ input_tokens: 2 });
  });

  test("Google's client reads contents, whole and streamed", async () => {
    const google = new GoogleGenAI({
      apiKey: "none",
      httpOptions: { baseUrl: `http://${mock.host}:${mock.port}` },
    });
    const body = {
      model: "echo",
      contents: "call get_time",
      config: { tools: [{ functionDeclarations: [time] }] },
    };
    const whole = await google.models.generateContent(body);
    expect(whole.functionCalls).toMatchObject([
      { name: "get_time", args: { input: "call get_time" } },
    ]);
    let text = "";
    const stream = await google.models.generateContentStream({ ...body, contents: "Hello there" });
    for await (const chunk of stream) text += chunk.text ?? "";
    expect(text).toBe("You said: Hello there");
    expect(await google.models.countTokens({ model: "echo", contents: "a b c" })).toMatchObject({
      totalTokens: 3,
    });
  });
});

test("a script is played, and its port can be chosen", async () => {
  const script = parseScript("- steps: [{ text: From the script. }]", "s.yaml");
  const first = await startMock({ script });
  const { port } = first;
  await first.close();
  const other = await startMock({ script, port });
  try {
    expect(other.port).toBe(port);
    const scripted = new OpenAI({ apiKey: "none", baseURL: `http://127.0.0.1:${port}/v1` });
    const answer = await scripted.chat.completions.create(hello);
    expect(answer.choices[0]?.message.content).toBe("From the script.");
  } finally {
    await other.close();
  }
});

describe("embeddings", () => {
  test("are of the text alone, as OpenAI's client reads them by default and as numbers", async () => {
    const packed = await client.embeddings.create({ model: "m", input: ["one", "two", "one"] });
    const plain = await client.embeddings.create({
      model: "m",
      input: ["one", "two", "one"],
      encoding_format: "float",
    });
    expect(packed.data.map(({ index }) => index)).toEqual([0, 1, 2]);
    for (const [i, { embedding }] of plain.data.entries()) {
      expect(embedding).toHaveLength(8);
      embedding.forEach((value, j) => expect(packed.data[i]?.embedding[j]).toBeCloseTo(value, 5));
    }
    expect(plain.data[0]?.embedding).toEqual(plain.data[2]?.embedding);
    expect(plain.data[0]?.embedding).not.toEqual(plain.data[1]?.embedding);
    expect(plain.usage).toEqual({ prompt_tokens: 3, total_tokens: 3 });
  });
});

describe("what it has not", () => {
  test.each([
    ["/v1/completions", "{}", "POST", 404],
    ["/v1/chat/completions", "", "GET", 404],
    ["/", "{}", "POST", 404],
    ["/v1/chat/completions", "{", "POST", 400],
    ["/v1/embeddings", "", "POST", 400],
  ])("%s %s %s: %i", async (path, body, method, status) => {
    const response = await post(path, body, method);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({
      error: {
        type: status === 404 ? "not_found_error" : "invalid_request_error",
        message: expect.any(String) as unknown,
      },
    });
  });

  test("a query does not hide the path", async () => {
    expect((await post("/v1/chat/completions?api-version=1", JSON.stringify(hello))).status).toBe(
      200,
    );
  });

  test.each(["null", "7", '{"messages":"text"}', '{"messages":[null]}'])(
    "%s is answered, not cut off",
    async (body) => {
      const response = await post("/v1/chat/completions", body);
      expect(response.status).toBe(400);
    },
  );
});
