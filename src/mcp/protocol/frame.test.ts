/** Frames of clients, and the tries of somebody who wants two parsers to read them differently. */
import { describe, expect, test } from "vitest";
import { FrameError, parseFrame } from "./frame.ts";

const parse = (text: string | Buffer) => parseFrame(Buffer.from(text));

function failure(text: string | Buffer): FrameError {
  try {
    parse(text);
  } catch (error) {
    if (error instanceof FrameError) return error;
    throw error;
  }
  throw new Error("the frame was accepted");
}

const CALL = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"rm"}}';

describe("messages", () => {
  test("a request, a notification and answers", () => {
    expect(parse(CALL)).toEqual({
      isBatch: false,
      messages: [{ kind: "request", id: 7, method: "tools/call", params: { name: "rm" } }],
    });
    expect(parse('{"jsonrpc":"2.0","method":"notifications/initialized"}').messages).toEqual([
      { kind: "notification", id: undefined, method: "notifications/initialized", params: {} },
    ]);
    for (const answer of ['"result":{}', '"error":{"code":1,"message":"m"}'])
      expect(parse(`{"jsonrpc":"2.0","id":"a",${answer}}`).messages).toEqual([{ kind: "answer" }]);
    expect(parse('{"jsonrpc":"2.0","id":null,"error":{}}').messages).toHaveLength(1);
  });

  test("a batch keeps its order", () => {
    const { isBatch, messages } = parse(`[${CALL},{"jsonrpc":"2.0","method":"ping","id":8}]`);
    expect([isBatch, messages.length]).toEqual([true, 2]);
    expect(messages[1]).toMatchObject({ method: "ping", id: 8 });
  });

  test("an escaped key is the key that it decodes to", () => {
    const escaped = CALL.replace('"name"', String.raw`"\u006eame"`).replace(
      "tools/call",
      String.raw`tools\/ca\u006cl`,
    );
    expect(parse(escaped).messages[0]).toMatchObject({
      method: "tools/call",
      params: { name: "rm" },
    });
  });

  test("methods that no policy concerns pass in any spelling", () => {
    for (const method of ["x/Vendor", "tools/callx", "Ping"])
      expect(parse(`{"jsonrpc":"2.0","id":1,"method":"${method}"}`).messages).toHaveLength(1);
  });
});

describe("refused", () => {
  const inParams = (members: string) =>
    `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{${members}}}`;
  test.each<[string, string | Buffer, number, string]>([
    ["no JSON", "{", -32_700, "not acceptable JSON"],
    ["empty", "", -32_700, "not acceptable JSON"],
    ["a byte order mark", `\uFEFF${CALL}`, -32_700, "not acceptable JSON"],
    ["UTF-16", Buffer.from(CALL, "utf16le"), -32_700, "not acceptable JSON"],
    ["invalid UTF-8", Buffer.from([0x22, 0xff, 0x22]), -32_700, "UTF-8"],
    ["an overlong slash", Buffer.from('{"a":"\xC0\xAF"}', "latin1"), -32_700, "UTF-8"],
    ["two texts", `${CALL}${CALL}`, -32_700, "not acceptable JSON"],
    ["a comment", `/**/${CALL}`, -32_700, "not acceptable JSON"],
    ["two methods", CALL.replace("{", '{"method":"ping",'), -32_700, "twice"],
    ["two params", CALL.replace("{", '{"params":{"name":"ok"},'), -32_700, "twice"],
    ["two names", inParams('"name":"ok","name":"rm"'), -32_700, "twice"],
    [
      "two names, one escaped",
      inParams(String.raw`"name":"ok","\u006eame":"rm"`),
      -32_700,
      "twice",
    ],
    ["two arguments", inParams('"name":"ok","arguments":{"a":1,"a":2}'), -32_700, "twice"],
    ["nesting", inParams(`"name":"ok","a":${"[".repeat(70)}${"]".repeat(70)}`), -32_700, "nesting"],
    ["Method beside method", CALL.replace("{", '{"Method":"ping",'), -32_700, "twice"],
    ["Method alone", CALL.replace('"method"', '"Method"'), -32_600, "no member"],
    ["PARAMS", CALL.replace('"params"', '"PARAMS"'), -32_600, "no member"],
    ["a wide method", CALL.replace('"method"', '"\uFF4Dethod"'), -32_600, "no member"],
    ["Name beside name", inParams('"name":"ok","Name":"rm"'), -32_600, "resembles"],
    ["Name alone", inParams('"Name":"rm"'), -32_600, "resembles"],
    ["a name with a hidden space", inParams('"name\u200B":"rm","name":"ok"'), -32_600, "resembles"],
    ["a wide name", inParams('"\uFF4Eame":"rm","name":"ok"'), -32_600, "resembles"],
    ["the long s", inParams('"u\u0280i":"x","URI":"y"'), -32_600, "resembles"],
    ["Tools/Call", CALL.replace("tools/call", "Tools/Call"), -32_600, "exactly"],
    ["a space after the method", CALL.replace("tools/call", "tools/call "), -32_600, "exactly"],
    [
      "a NUL after the method",
      CALL.replace("tools/call", String.raw`tools/call\u0000`),
      -32_600,
      "exactly",
    ],
    ["a wide slash", CALL.replace("tools/call", "tools\uFF0Fcall"), -32_600, "exactly"],
    ["TOOLS/LIST", CALL.replace("tools/call", "TOOLS/LIST"), -32_600, "exactly"],
    ["params as a list", CALL.replace('{"name":"rm"}', '["rm"]'), -32_600, "object"],
    ["method and result", CALL.replace("{", '{"result":{},'), -32_600, "either"],
    ["an unknown member", CALL.replace("{", '{"x":1,'), -32_600, "no member"],
    ["version 1.0", CALL.replace("2.0", "1.0"), -32_600, "jsonrpc"],
    ["no version", '{"id":1,"method":"ping"}', -32_600, "jsonrpc"],
    ["a call without an id", CALL.replace('"id":7,', ""), -32_600, "needs an"],
    ["a null id", CALL.replace("7", "null"), -32_600, "id"],
    ["a fraction as id", CALL.replace("7", "7.5"), -32_600, "id"],
    ["an id beyond 2^53", CALL.replace("7", "90071992547409930"), -32_600, "id"],
    ["an id that is an object", CALL.replace("7", "{}"), -32_600, "id"],
    ["a number", "1", -32_600, "object"],
    ["null", "null", -32_600, "object"],
    ["an empty batch", "[]", -32_600, "empty"],
    ["a batch in a batch", `[[${CALL}]]`, -32_600, "object"],
    ["a long batch", `[${Array.from({ length: 101 }, () => CALL).join(",")}]`, -32_600, "100"],
    ["__proto__", CALL.replace("{", '{"__proto__":{},'), -32_700, "not acceptable JSON"],
    ["a method of 257 characters", CALL.replace("tools/call", "x".repeat(257)), -32_600, "256"],
  ])("%s", (_, text, code, words) => {
    const error = failure(text);
    expect([error.code, error.message]).toEqual([code, expect.stringContaining(words)]);
  });

  test("an error names its request where the id could be read", () => {
    expect(failure(CALL.replace("tools/call", "Tools/Call")).id).toBe(7);
    expect(failure("{").id).toBeUndefined();
  });
});
