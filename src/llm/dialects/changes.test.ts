import { describe, expect, test } from "vitest";
import { ChangeLog, MAX_NAMED } from "./changes.ts";
import { BadRequestError } from "./dialect.ts";
import { Fields } from "./fields.ts";
import { settleLeftovers } from "./leftovers.ts";
import type { Leftover } from "./model.ts";

describe("a hint that the target cannot express", () => {
  test("is dropped in lenient mode, once", () => {
    const changes = new ChangeLog("lenient");
    changes.lose("top_k", "has no equivalent at OpenAI");
    changes.lose("top_k", "has no equivalent at OpenAI");
    expect(changes.dropped).toEqual(["top_k"]);
    expect(changes.notes).toEqual(["top_k dropped: it has no equivalent at OpenAI"]);
  });

  test("is refused in strict mode", () => {
    const changes = new ChangeLog("strict");
    expect(() => changes.lose("top_k", "has no equivalent at OpenAI")).toThrow(BadRequestError);
    expect(changes.dropped).toEqual([]);
  });
});

test("a body with very many unknown fields names some of them, and counts the others", () => {
  const changes = new ChangeLog("lenient");
  const leftovers = Array.from({ length: 1_000 }, (_, index) => ({
    param: `field${index}`,
    essential: false,
  }));
  settleLeftovers(leftovers, {}, "Gemini", changes);
  expect(changes.dropped).toHaveLength(MAX_NAMED + 1);
  expect(changes.dropped.at(-1)).toBe("...");
  expect(changes.notes).toHaveLength(MAX_NAMED + 1);
  expect(changes.notes.at(-1)).toBe(`${1_000 - MAX_NAMED} more fields dropped`);
  const essential = { param: "functions", essential: true };
  expect(() => settleLeftovers([essential], {}, "Gemini", changes)).toThrow("functions");
});

test("a field with a very long name is named in short", () => {
  const changes = new ChangeLog("lenient");
  changes.lose(`messages[0].${"x".repeat(1_000_000)}`, "has no equivalent at OpenAI");
  expect(changes.dropped).toEqual([`messages[0].${"x".repeat(244)}...`]);
  expect(changes.notes.join("").length).toBeLessThan(400);
});

test("a name that every object has is no field of the table", () => {
  for (const param of ["constructor", "toString", "__proto__", "hasOwnProperty"]) {
    const leftovers = [{ param, essential: false }];
    expect(() => settleLeftovers(leftovers, {}, "Gemini", new ChangeLog("strict"))).toThrow(
      `${param} has no equivalent at Gemini`,
    );
  }
});

describe("fields without an equivalent", () => {
  const leftovers: readonly Leftover[] = [
    { param: "messages[3].name", essential: false },
    { param: "mood", essential: false },
  ];
  const table = { "messages[].name": "it is a label" };

  test("are dropped in lenient mode", () => {
    const changes = new ChangeLog("lenient");
    settleLeftovers(leftovers, table, "Gemini", changes);
    expect(changes.dropped).toEqual(["messages[3].name", "mood"]);
    expect(changes.notes[0]).toBe("messages[3].name dropped: it is a label");
  });

  test("are refused in strict mode, unless the table has them", () => {
    const changes = new ChangeLog("strict");
    expect(() => settleLeftovers(leftovers, table, "Gemini", changes)).toThrow(
      "mood has no equivalent at Gemini",
    );
    expect(changes.dropped).toEqual(["messages[3].name"]);
  });

  test("are refused in each mode if they change the meaning of the conversation", () => {
    for (const mode of ["lenient", "strict"] as const) {
      expect(() =>
        settleLeftovers(
          [{ param: "functions", essential: true }],
          table,
          "Gemini",
          new ChangeLog(mode),
        ),
      ).toThrow("functions has no equivalent at Gemini");
    }
  });
});

describe("values that ask for nothing", () => {
  const rest = (value: unknown, essential?: ReadonlySet<string> | "all"): Leftover[] => {
    const found: Leftover[] = [];
    new Fields({ a: value }, "").rest(found, essential);
    return found;
  };

  test.each([null, false, "", [], {}])("%j is no field", (value) => {
    expect(rest(value)).toEqual([]);
  });

  test.each([0, true, "x", [0], { b: null }])("%j is one", (value) => {
    expect(rest(value)).toEqual([{ param: "a", essential: false }]);
  });

  test("an empty object names a tool or a form of the answer", () => {
    const found = [{ param: "a", essential: true }];
    expect(rest({}, "all")).toEqual(found);
    expect(rest({}, new Set(["a"]))).toEqual(found);
    expect(rest([], "all")).toEqual([]);
    expect(rest({}, new Set(["b"]))).toEqual([]);
  });
});
