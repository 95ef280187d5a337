import { describe, expect, test } from "vitest";
import type { DialectName, StreamReader } from "./dialect.ts";
import { createStreamReader } from "./registry.ts";
import { streams, toSse } from "./testdata/fixtures/streams.ts";

function open(
  upstream: DialectName,
  client: DialectName = upstream,
  wantsUsage = false,
): StreamReader {
  return createStreamReader({ upstream, client, wantsUsage, model: "m", id: "ID", now: 0 });
}

function eventsOf(dialect: DialectName, name: string): Buffer[] {
  return (streams[dialect][name] ?? []).map((event) => Buffer.from(toSse(dialect, [event])));
}

describe("a stream of the client's own dialect", () => {
  test.each([
    ["openai", "text", 4],
    ["anthropic", "text", Number.POSITIVE_INFINITY],
    ["gemini", "text", Number.POSITIVE_INFINITY],
  ] as const)("%s: every event passes as the same Buffer", (dialect, name, hiddenAt) => {
    const reader = open(dialect);
    eventsOf(dialect, name).forEach((event, index) => {
      const out = reader.push(event);
      if (index === hiddenAt) expect(out.length).toBe(0);
      else expect(out).toBe(event);
    });
    expect(reader.end().length).toBe(0);
    expect(reader.outcome).toEqual({ kind: "complete" });
  });

  test("OpenAI's usage passes to a client that asked for it", () => {
    const reader = open("openai", "openai", true);
    for (const event of eventsOf("openai", "text")) expect(reader.push(event)).toBe(event);
  });

  test("bytes of an incomplete event are held until it is whole", () => {
    const reader = open("openai");
    expect(reader.push(Buffer.from('data: {"choices":[{"delta":{"con')).length).toBe(0);
    const out = reader.push(Buffer.from('tent":"x"}}]}\n\ndata: {"ch')).toString();
    expect(out).toBe('data: {"choices":[{"delta":{"content":"x"}}]}\n\n');
    expect(reader.end().toString()).toMatch(/^data: \{"error"/);
  });

  test("with spaces in its JSON, as some servers write it", () => {
    const reader = open("openai");
    reader.push(
      Buffer.from(
        'data: {"choices": [{"delta": {"content": "abcd"}, "finish_reason": null}], ' +
          '"usage": null}\n\n',
      ),
    );
    reader.push(Buffer.from('data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'));
    expect(
      reader.push(
        Buffer.from(
          'data: {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}\n\n',
        ),
      ).length,
    ).toBe(0);
    expect(reader.end().length).toBe(0);
    expect(reader).toMatchObject({
      outcome: { kind: "complete" },
      outputBytes: 4,
      usage: { inputTokens: 3, outputTokens: 1 },
    });
  });

  test("an empty finish_reason, as some servers write it, is none", () => {
    for (const client of ["openai", "anthropic"] as const) {
      const reader = open("openai", client);
      reader.push(
        Buffer.from('data: {"choices":[{"delta":{"content":"x"},"finish_reason":""}]}\n\n'),
      );
      reader.end();
      expect(reader.outcome).toEqual({ kind: "cut" });
    }
  });

  test("words of the protocol inside a text are no signs", () => {
    const reader = open("openai");
    const chunk = Buffer.from(
      "data: " +
        JSON.stringify({
          choices: [
            {
              delta: { content: '"finish_reason":"stop","error":{},"usage":{}' },
              finish_reason: null,
            },
          ],
        }) +
        "\n\n",
    );
    expect(reader.push(chunk)).toBe(chunk);
    reader.end();
    expect(reader.outcome).toEqual({ kind: "cut" });
    expect(reader.usage).toBeUndefined();
  });

  test("usage so far is not final", () => {
    const reader = open("anthropic");
    const [start, ...rest] = eventsOf("anthropic", "text");
    reader.push(start as Buffer);
    expect(reader).toMatchObject({
      usageIsFinal: false,
      usage: { inputTokens: 110, cacheWrite5mTokens: 5, cacheWrite1hTokens: 15, outputTokens: 1 },
    });
    for (const event of rest) reader.push(event);
    // message_delta is cumulative: it replaces earlier values, including its input counts.
    expect(reader).toMatchObject({
      usageIsFinal: true,
      usage: { inputTokens: 120, cachedInputTokens: 60, outputTokens: 20 },
    });
  });
});

describe("what has been seen", () => {
  test.each(["openai", "anthropic", "gemini"] as const)(
    "%s: characters are counted alike in passing and in translation",
    (upstream) => {
      const clients = (["openai", "anthropic", "gemini"] as const).map((client) => {
        const reader = open(upstream, client);
        for (const event of eventsOf(upstream, "text")) reader.push(event);
        return reader.outputBytes;
      });
      // 'Grüße, "Welt" 🌍\n' has 17 characters; bytes and escapes make the approximate count of a
      // passing stream higher.
      for (const characters of clients) {
        expect(characters).toBeGreaterThanOrEqual(17);
        expect(characters).toBeLessThanOrEqual(26);
      }
    },
  );

  test.each([
    ["openai", 1],
    ["anthropic", 3],
    ["gemini", 0],
  ] as const)("%s: lifecycle events are no content", (dialect, lifecycle) => {
    const reader = open(dialect);
    eventsOf(dialect, "text").forEach((event, index) => {
      reader.push(event);
      expect(reader.sawContent).toBe(index >= lifecycle);
    });
  });

  test("a call without arguments is content", () => {
    const reader = open("anthropic");
    reader.push(
      Buffer.from(
        toSse("anthropic", [
          {
            type: "content_block_start",
            index: 0,
            content_block: { type: "tool_use", id: "t", name: "f", input: {} },
          },
        ]),
      ),
    );
    expect(reader.sawContent).toBe(true);
  });
});

describe("a stream of another dialect", () => {
  test("an event that is no JSON is an error, not a gap", () => {
    const reader = open("openai", "anthropic");
    const out = reader.push(Buffer.from("data: {oops\n\n")).toString();
    expect(out).toMatch(/^event: error\n/);
    expect(reader.outcome.kind).toBe("error");
    expect(reader.end().length).toBe(0);
  });

  test("interleaved arguments end in an error for a client that cannot take them", () => {
    const call = (index: number, fields: object): Buffer =>
      Buffer.from(
        toSse("openai", [
          { choices: [{ index: 0, delta: { tool_calls: [{ index, ...fields }] } }] },
        ]),
      );
    const reader = open("openai", "anthropic");
    reader.push(call(0, { id: "a", function: { name: "f", arguments: '{"x"' } }));
    reader.push(call(1, { id: "b", function: { name: "g", arguments: "{}" } }));
    expect(reader.push(call(0, { function: { arguments: ":1}" } })).toString()).toMatch(
      /event: error/,
    );
  });

  test("keys in an upstream's error do not reach the client", () => {
    const reader = open("openai", "anthropic");
    const out = reader
      .push(Buffer.from('data: {"error":{"message":"bad key sk-abcdefghij","code":"x"}}\n\n'))
      .toString();
    expect(out).toContain("[redacted]");
    expect(out).not.toContain("sk-abcdefghij");
  });

  test("usage that comes with a failed answer still counts", () => {
    const reader = open("gemini", "openai");
    for (const event of eventsOf("gemini", "malformed-call")) reader.push(event);
    expect(reader).toMatchObject({
      outcome: { kind: "error" },
      usage: { inputTokens: 100, outputTokens: 1 },
    });
  });
});
