import { describe, expect, test } from "vitest";
import { listDialect, listModels } from "./models-list.ts";
import { agent, headers, provider } from "../testing.ts";

const tester = agent(provider("openai"), provider("anthropic"));

describe("who asks", () => {
  const anthropic = headers({ "anthropic-version": "2023-06-01" });

  test.each([
    ["/v1/models", headers({}), "openai"],
    ["/v1/models", anthropic, "anthropic"],
    ["/v1/models/openai/m", headers({}), "openai"],
    ["/v1beta/models", headers({}), "gemini"],
    ["/v1beta/models", anthropic, "gemini"],
  ] as const)("%s", (path, values, dialect) => {
    expect(listDialect(path, values)).toBe(dialect);
  });
});

describe("the list", () => {
  test("in OpenAI's shape", () => {
    expect(listModels(tester, "openai", "")).toEqual({
      object: "list",
      data: [
        { id: "openai/m", object: "model", created: 1_700_000_000, owned_by: "openai" },
        { id: "anthropic/m", object: "model", created: 1_700_000_000, owned_by: "anthropic" },
      ],
    });
  });

  test("in Anthropic's shape", () => {
    expect(listModels(tester, "anthropic", "")).toMatchObject({
      data: [
        {
          type: "model",
          id: "openai/m",
          display_name: "openai/m",
          created_at: "2023-11-14T22:13:20.000Z",
        },
        { id: "anthropic/m" },
      ],
      has_more: false,
      first_id: "openai/m",
      last_id: "anthropic/m",
    });
    expect(listModels(agent(), "anthropic", "")).toEqual({
      data: [],
      has_more: false,
      first_id: null,
      last_id: null,
    });
  });

  test("in Gemini's shape", () => {
    expect(listModels(tester, "gemini", "")).toMatchObject({
      models: [{ name: "models/openai/m" }, { name: "models/anthropic/m" }],
    });
  });

  test("does not show a key", () => {
    for (const dialect of ["openai", "anthropic", "gemini"] as const) {
      expect(JSON.stringify(listModels(tester, dialect, ""))).not.toContain("sk-secret");
    }
  });
});

describe("one model", () => {
  test.each([
    ["openai", { id: "anthropic/m", object: "model" }],
    ["anthropic", { id: "anthropic/m", type: "model" }],
    ["gemini", { name: "models/anthropic/m" }],
  ] as const)("in the shape of %s", (dialect, shape) => {
    expect(listModels(tester, dialect, "anthropic/m")).toMatchObject(shape);
  });

  test.each(["gone/m", "secret-model", "both", "m"])("%s is none of the agent's", (name) => {
    expect(listModels(tester, "openai", name)).toBeUndefined();
  });
});
