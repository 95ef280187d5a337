import { describe, expect, test } from "vitest";
import { BadRequestError } from "./dialect.ts";
import type { WireFormat } from "./dialect.ts";
import { JsonBody } from "../request/json-body.ts";
import { passRequest } from "./pass-request.ts";
import { dialects } from "./registry.ts";

function pass(
  dialect: WireFormat,
  text: string,
  change: { model?: string; stream?: boolean } = {},
): string {
  const pieces = passRequest(dialects[dialect], JsonBody.read(Buffer.from(text)), {
    model: change.model,
    stream: change.stream ?? false,
  });
  return pieces === undefined ? text : Buffer.concat(pieces).toString();
}

describe("what need not change", () => {
  test.each([
    ["openai", '{"model":"m","messages":[]}', { model: "m", stream: false }],
    [
      "openai",
      '{"model":"m","stream":true,"stream_options":{"include_usage":true,"include_' +
        'obfuscation":false}}',
      { model: "m", stream: true },
    ],
    ["anthropic", '{"model":"m","stream":true}', { model: undefined, stream: true }],
    ["gemini", '{"contents":[]}', { model: "other", stream: true }],
  ] as const)("%s %s passes as it is", (dialect, text, change) => {
    const body = JsonBody.read(Buffer.from(text));
    expect(passRequest(dialects[dialect], body, change)).toBeUndefined();
  });
});

describe("the model", () => {
  test("only its value is replaced, byte for byte", () => {
    const text =
      ' { "x" : 1.0e3 , "model"\t:\n"a/b" , "nested":{"model":"keep"}, ' +
      '"s":"\\"model\\":\\u00e9" } ';
    expect(pass("openai", text, { model: 'new"é' })).toBe(text.replace('"a/b"', '"new\\"é"'));
  });

  test("a key written with escapes is found", () => {
    expect(pass("anthropic", '{"mod\\u0065l":"a"}', { model: "b" })).toBe('{"mod\\u0065l":"b"}');
  });

  test("a missing one is added", () => {
    expect(pass("openai", "{}", { model: "b" })).toBe('{"model":"b"}');
    expect(pass("openai", '{"messages":[]}', { model: "b" })).toBe('{"model":"b","messages":[]}');
  });
});

describe("usage on OpenAI streams is always asked for", () => {
  test.each([
    ['{"stream":true}', '{"stream_options":{"include_usage":true},"stream":true}'],
    [
      '{"stream":true,"stream_options":null}',
      '{"stream":true,"stream_options":{"include_usage":true}}',
    ],
    [
      '{"stream":true,"stream_options":{}}',
      '{"stream":true,"stream_options":{"include_usage":true}}',
    ],
    [
      '{"stream_options": {"include_usage":false},"stream":true}',
      '{"stream_options": {"include_usage":true},"stream":true}',
    ],
    [
      '{"stream":true,"stream_options":{"include_usage":null,"include_obfuscation":false}}',
      '{"stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false}}',
    ],
  ])("%s", (text, expected) => {
    expect(pass("openai", text, { stream: true })).toBe(expected);
  });

  test("not where there is no stream, nor in another dialect", () => {
    expect(pass("openai", '{"a":1}')).toBe('{"a":1}');
    expect(pass("anthropic", '{"a":1}', { stream: true })).toBe('{"a":1}');
  });
});

describe("keys that a proxy and an upstream may read differently are refused", () => {
  test.each([
    '{"model":"a","model":"b"}',
    '{"model":"a","mod\\u0065l":"b"}',
    '{"model":"a","Model":"b"}',
    '{"stream":true,"\\u017ftream":false}',
    '{"stream":true,"stream_options":{"include_usage":true,"include_usage":false}}',
    '{"stream":true,"stream_options":[]}',
  ])("%s", (text) => {
    expect(() => pass("openai", text, { model: "a", stream: true })).toThrow(BadRequestError);
  });

  test("strings and nested objects do not count as keys", () => {
    const text =
      '{"model":"a","b":"\\\\","c":"\\",\\"model\\":","d":[{"model":1},"}"],"e":{"model":2}}';
    expect(pass("openai", text, { model: "a" })).toBe(text);
  });
});

describe("another vendor's reasoning is removed from a conversation that comes back to its own dialect", () => {
  test("anthropic", () => {
    const text = JSON.stringify({
      model: "m",
      messages: [
        {
          role: "assistant",
          content: [{ type: "thinking", thinking: "a", signature: "svc-foreign:gemini:own:x" }],
        },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "own", signature: "sig" },
            { type: "redacted_thinking", data: "svc-foreign:gemini:call:x" },
            { type: "tool_use", id: "t", name: "f", input: {} },
          ],
        },
      ],
    });
    expect(JSON.parse(pass("anthropic", text))).toEqual({
      model: "m",
      messages: [
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "own", signature: "sig" },
            { type: "tool_use", id: "t", name: "f", input: {} },
          ],
        },
      ],
    });
  });

  test("openai", () => {
    const own = {
      role: "assistant",
      content: "x",
      reasoning_content: "r",
      reasoning_details: [{ type: "reasoning.text", format: "unknown", text: "r" }],
    };
    const foreign = {
      role: "assistant",
      content: "y",
      reasoning_content: "r",
      reasoning_details: [
        { type: "reasoning.text", format: "anthropic-claude-v1", text: "r", signature: "s" },
      ],
    };
    expect(JSON.parse(pass("openai", JSON.stringify({ messages: [own, foreign] })))).toEqual({
      messages: [own, { role: "assistant", content: "y" }],
    });
  });

  test("responses: an item with another vendor's signature goes, OpenAI's own stays", () => {
    const own = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAAAA" };
    const foreign = { ...own, encrypted_content: "svc-foreign:anthropic:own:sig" };
    const call = { type: "function_call", call_id: "c1", name: "f", arguments: "{}" };
    const body = { input: [{ role: "user", content: "svc-foreign:" }, own, foreign, call] };
    expect(JSON.parse(pass("responses", JSON.stringify(body)))).toEqual({
      input: [{ role: "user", content: "svc-foreign:" }, own, call],
    });
    const text = '{"input": "svc-foreign:x" }';
    expect(pass("responses", text)).toBe(text);
  });

  test("gemini", () => {
    const foreign = Buffer.from("svc-foreign:anthropic:own:sig").toString("base64");
    const text = JSON.stringify({
      contents: [
        {
          role: "model",
          parts: [
            { text: "t", thought: true, thoughtSignature: foreign },
            { text: "x", thoughtSignature: "b3du" },
          ],
        },
      ],
    });
    expect(JSON.parse(pass("gemini", text))).toEqual({
      contents: [{ role: "model", parts: [{ text: "x", thoughtSignature: "b3du" }] }],
    });
  });

  test("a text that only speaks of it leaves the bytes alone", () => {
    const text =
      '{"messages":[{"role":"user","content":"\\"reasoning_details\\""},{"role":"user",' +
      '"content":"svc-foreign: \\"svc-foreign:"}]}';
    expect(pass("openai", text)).toBe(text);
    expect(pass("anthropic", text)).toBe(text);
  });
});
