import { describe, expect, test } from "vitest";
import { parseFrame } from "./frame.ts";
import { mismatch } from "./mirror-headers.ts";

const STATELESS = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}';

function problem(
  method: string,
  params: string,
  headers: Readonly<Record<string, string>>,
): string | undefined {
  const text = `{"jsonrpc":"2.0","id":1,"method":"${method}","params":{${params}}}`;
  return mismatch(parseFrame(Buffer.from(text)), new Map(Object.entries(headers)));
}

const VERSION = { "mcp-protocol-version": "2026-07-28" };
const CALL = { ...VERSION, "mcp-method": "tools/call", "mcp-name": "ls" };

test("headers that say what the body says", () => {
  expect(problem("tools/call", `"name":"ls",${STATELESS}`, CALL)).toBeUndefined();
  const list = { ...VERSION, "mcp-method": "tools/list" };
  expect(problem("tools/list", STATELESS, list)).toBeUndefined();
  expect(problem("tools/call", '"name":"ls"', {})).toBeUndefined();
  expect(
    problem("tools/call", '"name":"ls"', { "mcp-protocol-version": "2025-11-25" }),
  ).toBeUndefined();
});

test("a name that no header can hold is encoded", () => {
  const name = `=?base64?${Buffer.from("lös").toString("base64")}?=`;
  expect(
    problem("tools/call", `"name":"lös",${STATELESS}`, { ...CALL, "mcp-name": name }),
  ).toBeUndefined();
});

describe("headers that differ", () => {
  test.each([
    ["another name", "tools/call", `"name":"rm",${STATELESS}`, CALL],
    ["another case", "tools/call", `"name":"LS",${STATELESS}`, CALL],
    ["two names", "tools/call", `"name":"ls",${STATELESS}`, { ...CALL, "mcp-name": "ls, rm" }],
    [
      "another method",
      "tools/call",
      `"name":"ls",${STATELESS}`,
      { ...CALL, "mcp-method": "tools/list" },
    ],
    [
      "no name",
      "tools/call",
      `"name":"ls",${STATELESS}`,
      { ...VERSION, "mcp-method": "tools/call" },
    ],
    ["no method", "tools/call", `"name":"ls",${STATELESS}`, { ...VERSION, "mcp-name": "ls" }],
    [
      "a name without a method that has one",
      "tools/list",
      STATELESS,
      { ...CALL, "mcp-method": "tools/list" },
    ],
    [
      "no version",
      "tools/call",
      `"name":"ls",${STATELESS}`,
      { ...CALL, "mcp-protocol-version": "2025-11-25" },
    ],
    ["an older revision, another name", "tools/call", '"name":"rm"', { "mcp-name": "ls" }],
    ["an older revision, another method", "tools/call", '"name":"rm"', { "mcp-method": "ping" }],
    [
      "base64 that is not canonical",
      "tools/call",
      `"name":"ls",${STATELESS}`,
      { ...CALL, "mcp-name": "=?base64?bHN=?=" },
    ],
    [
      "a plain value that looks encoded",
      "tools/call",
      `"name":"=?base64?bHM=?=",${STATELESS}`,
      { ...CALL, "mcp-name": "=?base64?bHM=?=" },
    ],
    [
      "another URI",
      "resources/read",
      `"uri":"a:b",${STATELESS}`,
      { ...CALL, "mcp-method": "resources/read", "mcp-name": "a:c" },
    ],
  ])("%s", (_, method, params, headers) => {
    expect(problem(method, params, headers)).toMatch(/header/);
  });

  test("a batch has no mirror headers", () => {
    const frame = parseFrame(Buffer.from('[{"jsonrpc":"2.0","id":1,"method":"ping"}]'));
    expect(mismatch(frame, new Map([["mcp-method", "ping"]]))).toMatch(/single/);
    expect(mismatch(frame, new Map())).toBeUndefined();
  });
});
