import { describe, expect, test } from "vitest";
import type { StreamReader } from "../dialect.ts";
import { SseParser } from "../sse.ts";
import { STREAM_CUT } from "../stream-errors.ts";
import { createPassReader } from "../registry.ts";
import { responses } from "./dialect.ts";

const USAGE = {
  input_tokens: 30,
  input_tokens_details: { cached_tokens: 10 },
  output_tokens: 5,
  total_tokens: 35,
};
const COUNTED = {
  inputTokens: 30,
  cachedInputTokens: 10,
  cacheWrite5mTokens: 0,
  cacheWrite1hTokens: 0,
  outputTokens: 5,
};

const event = (type: string, rest: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;
const CREATED = event("response.created", { response: { id: "r", usage: null } });
const DELTA = event("response.output_text.delta", { delta: "héllo" });
const final = (type: string, usage: object | null = USAGE): string =>
  event(type, { response: { id: "r", usage } });
const STREAM = Buffer.from(CREATED + DELTA + DELTA + final("response.completed"));

function read(parts: readonly Buffer[]): { readonly text: string; readonly reader: StreamReader } {
  const reader = createPassReader("responses", true);
  const out = parts.map((part) => reader.push(part));
  return { text: Buffer.concat([...out, reader.end()]).toString(), reader };
}

function events(text: string): unknown[] {
  const parser = new SseParser();
  return [...parser.push(Buffer.from(text)), ...parser.end()].map(
    ({ data }) => JSON.parse(data) as unknown,
  );
}

describe("the reader", () => {
  test("cut at every byte: all bytes pass, usage is read", () => {
    for (let at = 0; at <= STREAM.length; at++) {
      const { text, reader } = read([STREAM.subarray(0, at), STREAM.subarray(at)]);
      expect(text).toBe(STREAM.toString());
      expect(reader).toMatchObject({
        outcome: { kind: "complete" },
        usage: COUNTED,
        usageIsFinal: true,
        outputBytes: 10,
        sawContent: true,
      });
    }
  });

  test("a byte at a time", () => {
    const { text, reader } = read([...STREAM].map((byte) => Buffer.from([byte])));
    expect(text).toBe(STREAM.toString());
    expect(reader.usage).toEqual(COUNTED);
  });

  test("a whole chunk is the very same Buffer", () => {
    expect(createPassReader("responses", true).push(STREAM)).toBe(STREAM);
  });

  test("ended at every byte: the client sees whole events only, the last of them an error", () => {
    const whole = STREAM.toString();
    for (let at = 0; at < STREAM.length - 2; at++) {
      const { text, reader } = read([STREAM.subarray(0, at)]);
      expect(reader.outcome, `${at}`).toEqual({ kind: "cut" });
      expect(events(text).at(-1), `${at}`).toMatchObject({
        type: "error",
        code: STREAM_CUT.code,
        param: null,
      });
      expect(whole.startsWith(text.slice(0, text.indexOf("event: error")).trimEnd())).toBe(true);
    }
  });

  test("a last event that lacks its blank line is whole", () => {
    for (const cutTo of [1, 2]) {
      const { reader } = read([STREAM.subarray(0, -cutTo)]);
      expect(reader).toMatchObject({ outcome: { kind: "complete" }, usageIsFinal: true });
    }
  });

  test.each([
    ["response.completed", "complete"],
    ["response.incomplete", "complete"],
    ["response.failed", "error"],
  ])("%s: %s, and its usage is final", (type, kind) => {
    const { text, reader } = read([Buffer.from(CREATED + final(type))]);
    expect(reader).toMatchObject({ outcome: { kind }, usage: COUNTED, usageIsFinal: true });
    expect(text).toBe(CREATED + final(type));
  });

  test("a final event without usage leaves it to an estimate", () => {
    const { reader } = read([Buffer.from(DELTA + final("response.failed", null))]);
    expect(reader).toMatchObject({ usage: undefined, usageIsFinal: false, outputBytes: 5 });
  });

  test("an error event is the end, and no second one is added", () => {
    const error = event("error", { code: "server_error", message: "broken", param: null });
    const { text, reader } = read([Buffer.from(CREATED + error)]);
    expect(text).toBe(CREATED + error);
    expect(reader.outcome).toEqual({ kind: "error", message: "broken" });
  });

  test.each([
    "data: no json\n\n",
    "data: null\n\n",
    "data: [1]\n\n",
    'data: {"type":7}\n\n',
    ": comment\n\n",
    "\n\n",
  ])("%j is passed on", (odd) => {
    const { text, reader } = read([Buffer.from(odd), STREAM]);
    expect(text).toBe(odd + STREAM.toString());
    expect(reader.outcome).toEqual({ kind: "complete" });
  });

  test("nothing at all is a cut", () => {
    const { text, reader } = read([]);
    expect(reader).toMatchObject({
      outcome: { kind: "cut" },
      sawContent: false,
      outputBytes: 0,
    });
    expect(events(text)).toMatchObject([{ type: "error" }]);
  });
});

describe("responses.readUsage", () => {
  test("reads what is there", () => {
    expect(responses.readUsage({ usage: USAGE })).toEqual(COUNTED);
    expect(responses.readUsage({ usage: { input_tokens: 1, output_tokens: 2 } })).toEqual({
      ...COUNTED,
      inputTokens: 1,
      cachedInputTokens: 0,
      outputTokens: 2,
    });
  });

  test.each([
    undefined,
    null,
    "x",
    [],
    {},
    { usage: null },
    { usage: {} },
    { usage: { input_tokens: "1", output_tokens: 2 } },
    { usage: { input_tokens: 1 } },
  ])("%j has none", (response) => {
    expect(responses.readUsage(response)).toBeUndefined();
  });
});
