import { describe, expect, test } from "vitest";
import { FILE_KEYS, type JsonLimits, scanJson } from "./scan.ts";

const LIMITS: JsonLimits = { depth: 4, values: 20, members: 5 };

function scan(text: string, limits?: JsonLimits): unknown {
  return scanJson(Buffer.from(text), limits).members?.map(({ key, valueStart, valueEnd }) => [
    key,
    Buffer.from(text).toString("utf8", valueStart, valueEnd),
  ]);
}

function problem(bytes: Buffer | string, limits?: JsonLimits): string {
  try {
    scanJson(Buffer.from(bytes as string), limits);
  } catch (error) {
    return (error as Error).message;
  }
  return "accepted";
}

describe("members of the outermost object", () => {
  test.each([
    ["{}", []],
    [" \t\r\n{ } \n", []],
    ['{"a":1}', [["a", "1"]]],
    [
      '{ "a" : -0.5e+10 , "b" : [ 1, {"c": [ ] } ] }',
      [
        ["a", "-0.5e+10"],
        ["b", '[ 1, {"c": [ ] } ]'],
      ],
    ],
    ['{"a":"x\\"}{,\\\\"}', [["a", '"x\\"}{,\\\\"']]],
    [
      '{"\\u006dodel":true,"é":null}',
      [
        ["model", "true"],
        ["é", "null"],
      ],
    ],
    [`{"a":"${"x".repeat(1000)}\\\\"}`, [["a", `"${"x".repeat(1000)}\\\\"`]]],
    [`{"a":"${"x".repeat(1000)}\\"y"}`, [["a", `"${"x".repeat(1000)}\\"y"`]]],
  ])("%s", (text, members) => {
    expect(scan(text)).toEqual(members);
  });

  test.each(["[]", "1", '"x"', "null", " [1, [2]] "])("%s is no object", (text) => {
    expect(scan(text)).toBeUndefined();
  });
});

test.each([
  ["", "an unexpected end of the text at byte 0"],
  ["{", "an unexpected end of the text at byte 1"],
  ['{"a"', "an unexpected end of the text at byte 4"],
  ['{"a":', "an unexpected end of the text at byte 5"],
  ['{"a":1', "an unexpected end of the text at byte 6"],
  ['{"a":1}}', "the character } is not expected at byte 7"],
  ['{"a":1} x', "the character x is not expected at byte 8"],
  ["{'a':1}", "the character ' is not expected at byte 1"],
  ["{a:1}", "the character a is not expected at byte 1"],
  ['{"a" 1}', "the character 1 is not expected at byte 5"],
  ['{"a":1,}', "the character } is not expected at byte 7"],
  ["[1,]", "the character ] is not expected at byte 3"],
  ["[1 2]", "the character 2 is not expected at byte 3"],
  ["[1}", "the character } is not expected at byte 2"],
  ['{"a":[}', "the character } is not expected at byte 6"],
  ["[01]", "the character 1 is not expected at byte 2"],
  ["[+1]", "the character + is not expected at byte 1"],
  ["[1.]", "the character ] is not expected at byte 3"],
  ["[.5]", "the character . is not expected at byte 1"],
  ["[1e]", "the character ] is not expected at byte 3"],
  ["[-]", "the character ] is not expected at byte 2"],
  ["[NaN]", "the character N is not expected at byte 1"],
  ["[True]", "the character T is not expected at byte 1"],
  ["[trux]", "the character x is not expected at byte 4"],
  ["[nul", "an unexpected end of the text at byte 4"],
  ['["\\x"]', "a malformed escape in a string at byte 2"],
  ['["\\', "a malformed escape in a string at byte 2"],
  ['["\\u12"]', "a malformed escape in a string at byte 2"],
  ['["\\u12g4"]', "a malformed escape in a string at byte 2"],
  ['["\\u+123"]', "a malformed escape in a string at byte 2"],
  ['["\\U0061"]', "a malformed escape in a string at byte 2"],
  [`["${"x".repeat(100)}\\'"]`, "a malformed escape in a string at byte 102"],
  [`["${"x".repeat(100)}\\u00"]`, "a malformed escape in a string at byte 102"],
  ['"abc', "a string without its closing quote at byte 0"],
  ['"abc\\"', "a string without its closing quote at byte 0"],
  [`"${"x".repeat(200)}\\"`, "a string without its closing quote at byte 0"],
  ["\u00a0{}", "the byte 194 is not expected at byte 0"],
  ["{}\u0000", "the byte 0 is not expected at byte 2"],
  ["\ufeff{}", "a byte order mark at byte 0"],
  ["{} // comment", "the character / is not expected at byte 3"],
])("%j is refused: %s", (text, message) => {
  expect(problem(text)).toBe(message);
});

test("text that is not UTF-8 is refused", () => {
  expect(problem(Buffer.from([0x22, 0xff, 0x22]))).toBe("text that is not UTF-8 at byte 0");
  expect(problem(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]))).toMatch(/not UTF-8/);
});

describe("a key twice", () => {
  test.each([
    '{"model":"a","model":"b"}',
    '{"model":"a","\\u006dodel":"b"}',
    '{"model":"a","Model":"b"}',
    '{"model":"a","MODEL":"b"}',
    '{"model":"a","ｍｏｄｅｌ":"b"}',
    '{"x":{"a":1,"a":2}}',
    '{"x":[{"a":1,"b":[{}],"\\u0061":2}]}',
    `[{${Array.from({ length: 50 }, (_, n) => `"k${n}":0`).join()},"k49":1}]`,
    `[{${Array.from({ length: 50 }, (_, n) => `"k${n}":0`).join()},"k0":1}]`,
  ])("%s is refused", (text) => {
    expect(problem(text)).toMatch(/^the key ".+" occurs twice at byte \d+$/);
  });

  test.each([
    '{"x":{"id":1,"ID":2}}',
    '[{"a":1},{"a":1}]',
    '{"a":{"a":{"a":1}}}',
    '{"a":{"b":1},"b":{"a":1}}',
  ])("%s is not the same key twice", (text) => {
    expect(problem(text)).toBe("accepted");
  });

  test("a long key is cut in the message", () => {
    const key = "k".repeat(10_000);
    expect(problem(`[{"${key}":1,"${key}":1}]`)).toBe(
      `the key "${"k".repeat(64)}…" occurs twice at byte 10007`,
    );
  });

  test("a long key of the outermost object is refused", () => {
    expect(problem(`{"${"k".repeat(254)}":1}`)).toBe("accepted");
    expect(problem(`{"${"k".repeat(255)}":1}`)).toBe("a key of more than 256 bytes at byte 1");
  });
});

test.each(['{"__proto__":{}}', '{"a":[{"__proto__":1}]}', '{"\\u005f_proto__":1}'])(
  "%s is refused: it would change a prototype",
  (text) => {
    expect(problem(text)).toMatch(/"__proto__" is not allowed/);
  },
);

describe("limits", () => {
  test("depth", () => {
    expect(problem("[[[[]]]]", LIMITS)).toBe("accepted");
    expect(problem("[[[[[]]]]]", LIMITS)).toBe("nesting of more than 4 levels at byte 4");
    expect(problem('{"a":{"a":{"a":[{}]}}}', LIMITS)).toMatch(/^nesting of more than 4 levels/);
    expect(problem("[".repeat(30_000_000))).toBe("nesting of more than 128 levels at byte 128");
    expect(problem(`${"[".repeat(128)}${"]".repeat(128)}`)).toBe("accepted");
  });

  test("keys and values", () => {
    expect(problem(`[${"1,".repeat(18)}1]`, LIMITS)).toBe("accepted");
    expect(problem(`[${"1,".repeat(19)}1]`, LIMITS)).toMatch(/^more than 20 keys and values/);
    expect(problem('[{"a":1},{"a":1},{"a":1},{"a":1},{"a":1},{"a":1}]', LIMITS)).toBe("accepted");
    expect(problem('[{"a":1},{"a":1},{"a":1},{"a":1},{"a":1},{"a":1},{"a":1}]', LIMITS)).toMatch(
      /^more than 20/,
    );
  });

  test("members of the outermost object", () => {
    expect(problem('{"a":1,"b":1,"c":1,"d":1,"e":1}', LIMITS)).toBe("accepted");
    expect(problem('{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1}', LIMITS)).toMatch(
      /^an object of more than 5 members/,
    );
    expect(problem('[{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1}]', LIMITS)).toBe("accepted");
  });
});

describe("size", () => {
  const size = (text: string) => scanJson(Buffer.from(text)).size;

  test.each([
    ["{}", 0],
    ['["ab"]', 2],
    ['{"key":"value"}', 8],
    ['{"a":{"bc":"def"}}', 6],
    ['["é"]', 2],
    ['["\\n\\"\\u00e9"]', 5],
    ["[1,true,null,-2e5]", 16],
    [`["${"x".repeat(1000)}\\n${"y".repeat(1000)}"]`, 2001],
  ])("%s has %i bytes of text", (text, bytes) => {
    expect(size(text)).toEqual({ text: bytes, files: 0 });
  });

  test.each([...FILE_KEYS])("base64 under %s is a file", (key) => {
    const value = "QUJD".repeat(400);
    expect(size(`[{"${key}":"${value}"}]`)).toEqual({ text: key.length, files: 1 });
    expect(size(`[{"${key}":"data:image/png;base64,${value}"}]`)).toMatchObject({ files: 1 });
    expect(size(`[{"${key}":"${"a word ".repeat(400)}"}]`)).toMatchObject({ files: 0 });
  });
});
