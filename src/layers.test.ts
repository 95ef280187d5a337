/**
 * Dependencies point one way: a folder imports only from folders above it in this list, and from
 * itself.
 */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

/** Lowest first. Folders on one line do not import each other. */
const LAYERS: readonly (readonly string[])[] = [
  ["platform"],
  ["kubernetes"],
  ["resources"],
  ["sources"],
  ["policy"],
  ["envoy"],
  ["compile"],
  ["audit", "interception", "limits", "mcp/protocol", "pricing"],
  ["providers"],
  ["access"],
  ["guard"],
  ["mcp"],
  ["binding", "llm"],
  ["gateway", "mock"],
  ["host"],
  ["up"],
  ["run", "pod"],
  ["controller"],
  ["cli"],
  ["bin"],
];

const root = import.meta.dirname;

function sources(dir: string): string[] {
  return (
    readdirSync(path.join(root, dir), { recursive: true, encoding: "utf8" })
      // Tests may import more, e.g. test compiled configuration through its encoder.
      .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
      .map((file) => path.join(dir, file))
  );
}

/** Folders inside another one that are a layer by themselves. */
const NESTED = LAYERS.flat().filter((folder) => folder.includes("/"));

/** Returns the folder of {@link LAYERS} that holds a module. */
function folderOf(module: string): string {
  const name = module.split(path.sep).join("/");
  return NESTED.find((folder) => name.startsWith(`${folder}/`)) ?? (name.split("/")[0] as string);
}

const layerOf = (folder: string): number => LAYERS.findIndex((layer) => layer.includes(folder));

/** Folder and imported folder of each import that crosses folders. */
function crossings(file: string): { readonly from: string; readonly to: string }[] {
  const from = folderOf(file);
  const text = readFileSync(path.join(root, file), "utf8");
  return [...text.matchAll(/from "(\.[^"]+)"/g)]
    .map((match) => path.relative(root, path.resolve(root, path.dirname(file), match[1] as string)))
    .map((target) => ({ from, to: folderOf(target) }))
    .filter(({ to }) => to !== from);
}

test("every folder of src has its layer", () => {
  const folders = readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !["gen", "testdata"].includes(entry.name))
    .map((entry) => entry.name);
  expect(folders.filter((folder) => layerOf(folder) < 0)).toEqual([]);
});

test("imports point down the layers", () => {
  const files = LAYERS.flat().flatMap(sources);
  expect(files.length).toBeGreaterThan(50);
  const wrong = files.flatMap((file) =>
    crossings(file)
      .filter(({ from, to }) => layerOf(to) >= layerOf(from))
      .map(({ to }) => `${file} imports from ${to}`),
  );
  expect(wrong).toEqual([]);
});
