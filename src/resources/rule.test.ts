import { describe, expect, test } from "vitest";
import * as z from "zod";
import { inputSchema } from "./crd.ts";
import { celList, celString, countGiven, withRules } from "./rule.ts";

const schema = withRules(z.strictObject({ min: z.int(), max: z.int() }), [
  {
    test: ({ min, max }) => min <= max,
    cel: "self.min <= self.max",
    field: "max",
    message: "must not be less than min",
  },
  {
    test: ({ min }) => min !== 13,
    cel: "self.min != 13",
    message: { of: ({ min }) => `is unlucky with ${min}`, cel: "'is unlucky with 13'" },
  },
]);

describe("withRules", () => {
  test("the parser tests them", () => {
    expect(schema.safeParse({ min: 1, max: 2 }).success).toBe(true);
    expect(schema.safeParse({ min: 13, max: 2 }).error?.issues).toMatchObject([
      { path: ["max"], message: "must not be less than min" },
      { path: [], message: "is unlucky with 13" },
    ]);
  });

  test("the CRD has them", () =>
    expect(inputSchema(schema)["x-kubernetes-validations"]).toEqual([
      {
        rule: "self.min <= self.max",
        message: "must not be less than min",
        fieldPath: ".max",
      },
      { rule: "self.min != 13", messageExpression: "'is unlucky with 13'" },
    ]));

  test("a description and a default keep them", () =>
    expect(
      inputSchema(schema.prefault({ min: 1, max: 2 }).describe("Bounds."))[
        "x-kubernetes-validations"
      ],
    ).toHaveLength(2));
});

test("texts are quoted for CEL", () => {
  expect(celString(String.raw`it's \s`)).toBe(String.raw`'it\'s \\s'`);
  expect(celList(["a", "b"])).toBe("['a', 'b']");
  expect(countGiven(["a", "b"])).toBe("[has(self.a), has(self.b)].filter(given, given).size()");
});
