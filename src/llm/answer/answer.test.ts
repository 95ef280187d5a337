import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { decompress, streamReader, upstreamError, wholeAnswer } from "./answer.ts";
import type { Call } from "../call.ts";
import { Gateway, provider, type Request } from "../testing.ts";
import { ANSWERS, chat } from "../testing-samples.ts";

const NOW = 1_800_000_000_000;

function call(request: Request): Call {
  return new Gateway(provider("openai"), provider("anthropic"), provider("gemini"))
    .trip()
    .request(request)
    .call();
}

const bytes = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

describe("decompress", () => {
  const plain = Buffer.from("plain");

  test.each([undefined, "", "identity", " Identity "])(
    "%s gives the very same bytes",
    (encoding) => {
      expect(decompress(plain, encoding)).toBe(plain);
    },
  );

  test.each([
    ["gzip", gzipSync],
    ["x-gzip", gzipSync],
    [" GZIP ", gzipSync],
    ["br", brotliCompressSync],
    ["deflate", deflateSync],
  ] as const)("%s", (encoding, compress) => {
    expect(decompress(compress(plain), encoding)).toEqual(plain);
  });

  test.each(["zstd", "gzip, br", "compress", "toString"])("%s is unknown", (encoding) => {
    expect(() => decompress(plain, encoding)).toThrow();
  });

  test("more than an answer can have is refused", { timeout: 300_000 }, () => {
    const limit = 64 * 1024 * 1024;
    expect(decompress(brotliCompressSync(Buffer.alloc(limit)), "br")).toHaveLength(limit);
    expect(() => decompress(brotliCompressSync(Buffer.alloc(limit + 1)), "br")).toThrow();
  });
});

describe("wholeAnswer", () => {
  test("of the caller's dialect is the very same Buffer, with its usage", () => {
    for (const body of [bytes(ANSWERS.openai), bytes({ choices: [] })]) {
      const answer = wholeAnswer(call({}), body, NOW);
      expect(answer.kind === "answer" && answer.body).toBe(body);
    }
    expect(wholeAnswer(call({}), bytes(ANSWERS.openai), NOW).usage).toMatchObject({
      inputTokens: 100,
      outputTokens: 7,
    });
    expect(wholeAnswer(call({}), bytes({ choices: [] }), NOW).usage).toBeUndefined();
  });

  test("embeddings are counted by their input", () => {
    const body = bytes({ object: "list", data: [], usage: { prompt_tokens: 8, total_tokens: 8 } });
    const answer = wholeAnswer(
      call({ path: "/v1/embeddings", body: { model: "openai/m", input: "x" } }),
      body,
      NOW,
    );
    expect(answer).toMatchObject({ kind: "answer", usage: { inputTokens: 8, outputTokens: 0 } });
  });

  test("responses are counted by their own usage", () => {
    const body = bytes({ usage: { input_tokens: 5, output_tokens: 6 } });
    const answer = wholeAnswer(
      call({ path: "/v1/responses", body: { model: "openai/m", input: "x" } }),
      body,
      NOW,
    );
    expect(answer).toMatchObject({ kind: "answer", usage: { inputTokens: 5, outputTokens: 6 } });
  });

  test.each(["", "{", "undefined", "<html>"])("%j is not JSON", (text) => {
    const answer = wholeAnswer(call({}), Buffer.from(text), NOW);
    expect(answer).toMatchObject({
      kind: "invalid",
      usage: undefined,
      error: { code: "upstream_invalid", status: 502 },
    });
  });

  test.each(["null", "1", "[]", "{}", '"text"', '{"content":7}', '{"content":[null]}'])(
    "%s is nothing to translate",
    (text) => {
      const answer = wholeAnswer(call({ body: chat("anthropic/m") }), Buffer.from(text), NOW);
      expect(answer).toMatchObject({ kind: "invalid", error: { code: "upstream_invalid" } });
    },
  );

  test.each(["null", "1", "[]", "{}", '"text"'])(
    "%s in the caller's own dialect has no usage and does not throw",
    (text) => {
      for (const request of [
        {},
        { path: "/v1/responses", body: { model: "openai/m" } },
        { path: "/v1/messages", body: { ...chat("anthropic/m"), max_tokens: 1 } },
      ]) {
        expect(wholeAnswer(call(request), Buffer.from(text), NOW)).toMatchObject({
          kind: "answer",
          usage: undefined,
        });
      }
    },
  );
});

test("an error keeps its status, in the caller's shape", () => {
  const { status, body } = upstreamError(
    call({ body: chat("gemini/m") }),
    418,
    bytes({ error: { code: 418, message: "teapot", status: "X" } }),
  );
  expect(status).toBe(418);
  expect(JSON.parse(String(body))).toMatchObject({ error: { message: "teapot", param: null } });
});

test("a translated stream carries the call's id and the model that was asked upstream", () => {
  const reader = streamReader(call({ body: chat("anthropic/m", { stream: true }) }), NOW);
  const start = {
    type: "message_start",
    message: { ...ANSWERS.anthropic, content: [], stop_reason: null },
  };
  const delta = {
    type: "content_block_delta",
    index: 0,
    delta: { type: "text_delta", text: "hi" },
  };
  const block = {
    type: "content_block_start",
    index: 0,
    content_block: { type: "text", text: "" },
  };
  const text = [start, block, delta]
    .map((event) =>
      String(reader.push(Buffer.from(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`))),
    )
    .join("");
  expect(text).toContain("call-1");
  expect(text).toContain('"model":"m"');
  expect(text).toContain(`"created":${NOW / 1000}`);
});

describe("a call of the Responses API", () => {
  const tools = [{ type: "custom", name: "patch" }];
  const asked = (model: string, more: object = {}): Call =>
    call({ path: "/v1/responses", body: { model, input: "x", tools, ...more } });

  test("is answered with the tools and settings of its request, where it is translated", () => {
    const use = { type: "tool_use", id: "t1", name: "patch", input: { input: "*** Begin" } };
    const answer = wholeAnswer(
      asked("anthropic/m", { temperature: 0.5 }),
      bytes({ ...ANSWERS.anthropic, content: [use], stop_reason: "tool_use" }),
      NOW,
    );
    if (answer.kind !== "answer") throw new Error(answer.error.message);
    expect(JSON.parse(answer.body.toString())).toMatchObject({
      object: "response",
      temperature: 0.5,
      output: [{ type: "custom_tool_call", call_id: "t1", name: "patch", input: "*** Begin" }],
    });
  });

  test("keeps nothing of its request where it passes", () => {
    expect(asked("openai/m").request.echo).toBeUndefined();
    expect(asked("anthropic/m").request.echo?.tools.size).toBe(1);
    expect(call({}).request.echo).toBeUndefined();
  });

  test("passes with its usage to a server that has the API", () => {
    const body = bytes({ object: "response", usage: { input_tokens: 3, output_tokens: 4 } });
    const answer = wholeAnswer(asked("openai/m"), body, NOW);
    expect(answer.kind === "answer" && answer.body).toBe(body);
    expect(answer.usage).toMatchObject({ inputTokens: 3, outputTokens: 4 });
  });
});

describe("embeddings", () => {
  const ask = (encoding: string): Call =>
    call({
      path: "/v1/embeddings",
      body: { model: "gemini/m", input: "some words", encoding_format: encoding },
    });
  const answer = bytes({ embeddings: [{ values: [0.5] }] });

  test("of Gemini have the usage that is estimated, which is not taken for a report", () => {
    const shown = wholeAnswer(ask("float"), answer, NOW);
    if (shown.kind !== "answer") throw new Error(shown.error.message);
    expect(shown.usage).toBeUndefined();
    const { data, usage } = JSON.parse(shown.body.toString()) as {
      data: object[];
      usage: { prompt_tokens: number };
    };
    expect(data).toEqual([{ object: "embedding", index: 0, embedding: [0.5] }]);
    expect(usage.prompt_tokens).toBeGreaterThan(0);
  });

  test("are packed if the client asked for it", () => {
    const shown = wholeAnswer(ask("base64"), answer, NOW);
    if (shown.kind !== "answer") throw new Error(shown.error.message);
    expect(shown.body.toString()).toContain('"embedding":"AAAAPw=="');
  });

  test("that are none are an error", () => {
    expect(wholeAnswer(ask("float"), bytes({ embeddings: "x" }), NOW)).toMatchObject({
      kind: "invalid",
      error: { code: "upstream_invalid" },
    });
  });
});
