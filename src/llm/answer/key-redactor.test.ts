import { describe, expect, test } from "vitest";
import { Secret } from "../../platform/secret.ts";
import { KeyRedactor } from "./key-redactor.ts";

const KEY = 'k3y/of+the~provider=with.20"chars';
const redactor = new KeyRedactor([new Secret(KEY), undefined]);

/** Writes every character in any form that JSON allows. */
const escaped = (text: string): string =>
  text.replaceAll(/./g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

test("a key that begins with another one is removed as a whole", () => {
  const both = [new Secret("part-of-a-longer-key"), new Secret("part-of-a-longer-key/the-rest")];
  for (const keys of [both, both.toReversed()]) {
    const text = new KeyRedactor(keys).text("keys: part-of-a-longer-key/the-rest.");
    expect(text).toBe("keys: [redacted].");
  }
});

describe("an error", () => {
  const ways: readonly (readonly [string, string])[] = [
    ["as it is", JSON.stringify({ error: { message: `bad key ${KEY}.` } })],
    ["twice", JSON.stringify({ error: { message: `${KEY} and ${KEY}` } })],
    [
      "with slashes escaped, as PHP does it",
      `{"error":{"message":"bad key ${JSON.stringify(KEY).slice(1, -1).replaceAll("/", "\\/")}"}}`,
    ],
    ["with every character escaped", `{"error":{"message":"bad key ${escaped(KEY)}"}}`],
    [
      "with one character escaped",
      `{"error":{"message":"bad key \\u006b${JSON.stringify(KEY).slice(2, -1)}"}}`,
    ],
    [
      "percent-encoded",
      JSON.stringify({ error: { message: `/v1?key=${encodeURIComponent(KEY)}` } }),
    ],
    ["in base64", JSON.stringify({ error: { message: Buffer.from(KEY).toString("base64") } })],
    [
      "in base64url",
      JSON.stringify({ error: { message: Buffer.from(KEY).toString("base64url") } }),
    ],
    ["as the name of a member", JSON.stringify({ error: { [KEY]: 1, message: "x" } })],
    ["in the code", JSON.stringify({ error: { code: KEY, message: "x" } })],
    ["deep in the details", JSON.stringify({ error: { message: "x", details: [[{ a: [KEY] }]] } })],
  ];

  test.each(ways)("that has the key %s", (_name, text) => {
    const out = redactor.body(Buffer.from(text)).toString();
    const told = JSON.stringify(JSON.parse(out));
    for (const form of [KEY, JSON.stringify(KEY).slice(1, -1), encodeURIComponent(KEY)])
      expect(told).not.toContain(form);
    expect(told).not.toContain(Buffer.from(KEY).toString("base64").slice(0, 20));
    expect(told).toContain("[redacted]");
  });

  test("without a key is the very same Buffer", () => {
    const body = Buffer.from('{"error":{"message":"no \\"model\\" of that name\\n"}}');
    expect(redactor.body(body)).toBe(body);
  });

  test("that is no JSON, or JSON that is too deep to be written again, is searched as it is", () => {
    expect(redactor.body(Buffer.from(`<p>${KEY}</p>\\`)).toString()).toBe("<p>[redacted]</p>\\");
    const deep = `${"[".repeat(100_000)}"\\n${"]".repeat(100_000)}`;
    expect(redactor.body(Buffer.from(deep)).toString()).toBe(deep);
  });

  test("is searched for short keys as well, and for what looks like somebody's key", () => {
    const short = new KeyRedactor([new Secret("pass")]);
    expect(short.text("wrong key pass, not sk-abcdefghijk")).toBe(
      "wrong key [redacted], not [redacted]",
    );
  });

  test("with a long list of keys that are found a million times is done in time", () => {
    const text = KEY.repeat(100_000);
    expect(redactor.text(text)).toBe("[redacted]".repeat(100_000));
  });
});

describe("an ordinary answer", () => {
  test("is redacted of the key, and the rest of it stays as it is, byte by byte", () => {
    const around = Buffer.from([0xff, 0x00, 0xc3, 0xa9]);
    const body = Buffer.concat([around, Buffer.from(KEY), around]);
    expect(redactor.answer(body)).toEqual(
      Buffer.concat([around, Buffer.from("[redacted]"), around]),
    );
  });

  test("without the key is the very same Buffer, whatever looks like a key in it", () => {
    const body = Buffer.from("an example is sk-abcdefghijklmnop, or Bearer xyz");
    expect(redactor.answer(body)).toBe(body);
  });

  test("is not searched for placeholders, which may be words of it", () => {
    const body = Buffer.from("the set is EMPTY, says the placeholder-key");
    expect(new KeyRedactor([new Secret("EMPTY"), new Secret("placeholder-key")]).answer(body)).toBe(
      body,
    );
  });
});

describe("events with an error among them", () => {
  test("keep their lines", () => {
    const block = Buffer.from(
      `event: error\r\ndata: {"error":{"message":"${escaped(KEY)}"}}\r\n\r\n: ` +
        `${KEY}\ndata: [DONE]\n\n`,
    );
    expect(redactor.events(block).toString()).toBe(
      'event: error\r\ndata:{"error":{"message":"[redacted]"}}\r\n\r\n: [redacted]\ndata: ' +
        "[DONE]\n\n",
    );
  });

  test("without a key are the very same Buffer", () => {
    const block = Buffer.from('event: error\ndata: {"error":{"message":"overloaded\\n"}}\n\n');
    expect(redactor.events(block)).toBe(block);
  });
});
