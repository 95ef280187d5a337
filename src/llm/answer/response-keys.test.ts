/** A provider that echoes its key does not reveal it to the caller, in any dialect. */
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { Secret } from "../../platform/secret.ts";
import { Gateway, provider, type Trip } from "../testing.ts";
import { ANSWERS, chat, EVENT_STREAM, STREAMS } from "../testing-samples.ts";

type Name = keyof typeof ANSWERS;

const NAMES: readonly Name[] = ["openai", "anthropic", "gemini"];
const PAIRS = NAMES.flatMap((client) => NAMES.map((upstream) => ({ client, upstream })));

/** Does not look like any vendor's key. */
const KEY = "wholly-unknown/key+0123456789";
const ESCAPED = KEY.replaceAll(/./g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`);

function ask(client: Name, upstream: Name, stream: boolean, key = KEY): Trip {
  const apiKey = new Secret(key);
  const shared = new Gateway(...NAMES.map((name) => provider(name, { apiKey })));
  const trip = shared.trip();
  switch (client) {
    case "openai":
      return trip.request({ body: chat(`${upstream}/m`, { stream }) });
    case "anthropic":
      return trip.request({
        path: "/v1/messages",
        body: { ...chat(`${upstream}/m`), max_tokens: 10, stream },
      });
    case "gemini":
      return trip.request({
        path:
          `/v1beta/models/${upstream}%2Fm:` +
          (stream ? "streamGenerateContent?alt=sse" : "generateContent"),
        body: { contents: [{ role: "user", parts: [{ text: "x" }] }] },
      });
  }
}

/** All bytes that the client receives, including unchanged ones. */
class Client {
  #got = "";
  readonly #trip: Trip;

  constructor(trip: Trip) {
    this.#trip = trip;
  }

  body(bytes: string | Buffer, endOfStream = true): this {
    this.#trip.responseBody(bytes, endOfStream);
    const { last } = this.#trip.exchange;
    if (last.kind === "pass") this.#got += String(bytes);
    else if (last.kind === "proceed") this.#got += String(last.reply.body ?? bytes);
    else if (last.kind === "respond") this.#got += String(last.reply.body);
    return this;
  }

  /** With escapes decoded, as a client reads it. */
  get got(): string {
    return this.#got.replaceAll(/\\u([0-9a-f]{4})/g, (_whole, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
  }
}

const ERRORS: Readonly<Record<Name, (text: string) => string>> = {
  openai: (text) => `{"error":{"message":"${text}","type":"x","param":"${text}","code":"${text}"}}`,
  anthropic: (text) => `{"type":"error","error":{"type":"${text}","message":"${text}"}}`,
  gemini: (text) => `{"error":{"code":400,"message":"${text}","status":"${text}"}}`,
};

const STREAM_ERRORS: Readonly<Record<Name, (text: string) => string>> = {
  openai: (text) => `data: ${ERRORS.openai(text)}\n\n`,
  anthropic: (text) => `event: error\ndata: ${ERRORS.anthropic(text)}\n\n`,
  gemini: (text) => `data: ${ERRORS.gemini(text)}\n\n`,
};

describe.each(PAIRS)("$upstream to $client", ({ client, upstream }) => {
  test.each([
    ["as it is", KEY],
    ["escaped", ESCAPED],
    ["percent-encoded", encodeURIComponent(KEY)],
  ])("an error body that has it %s", (_name, text) => {
    const trip = ask(client, upstream, false).responseHeaders(401);
    const { got } = new Client(trip).body(ERRORS[upstream](`bad key ${text}!`));
    expect(got).toContain("bad key [redacted]!");
    for (const form of [KEY, encodeURIComponent(KEY)]) expect(got).not.toContain(form);
    expect(() => JSON.parse(got) as unknown).not.toThrow();
  });

  test("an error body that has a short one", () => {
    const trip = ask(client, upstream, false, "pa55").responseHeaders(401);
    const { got } = new Client(trip).body(ERRORS[upstream]("bad key pa55!"));
    expect(got).toContain("bad key [redacted]!");
  });

  test("an error body in the words of a proxy", () => {
    const trip = ask(client, upstream, false).responseHeaders(502);
    const { got } = new Client(trip).body(`upstream said no to ${KEY}`);
    expect(got).toContain("upstream said no to [redacted]");
  });

  test("a compressed error body", () => {
    const trip = ask(client, upstream, false).responseHeaders(401, { "content-encoding": "gzip" });
    const { got } = new Client(trip).body(gzipSync(ERRORS[upstream](KEY)));
    expect(got).toContain("[redacted]");
    expect(got).not.toContain(KEY);
  });

  test.each([
    ["as it is", KEY],
    ["escaped", ESCAPED],
  ])("an error event in a stream that has it %s", (_name, text) => {
    const trip = ask(client, upstream, true).responseHeaders(200, EVENT_STREAM);
    const reader = new Client(trip);
    const [first = ""] = STREAMS[upstream];
    reader.body(first, false);
    const error = STREAM_ERRORS[upstream](`bad key ${text}!`);
    // Split within the key.
    const cut = error.indexOf(text) + 5;
    reader.body(error.slice(0, cut), false).body(error.slice(cut), false).body("", true);
    expect(reader.got).toContain("bad key [redacted]!");
    expect(reader.got).not.toContain(KEY);
  });

  test("an ordinary answer, and an ordinary stream", () => {
    const whole = ask(client, upstream, false).responseHeaders(200);
    const text = JSON.stringify(ANSWERS[upstream]).replaceAll("the-answer", `you sent ${KEY}`);
    const { got } = new Client(whole).body(text);
    expect(got).toContain("you sent [redacted]");
    expect(got).not.toContain(KEY);

    const streamed = ask(client, upstream, true).responseHeaders(200, EVENT_STREAM);
    const reader = new Client(streamed);
    for (const event of STREAMS[upstream])
      reader.body(event.replaceAll("answer", `you sent ${KEY}`), false);
    reader.body("", true);
    expect(reader.got).toContain("you sent [redacted]");
    expect(reader.got).not.toContain(KEY);
  });
});

test("an answer whose fields have it where they cannot be translated", () => {
  const trip = ask("anthropic", "openai", false).responseHeaders(200);
  const { got } = new Client(trip).body(`{"error":{"message":"bad key ${KEY}"}}`);
  expect(got).toContain("[redacted]");
  expect(got).not.toContain(KEY);
});

test("an error event of the Responses API", () => {
  const apiKey = new Secret(KEY);
  const shared = new Gateway(provider("openai", { apiKey }));
  const trip = shared
    .trip()
    .request({ path: "/v1/responses", body: { model: "openai/m", input: "x", stream: true } })
    .responseHeaders(200, EVENT_STREAM);
  const event = { type: "error", code: "x", message: `bad key ${KEY}`, param: null };
  const { got } = new Client(trip).body(`event: error\ndata: ${JSON.stringify(event)}\n\n`);
  expect(got).toContain("bad key [redacted]");
  expect(got).not.toContain(KEY);
});

test("an answer without it passes as the very same bytes", () => {
  const trip = ask("openai", "openai", false).responseHeaders(200).responseBody(ANSWERS.openai);
  expect(trip.exchange.proceeded.body).toBeUndefined();
  const streamed = ask("openai", "openai", true).responseHeaders(200, EVENT_STREAM);
  streamed.responseBody(STREAMS.openai[1] ?? "", false);
  expect(streamed.exchange.last.kind).toBe("pass");
});
