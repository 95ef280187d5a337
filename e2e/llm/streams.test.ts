/** The end of streams: complete, cut, and the source of their usage. */
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { begin, call, events, textOf } from "../support/client.ts";
import { useFixture } from "../support/fixture.ts";
import { MODELS } from "../support/samples.ts";
import { type DialectName, DIALECTS } from "../support/vendors.ts";
import { Gate } from "../support/wait.ts";

const fixture = useFixture();
const target = (): { port: number; token: string } => ({
  port: fixture.stack.port,
  token: fixture.token,
});
const PAIRS = DIALECTS.flatMap((client) => DIALECTS.map((upstream) => ({ client, upstream })));

/** A sign that the answer is whole. */
function saysComplete(dialect: DialectName, text: string): boolean {
  switch (dialect) {
    case "openai":
      return text.includes("[DONE]") || /"finish_reason":"/.test(text);
    case "anthropic":
      return text.includes("message_stop") || /"stop_reason":"/.test(text);
    case "gemini":
      return /"finishReason":"/.test(text);
  }
}

/** The last event is an error in the dialect, with a message. */
function expectErrorEvent(dialect: DialectName, text: string): void {
  const last = events(text).at(-1);
  const body = JSON.parse(last?.data ?? "{}") as {
    type?: string;
    error?: { message?: string; code?: number; status?: string };
  };
  expect(body.error?.message, text).toEqual(expect.stringMatching(/\w/));
  if (dialect === "anthropic") {
    expect(last?.event).toBe("error");
    expect(body.type).toBe("error");
  }
  if (dialect === "gemini") {
    expect(body.error?.code).toBeGreaterThanOrEqual(500);
    expect(body.error?.status).toEqual(expect.stringMatching(/^[A-Z_]+$/));
  }
}

describe.each(PAIRS)("$client from $upstream", ({ client, upstream }) => {
  const ask = { dialect: client, model: `${upstream}/${MODELS[upstream]}`, stream: true };
  const vendor = (): (typeof fixture.vendors)["openai"] => fixture.vendors[upstream];

  test.each([
    ["in the middle of its content", { before: "content", afterContent: 2 }],
    ["before its finish", { before: upstream === "openai" ? "finish" : "usage" }],
  ] as const)("a stream that ends %s ends in an error", async (_name, where) => {
    vendor().next(
      vendor().says({ text: ["One", " two", " three"], cut: { how: "eof", ...where } }),
    );
    const answer = await call(fixture, ask);
    expect(answer.status).toBe(200);
    expect(textOf(client, answer.text)).toBe("afterContent" in where ? "One two" : "One two three");
    expectErrorEvent(client, answer.text);
    expect(saysComplete(client, answer.text), answer.text).toBe(false);
    const account = await fixture.stack.callOf(String(answer.headers["x-svc-call-id"]));
    expect(account).toMatchObject({ end: "cut", code: "stream_interrupted", usage: "estimated" });
    expect(account["outputTokens"]).toBeGreaterThan(0);
  });

  test("a stream whose connection breaks never looks whole", async () => {
    const gate = new Gate();
    const here = { before: "content", afterContent: 2 } as const;
    vendor().next(
      vendor().says({
        text: ["One", " two", " three"],
        hold: { gate, ...here },
        cut: { how: "reset", ...here },
      }),
    );
    const exchange = begin(target(), ask);
    const response = await exchange.response;
    expect(response.statusCode).toBe(200);
    await gate.reached;
    gate.open();
    const end = await exchange.answer.then(
      (answer) => answer.text,
      () => "broken",
    );
    if (end !== "broken") {
      expectErrorEvent(client, end);
      expect(saysComplete(client, end)).toBe(false);
    }
    const account = await fixture.stack.callOf(String(response.headers["x-svc-call-id"]));
    expect(account).toMatchObject({ usage: "estimated" });
    expect(account["outputTokens"]).toBeGreaterThan(0);
    expect(["cut", "disconnected"]).toContain(account["end"]);
  });

  test("an error event of the upstream is one for the client", async () => {
    vendor().next((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const event = {
        openai:
          `data: {"error":{"message":"it ` +
          `broke","type":"server_error","param":null,"code":null}}\n\n`,
        anthropic:
          "event: error\ndata: " +
          `{"type":"error","error":{"type":"overloaded_error","message":"it broke"}}\n\n`,
        gemini: `data: {"error":{"code":503,"message":"it broke","status":"UNAVAILABLE"}}\r\n\r\n`,
      }[upstream];
      response.end(event);
    });
    const answer = await call(fixture, ask);
    expectErrorEvent(client, answer.text);
    expect(answer.text).toContain("it broke");
    expect(saysComplete(client, answer.text)).toBe(false);
  });

  test("each piece arrives when it is said", async () => {
    const gate = new Gate();
    vendor().next(
      vendor().says({
        text: ["first", "second"],
        hold: { gate, before: "content", afterContent: 1 },
      }),
    );
    const exchange = begin(target(), ask);
    const response = await exchange.response;
    let text = "";
    // The gate opens only when the first piece has arrived: a stream that is held back hangs.
    for await (const part of response as AsyncIterable<Buffer>) {
      text += part.toString();
      if (text.includes("first")) gate.open();
    }
    expect(textOf(client, text)).toBe("firstsecond");
  });
});

describe("usage that the client did not ask for", () => {
  test.each([
    ["absent", {}],
    ["null", { stream_options: null }],
    ["empty", { stream_options: {} }],
    ["null in it", { stream_options: { include_usage: null } }],
    ["false", { stream_options: { include_usage: false } }],
  ])("is asked of the upstream, counted and hidden (%s)", async (_name, body) => {
    const { openai } = fixture.vendors;
    openai.next(openai.says({ text: ["Hello"], usage: { input: 30, cached: 10, output: 9 } }));
    const answer = await call(fixture, {
      dialect: "openai",
      model: `openai/${MODELS.openai}`,
      stream: true,
      body,
    });
    expect(openai.only.json["stream_options"]).toMatchObject({ include_usage: true });
    const chunks = events(answer.text)
      .filter((event) => event.data !== "[DONE]")
      .map((event) => JSON.parse(event.data) as Record<string, unknown>);
    expect(
      chunks.filter((chunk) => chunk["usage"] !== undefined && chunk["usage"] !== null),
    ).toEqual([]);
    expect(chunks.filter((chunk) => (chunk["choices"] as unknown[]).length === 0)).toEqual([]);
    expect(answer.text).not.toContain('"prompt_tokens"');
    expect(answer.text).toContain("data: [DONE]");
    expect(answer.text).toMatch(/^: x-svc-input-tokens=30 x-svc-output-tokens=9 /m);
    const account = await fixture.stack.callOf(String(answer.headers["x-svc-call-id"]));
    expect(account).toMatchObject({ usage: "exact", inputTokens: 30, outputTokens: 9 });
  });

  test.each(DIALECTS)("reaches a client that did ask, once (from %s)", async (upstream) => {
    const vendor = fixture.vendors[upstream];
    vendor.next(vendor.says({ text: ["Hello"] }));
    const body = { stream_options: { include_usage: true } };
    const answer = await call(fixture, {
      dialect: "openai",
      model: `${upstream}/${MODELS[upstream]}`,
      stream: true,
      body,
    });
    expect(answer.text.split('"prompt_tokens":11').length - 1).toBe(1);
  });

  test.each(["anthropic", "gemini"] as const)(
    "is not shown to a client of another dialect either (from %s)",
    async (upstream) => {
      const vendor = fixture.vendors[upstream];
      vendor.next(vendor.says({ text: ["Hello"] }));
      const answer = await call(fixture, {
        dialect: "openai",
        model: `${upstream}/${MODELS[upstream]}`,
        stream: true,
      });
      expect(answer.text).not.toContain('"prompt_tokens"');
      const account = await fixture.stack.callOf(String(answer.headers["x-svc-call-id"]));
      expect(account).toMatchObject({ usage: "exact", inputTokens: 11, outputTokens: 7 });
    },
  );
});

describe("totals of a stream", () => {
  const script = { text: ["Hello"], usage: { input: 30, cached: 10, output: 9 } };

  test.each(["openai", "anthropic"] as const)(
    "are the last comment to %s, for which its SDK does not care",
    async (dialect) => {
      const vendor = fixture.vendors[dialect];
      vendor.always(vendor.says(script));
      const model = `${dialect}/${MODELS[dialect]}`;
      const answer = await call(fixture, { dialect, model, stream: true });
      const comments = answer.text.split("\n").filter((line) => line.startsWith(":"));
      expect(comments).toHaveLength(1);
      const pairs = Object.fromEntries(
        (comments[0] ?? "")
          .slice(2)
          .split(" ")
          .map((pair) => pair.split("=") as [string, string]),
      );
      expect(pairs).toMatchObject({
        "x-svc-input-tokens": "30",
        "x-svc-cached-input-tokens": "10",
        "x-svc-output-tokens": "9",
        "x-svc-duration-ms": expect.stringMatching(/^\d+$/) as string,
        "x-svc-cost-usd": expect.stringMatching(/^0\.\d+$/) as string,
      });
      expect(answer.text.trimEnd().endsWith(comments[0] ?? "none")).toBe(true);
      expect(answer.headers["x-svc-output-tokens"]).toBeUndefined();
      expect(answer.headers["x-svc-model-id"]).toBe(model);

      const text =
        dialect === "openai"
          ? await new OpenAI({
              apiKey: fixture.token,
              baseURL: `${fixture.stack.baseUrl}/v1`,
            }).chat.completions
              .stream({ model, messages: [{ role: "user", content: "Hi" }] })
              .finalContent()
          : await new Anthropic({ apiKey: fixture.token, baseURL: fixture.stack.baseUrl }).messages
              .stream({ model, max_tokens: 9, messages: [{ role: "user", content: "Hi" }] })
              .finalText();
      expect(text).toBe("Hello");
    },
  );

  test.each(DIALECTS)(
    "are a member of the last chunk to gemini, whose SDK fails on a comment (from %s)",
    async (upstream) => {
      const vendor = fixture.vendors[upstream];
      vendor.always(vendor.says(script));
      const model = `${upstream}/${MODELS[upstream]}`;
      const answer = await call(fixture, { dialect: "gemini", model, stream: true });
      expect(answer.text.split("\n").filter((line) => line.startsWith(":"))).toEqual([]);
      expect(JSON.parse(events(answer.text).at(-1)?.data ?? "{}")).toMatchObject({
        usageMetadata: {
          promptTokenCount: 30,
          cachedContentTokenCount: 10,
          candidatesTokenCount: 9,
        },
        svc: {
          "x-svc-input-tokens": "30",
          "x-svc-output-tokens": "9",
          "x-svc-cached-input-tokens": "10",
          "x-svc-duration-ms": expect.stringMatching(/^\d+$/) as string,
          "x-svc-cost-usd": expect.stringMatching(/^0\.\d+$/) as string,
        },
      });
      const account = await fixture.stack.callOf(String(answer.headers["x-svc-call-id"]));
      expect(account).toMatchObject({ usage: "exact", inputTokens: 30, outputTokens: 9 });
      const client = new GoogleGenAI({
        apiKey: fixture.token,
        httpOptions: { baseUrl: fixture.stack.baseUrl },
      });
      let text = "";
      for await (const chunk of await client.models.generateContentStream({
        model,
        contents: "Hi",
      }))
        text += chunk.text ?? "";
      expect(text).toBe("Hello");
    },
  );
});
