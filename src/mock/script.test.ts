import { describe, expect, test } from "vitest";
import { dialects } from "../llm/dialects/registry.ts";
import { mockAnswer } from "./answer.ts";
import { parseScript, type Script } from "./script.ts";

const SCRIPT = parseScript(
  `
- when: Write the list
  steps:
    - text: I begin.
      calls:
        - bash: { command: "seq 3 > list" }
          shell: { command: [sh, -c, "seq 3 > list"] }
    - calls:
        - bash: { command: cat list }
        - bash: { command: rm list }
    - text: Done.
- when: ""
  steps:
    - text: Hello from the script.
`,
  "script.yaml",
);

const user = (content: string) => ({ role: "user", content });
const tools = ["shell", "bash"].map((name) => ({ type: "function", function: { name } }));
/** The model's turn and the results of its calls, as a client replays them. */
const turn = (...ids: string[]) => [
  {
    role: "assistant",
    tool_calls: ids.map((id) => ({
      id,
      type: "function",
      function: { name: "bash", arguments: "{}" },
    })),
  },
  ...ids.map((id) => ({ role: "tool", tool_call_id: id, content: "ok" })),
];

function play(messages: object[], declared: object[] = tools, script: Script = SCRIPT) {
  const request = dialects.openai.parseRequest({ messages, tools: declared });
  const { text, toolCalls } = mockAnswer(request, script);
  return [text, ...toolCalls.map((call) => `${call.id} ${call.name} ${call.arguments}`)];
}

describe("a script", () => {
  test("is played step by step, with the first tool that the request declares", () => {
    const asked = user("Write the list, please.");
    expect(play([asked])).toEqual(["I begin.", `call_mock_0_0 bash {"command":"seq 3 > list"}`]);
    expect(play([asked, ...turn("a")])).toEqual([
      "",
      `call_mock_1_0 bash {"command":"cat list"}`,
      `call_mock_1_1 bash {"command":"rm list"}`,
    ]);
    expect(play([asked, ...turn("a"), ...turn("b", "c")])).toEqual(["Done."]);
    expect(play([asked], tools.slice(0, 1))).toEqual([
      "I begin.",
      `call_mock_0_0 shell {"command":["sh","-c","seq 3 > list"]}`,
    ]);
  });

  test("begins at the text that it waits for, also again", () => {
    const asked = user("Write the list");
    const before = [user("Hi"), { role: "assistant", content: "Hello" }];
    expect(play([...before, asked])[0]).toBe("I begin.");
    expect(play([asked, ...turn("a"), { role: "assistant", content: "Done." }, asked])[0]).toBe(
      "I begin.",
    );
  });

  test("of the conversation that began last is played", () => {
    const two = parseScript(
      `[{ when: one, steps: [{ text: First. }] }, { when: two, steps: [{ text: Second. }] }]`,
      "s.yaml",
    );
    const first = [user("one"), { role: "assistant", content: "First." }];
    expect(play([user("one")], [], two)).toEqual(["First."]);
    expect(play([...first, user("two")], [], two)).toEqual(["Second."]);
    expect(play([...first, user("three")], [], two)).toEqual(["You said: three"]);
    expect(play([user("one and two")], [], two)).toEqual(["First."]);
  });

  test("does not begin at a tool's result or at the model's own words", () => {
    const quoted = [
      user("Hi"),
      ...turn("a").slice(0, 1),
      { role: "tool", tool_call_id: "a", content: "Write the list" },
    ];
    expect(play(quoted, [])).toEqual(["The tool said: Write the list"]);
    expect(play([user("Hi"), { role: "assistant", content: "Write the list" }])).not.toContain(
      "I begin.",
    );
  });

  test("of another conversation is played where the first does not apply", () => {
    expect(play([user("Hi")])).toEqual(["Hello from the script."]);
  });

  test("echoes after its last step, and where its tools are not declared", () => {
    const asked = user("Write the list");
    expect(play([asked], [])).toEqual(["You said: Write the list"]);
    const played = [asked, ...turn("a"), ...turn("b"), { role: "assistant", content: "Done." }];
    expect(play([...played, user("Thanks")], [])).toEqual(["You said: Thanks"]);
  });

  test("counts turns that a dialect splits as one", () => {
    const asked = user("Write the list");
    const split = [{ role: "assistant", content: "I begin." }, ...turn("a")];
    expect(play([asked, ...split])[1]).toContain("cat list");
  });
});

describe("a script with a mistake", () => {
  test.each([
    ["", "script.yaml: a script of the mock model is one YAML list of conversations"],
    ["a: [", "script.yaml:1: "],
    ["steps: []", "script.yaml:1: the script: "],
    ["- when: x", "script.yaml:1: 0.steps: "],
    ["- steps: []", "script.yaml:1: 0.steps: "],
    ["- steps:\n    - say: hi", "script.yaml:2: 0.steps.0: "],
    ["- steps:\n    - text: a\n      calls: [{}]", "script.yaml:3: 0.steps.0.calls.0: "],
    ["- steps:\n    - calls:\n      - bash: ls", "script.yaml:3: 0.steps.0.calls.0.bash: "],
    ["- steps: [{}]\n---\n- steps: [{}]", "script.yaml: a script"],
  ])("%j says where", (text, message) => {
    expect(() => parseScript(text, "script.yaml")).toThrow(message);
  });
});
