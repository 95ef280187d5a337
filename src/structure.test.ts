/** The structure of the source that no linter checks. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const ROOT = path.resolve(import.meta.dirname, "..");

const FILES = ["src", "e2e", "bench", "fuzz", "scripts"].flatMap((folder) =>
  readdirSync(path.join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.startsWith("gen/"))
    .map((file) => path.join(folder, file)),
);

const IMPORT = /(?:from|import|import\()\s*"(\.{1,2}\/[^"]+\.ts)"/g;

/** Modules that each module imports, for types too. */
const IMPORTS: ReadonlyMap<string, readonly string[]> = new Map(
  FILES.map((file) => [
    file,
    [...readFileSync(path.join(ROOT, file), "utf8").matchAll(IMPORT)].map(([, specifier]) =>
      path.normalize(path.join(path.dirname(file), specifier ?? "")),
    ),
  ]),
);

/** Returns one circle of imports that begins at a module, or undefined. */
function circleFrom(
  file: string,
  imports: ReadonlyMap<string, readonly string[]>,
  done: Set<string>,
  above: readonly string[] = [],
): readonly string[] | undefined {
  if (above.includes(file)) return [...above.slice(above.indexOf(file)), file];
  if (done.has(file)) return undefined;
  for (const imported of imports.get(file) ?? []) {
    const circle = circleFrom(imported, imports, done, [...above, file]);
    if (circle !== undefined) return circle;
  }
  done.add(file);
  return undefined;
}

test("no module imports itself, directly or through others, not even for types", () => {
  const done = new Set<string>();
  expect(FILES.length).toBeGreaterThan(500);
  expect(FILES.map((file) => circleFrom(file, IMPORTS, done)).filter(Boolean)).toEqual([]);
});

const EXPORTED_TYPE = /^export (?:abstract )?(?:interface|type|class|enum) (\w+)/gm;

test("no two modules of src export types of one name", () => {
  const modules = new Map<string, string[]>();
  for (const file of FILES.filter(
    (name) => name.startsWith("src/") && !name.endsWith(".test.ts"),
  )) {
    for (const [, name = ""] of readFileSync(path.join(ROOT, file), "utf8").matchAll(EXPORTED_TYPE))
      modules.set(name, [...(modules.get(name) ?? []), file]);
  }
  expect(modules.size).toBeGreaterThan(300);
  expect([...modules].filter(([, files]) => files.length > 1)).toEqual([]);
});

/** Texts for readers: the docs, and the comments of each module. */
const TEXTS: readonly (readonly [file: string, text: string])[] = [
  ...["README.md", ...markdownOf("docs")].map(
    (file) => [file, readFileSync(path.join(ROOT, file), "utf8")] as const,
  ),
  ...FILES.map((file) => {
    const text = readFileSync(path.join(ROOT, file), "utf8");
    return [file, [...text.matchAll(/\/\*[\s\S]*?\*\/|\/\/.*/g)].join("\n")] as const;
  }),
];

function markdownOf(folder: string): string[] {
  return readdirSync(path.join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".md"))
    .map((file) => path.join(folder, file));
}

const MODULE = /(?<![\w./@-])((?:[\w-]+\/)*[\w-]+\.(?:test\.)?ts)\b/g;

/** A module may be named by its path from the root, from src/, from its folder, or as a plugin's. */
function exists(module: string, namedIn: string): boolean {
  const folders = ["", "src", "src/providers", "src/providers/example", path.dirname(namedIn)];
  return folders.some((folder) => existsSync(path.join(ROOT, folder, module)));
}

test("modules that docs and comments name exist", () => {
  const missing = TEXTS.flatMap(([file, text]) =>
    [...text.matchAll(MODULE)]
      .map(([, module]) => module ?? "")
      .filter((module) => !exists(module, file))
      .map((module) => `${file}: ${module}`),
  );
  expect(missing).toEqual([]);
});

test("a circle is found", () => {
  const imports = new Map([
    ["a", ["b"]],
    ["b", ["c", "d"]],
    ["c", []],
    ["d", ["b"]],
  ]);
  expect(circleFrom("a", imports, new Set())).toEqual(["b", "d", "b"]);
});
