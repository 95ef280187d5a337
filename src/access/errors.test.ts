import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { type ErrorCode, ERRORS, publicError } from "./errors.ts";
import { Gateway, provider } from "../llm/testing.ts";
import { chat } from "../llm/testing-samples.ts";

const PAGE = readFileSync(path.resolve(import.meta.dirname, "../../docs/errors.md"), "utf8");

describe("docs/errors.md", () => {
  test("has the table's codes, statuses and meanings, in its order", () => {
    const rows = [...PAGE.matchAll(/^\| `(\w+)` \| (\d+) \| (.+) \|$/gm)].map(
      ([, code, status, meaning]) => [code, Number(status), meaning],
    );
    expect(rows).toEqual(
      Object.entries(ERRORS).map(([code, { status, meaning }]) => [code, status, meaning]),
    );
  });

  const examples = [...PAGE.matchAll(/^```json\n(.+)\n```$/gm)].map((match) => match[1] as string);

  test.each([
    ["OpenAI", 0, "/v1/chat/completions", chat("gone/m")],
    ["Anthropic", 1, "/v1/messages", { ...chat("gone/m"), max_tokens: 1 }],
    ["Gemini", 2, "/v1beta/models/gone%2Fm:generateContent", { contents: [] }],
  ])("shows what %s's clients get", (_name, index, route, body) => {
    const refused = new Gateway(provider("openai")).trip().request({ path: route, body })
      .exchange.responded;
    expect(refused.status).toBe(404);
    expect(refused.body).toBe(examples[index]);
  });
});

test("every code that the gateway writes stands in the table", () => {
  const folder = path.resolve(import.meta.dirname, "../llm");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (file) => file.endsWith(".ts") && !file.endsWith(".test.ts") && !file.includes("testdata"),
  );
  const written = files.flatMap((file) =>
    [
      ...readFileSync(path.join(folder, file), "utf8").matchAll(
        /\bcode: "((?:upstream|stream|gateway)_\w+)"/g,
      ),
    ].map((match) => match[1] as string),
  );
  expect(written).not.toEqual([]);
  expect([...new Set(written)].filter((code) => !Object.hasOwn(ERRORS, code))).toEqual([]);
});

test("codes are words, statuses are errors, meanings are sentences", () => {
  for (const [code, { status, meaning }] of Object.entries(ERRORS)) {
    expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(600);
    expect(meaning).toMatch(/^[A-Z].*\.$/);
  }
});

test("an error shows its code, its status, and a param where there is one", () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    expect(publicError(code, "words")).toStrictEqual({
      status: ERRORS[code].status,
      code,
      message: "words",
    });
  }
  expect(publicError("model_not_found", "words", "model")).toStrictEqual({
    status: 404,
    code: "model_not_found",
    message: "words",
    param: "model",
  });
});
