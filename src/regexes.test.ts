/**
 * None of our regular expressions takes more than linear time for any input. recheck proves it or
 * finds a slow text (https://makenowjust-labs.github.io/recheck/).
 */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { check } from "recheck";
import { expect, test } from "vitest";
import { parseAst } from "vite";

interface Found {
  readonly file: string;
  readonly pattern: string;
  readonly flags: string;
}

/** Without a quantifier that has no upper bound, the work for each position is bounded. */
const UNBOUNDED = /[*+]|\{\d{1,9},\}/;

function findAll(): Found[] {
  const root = import.meta.dirname;
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.startsWith("gen/"))
    .filter((file) => !file.endsWith(".test.ts"))
    .flatMap((file) =>
      literals(parseAst(readFileSync(path.join(root, file), "utf8"), { lang: "ts" })).map(
        (literal) => ({ file, ...literal }),
      ),
    )
    .filter(({ pattern }) => UNBOUNDED.test(pattern));
}

function literals(node: unknown): { readonly pattern: string; readonly flags: string }[] {
  if (Array.isArray(node)) return node.flatMap(literals);
  if (typeof node !== "object" || node === null) return [];
  const { type, regex } = node as { type?: unknown; regex?: { pattern: string; flags: string } };
  if (type === "Literal" && regex !== undefined) return [regex];
  return Object.values(node).flatMap(literals);
}

/** Steps alone decide: with a limit of time, a busy machine would make an expression slow. */
const BY_STEPS = {
  timeout: null,
  attackTimeout: null,
  incubationTimeout: null,
  seedingTimeout: null,
  randomSeed: 1,
} as const;

test("every regular expression takes linear time", { timeout: 900_000 }, async () => {
  const found = findAll();
  expect(found.length).toBeGreaterThan(100);
  const slow: string[] = [];
  for (const { file, pattern, flags } of found) {
    const verdict = await check(pattern, flags, BY_STEPS);
    if (verdict.status === "safe") continue;
    const attack = verdict.status === "vulnerable" ? verdict.attack.pattern : "no verdict";
    slow.push(`${file}: /${pattern}/${flags} is slow for ${attack}`);
  }
  expect(slow).toEqual([]);
});

test("an expression that is slow is found", async () => {
  expect((await check("^(?:a+)+$", "", BY_STEPS)).status).toBe("vulnerable");
  expect((await check("\\s+$", "", BY_STEPS)).status).toBe("vulnerable");
  // recheck tries texts where it has no proof: expressions that look behind.
  expect((await check("(?<=x)(?:a+)+$", "", BY_STEPS)).status).toBe("vulnerable");
  expect(literals(parseAst("const x: RegExp = /a+$/u;", { lang: "ts" }))).toEqual([
    { pattern: "a+$", flags: "u" },
  ]);
});
