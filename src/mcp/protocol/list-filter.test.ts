import { describe, expect, test } from "vitest";
import { JsonError } from "../../platform/json/scan.ts";
import { McpPolicy, NO_LISTS } from "./item-policy.ts";
import { filterLists } from "./list-filter.ts";

const policy = new McpPolicy({
  tools: { allowed: undefined, denied: ["rm"] },
  prompts: { allowed: ["p"], denied: [] },
  resources: { allowed: ["file:///a/*"], denied: [] },
});

const filter = (text: string): string | undefined =>
  filterLists(Buffer.from(text), policy)?.toString();

const answer = (result: string): string => `{"jsonrpc":"2.0","id":1,"result":${result}}`;

test("everything but the removed items stays byte for byte", () => {
  const rest = '"nextCursor":"a\\u0062", "x" : 12345678901234567890.10';
  const kept = '{ "name":"ls","inputSchema":{"maximum":9223372036854775807,"é":1e400} }';
  expect(filter(answer(`{"tools":[${kept}, {"name":"rm"}],${rest}}`))).toBe(
    answer(`{"tools":[${kept}],${rest}}`),
  );
});

test("an unchanged list is not copied", () => {
  expect(filter(answer('{"tools":[{"name":"ls"}]}'))).toBeUndefined();
  expect(filter(answer('{"content":[]}'))).toBeUndefined();
  expect(
    filter('{"jsonrpc":"2.0","method":"x","params":{"tools":[{"name":"rm"}]}}'),
  ).toBeUndefined();
});

test("a page that becomes empty keeps its cursor", () => {
  expect(filter(answer('{"tools":[{"name":"rm"}],"nextCursor":"2"}'))).toBe(
    answer('{"tools":[],"nextCursor":"2"}'),
  );
});

test("prompts by name, resources by URI", () => {
  expect(filter(answer('{"prompts":[{"name":"p"},{"name":"q"}]}'))).toBe(
    answer('{"prompts":[{"name":"p"}]}'),
  );
  const uri = (text: string) => `{"uri":"${text}","name":"n"}`;
  const list = `{"resources":[${uri("file:///a/b")},${uri("file:///a/../b")}]}`;
  expect(filter(answer(list))).toBe(answer(`{"resources":[${uri("file:///a/b")}]}`));
});

test("items without a name that can be judged are removed", () => {
  for (const item of ["1", "null", '"rm"', "[]", "{}", '{"name":1}', '{"Name":"rm"}'])
    expect(filter(answer(`{"tools":[${item}]}`))).toBe(answer('{"tools":[]}'));
});

test("each message of a batch", () => {
  const denied = answer('{"tools":[{"name":"rm"}]}');
  const empty = answer('{"tools":[]}');
  expect(filter(`[${denied}, ${answer("{}")},${denied}]`)).toBe(
    `[${empty}, ${answer("{}")},${empty}]`,
  );
});

test("a filtered list is for this caller alone", () => {
  expect(filter(answer('{"tools":[],"cacheScope":"public","ttlMs":5}'))).toBe(
    answer('{"tools":[],"cacheScope":"private","ttlMs":5}'),
  );
});

test("kinds without lists are left alone", () => {
  const tools = new McpPolicy({
    tools: { allowed: [], denied: [] },
    prompts: NO_LISTS,
    resources: NO_LISTS,
  });
  const text = answer('{"prompts":[{"name":"q"}]}');
  expect(filterLists(Buffer.from(text), tools)).toBeUndefined();
});

describe("what cannot be read with certainty is not forwarded", () => {
  test.each([
    ["two results", '{"id":1,"result":{},"result":{"tools":[{"name":"rm"}]}}'],
    ["two lists", answer('{"tools":[],"tools":[{"name":"rm"}]}')],
    ["Tools beside tools", answer('{"tools":[],"Tools":[{"name":"rm"}]}')],
    ["two names", answer('{"tools":[{"name":"ls","name":"rm"}]}')],
    ["a byte order mark", `\uFEFF${answer('{"tools":[{"name":"rm"}]}')}`],
    ["a text behind", `${answer("{}")}${answer('{"tools":[{"name":"rm"}]}')}`],
    ["cut off", answer('{"tools":[{"name":"rm"}').slice(0, -1)],
  ])("%s", (_, text) => {
    expect(() => filter(text)).toThrow(JsonError);
  });

  test("an escaped key is read", () => {
    expect(filter(answer(String.raw`{"t\u006fols":[{"n\u0061me":"rm"}]}`))).toBe(
      answer(String.raw`{"t\u006fols":[]}`),
    );
  });
});
