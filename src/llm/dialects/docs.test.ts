import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ANTHROPIC_DROPS } from "./anthropic/serialise-request.ts";
import { GEMINI_DROPS } from "./gemini/serialise-request.ts";
import { OPENAI_DROPS } from "./openai/serialise-request.ts";
import { RESPONSES_DROPS } from "./responses/parse-request.ts";

const PAGE = readFileSync(new URL("../../../docs/translation.md", import.meta.url), "utf8");
const DROPPED = PAGE.split("## Dropped")[1]?.split("## ")[0] ?? "";

test.each([
  ["openai", OPENAI_DROPS],
  ["anthropic", ANTHROPIC_DROPS],
  ["gemini", GEMINI_DROPS],
  ["all", RESPONSES_DROPS],
])("every field dropped towards %s stands in docs/translation.md", (target, table) => {
  const rows = DROPPED.split("\n").filter((row) => row.split("|")[2]?.includes(target));
  for (const field of Object.keys(table))
    expect(rows.filter((row) => row.includes(`\`${field}\``))).not.toEqual([]);
});
