import { expect, test } from "vitest";
import { FrameError, parseFrame } from "./frame.ts";
import { McpPolicy, NO_LISTS } from "./item-policy.ts";
import { judgeFrame } from "./judge.ts";

const policy = new McpPolicy({
  tools: { allowed: undefined, denied: ["rm"] },
  prompts: { allowed: ["p"], denied: [] },
  resources: { allowed: undefined, denied: ["x:*"] },
});

const judge = (...messages: readonly string[]) => {
  const [first = "", ...more] = messages.map(
    (message, id) => `{"jsonrpc":"2.0","id":${id},"method":${message}}`,
  );
  const text = more.length === 0 ? first : `[${[first, ...more].join(",")}]`;
  return judgeFrame(parseFrame(Buffer.from(text)), policy);
};

test.each([
  ['"tools/call","params":{"name":"ls"}', "tools", "ls", false],
  ['"tools/call","params":{"name":"rm"}', "tools", "rm", true],
  ['"prompts/get","params":{"name":"p"}', "prompts", "p", false],
  ['"prompts/get","params":{"name":"q"}', "prompts", "q", true],
  ['"resources/read","params":{"uri":"y:1"}', "resources", "y:1", false],
  ['"resources/read","params":{"uri":"x:1"}', "resources", "x:1", true],
  ['"resources/subscribe","params":{"uri":"x:1"}', "resources", "x:1", true],
  ['"resources/unsubscribe","params":{"uri":"x:1"}', "resources", "x:1", true],
  ['"completion/complete","params":{"ref":{"type":"ref/prompt","name":"q"}}', "prompts", "q", true],
  [
    '"completion/complete","params":{"ref":{"type":"ref/resource","uri":"x:1"}}',
    "resources",
    "x:1",
    true,
  ],
  [
    '"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["x:1"]}}',
    "resources",
    "x:1",
    true,
  ],
])("%s", (message, kind, name, isDenied) => {
  const { used, denied } = judge(message);
  expect(used).toMatchObject([{ kind, name }]);
  expect(denied === undefined).toBe(!isDenied);
});

test("one denied call refuses a batch", () => {
  const { denied, used } = judge(
    '"tools/call","params":{"name":"ls"}',
    '"tools/call","params":{"name":"rm"}',
  );
  expect(denied).toMatchObject({ name: "rm", denial: "denied" });
  expect(used).toHaveLength(2);
});

test("lists are filtered where a list of the policy exists", () => {
  expect(judge('"tools/list"', '"prompts/list"', '"ping"').lists).toEqual(["tools", "prompts"]);
  const open = new McpPolicy({ tools: NO_LISTS, prompts: NO_LISTS, resources: NO_LISTS });
  const frame = parseFrame(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/list"}'));
  expect(judgeFrame(frame, open).lists).toEqual([]);
});

test.each([
  '"tools/call"',
  '"tools/call","params":{"name":["rm"]}',
  '"tools/call","params":{"name":null}',
  '"resources/read","params":{"name":"x:1"}',
  '"completion/complete","params":{"ref":{"type":"ref/tool","name":"rm"}}',
  '"completion/complete","params":{}',
  '"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":"x:1"}}',
])("%s names no item", (message) => {
  expect(() => judge(message)).toThrow(FrameError);
});

test("methods of Object's prototype are no methods of ours", () => {
  expect(judge('"constructor"', '"toString"', '"__proto__"').used).toEqual([]);
});
