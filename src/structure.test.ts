/** The structure of the source that no linter checks. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { parseAst } from "vite";
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

/**
 * A module may be named by its path from the root, from src/, from its folder, or as a plugin's.
 */
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

/** Maximum number of columns of a line. The formatter keeps to it where it can. */
const COLUMNS = 100;

/**
 * Texts of this length, and regular expressions, may make a line longer: no break improves them.
 */
const LONG_TOKEN = 60;

test(`no line has more than ${COLUMNS} columns, except titles of tests and texts without breaks`, () => {
  const long = FILES.flatMap((file) => {
    const source = readFileSync(path.join(ROOT, file), "utf8");
    const lines = source.split("\n");
    const numbers = lines.flatMap((line, index) => (line.length > COLUMNS ? [index + 1] : []));
    if (numbers.length === 0) return [];
    const excused = excusedLines(source);
    return numbers.filter((number) => !excused.has(number)).map((number) => `${file}:${number}`);
  });
  expect(long).toEqual([]);
});

interface AstNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [member: string]: unknown;
}

/** Returns the numbers of the lines with a token that cannot be divided between lines. */
function excusedLines(source: string): ReadonlySet<number> {
  const excused = new Set<number>();
  const lineOf = (offset: number): number => source.slice(0, offset).split("\n").length;
  const excuse = ({ start, end }: AstNode): void => {
    for (let line = lineOf(start); line <= lineOf(end); line += 1) excused.add(line);
  };
  const visit = (node: AstNode): void => {
    const token = indivisible(node, source);
    if (token !== undefined) excuse(token);
    for (const value of Object.values(node)) {
      for (const child of Array.isArray(value) ? (value as unknown[]) : [value]) {
        if (isAstNode(child)) visit(child);
      }
    }
  };
  visit(parseAst(source, { lang: "ts" }) as unknown as AstNode);
  // A link in a comment.
  for (const [index, line] of source.split("\n").entries()) {
    if (/^\s*(?:\*|\/\/)\s*https:\S+$/.test(line)) excused.add(index + 1);
  }
  return excused;
}

/** Returns a token, the node itself or a test's title, that cannot be divided between lines. */
function indivisible(node: AstNode, source: string): AstNode | undefined {
  const text = source.slice(node.start, node.end);
  if (node.type === "TemplateLiteral") return text.includes("\n") ? node : undefined;
  if (node.type === "Literal") {
    return "regex" in node || (text.length >= LONG_TOKEN && !/\s/.test(text)) ? node : undefined;
  }
  if (node.type !== "CallExpression" || !/^(?:test|describe|it)\b/.test(text)) return undefined;
  const [title] = node["arguments"] as AstNode[];
  return title !== undefined && title.type.endsWith("Literal") ? title : undefined;
}

function isAstNode(value: unknown): value is AstNode {
  return typeof value === "object" && value !== null && typeof (value as AstNode).type === "string";
}
