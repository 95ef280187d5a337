/**
 * Makes, from the definitions of Envoy's messages that the npm package @grpc/grpc-js-xds ships:
 *
 * - src/gen/envoy.binpb, a descriptor set of the messages that we send and read;
 * - src/gen/types, the TypeScript types of their JSON form (see buf.gen.yaml);
 * - src/gen/messages.ts, a map of the full names of messages to those types, and the types whose
 *   short name is unique.
 *
 * Offline: no remote buf module or plugin is asked for.
 *
 * The needed files are staged first, because the package's copy of protoc-gen-validate predates one
 * option (`ignore_empty`) that its Envoy files use; it says nothing to us and is taken out.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const require = createRequire(import.meta.url);
const deps = path.join(path.dirname(require.resolve("@grpc/grpc-js-xds/package.json")), "deps");
const importRoots = ["envoy-api", "xds", "protoc-gen-validate", "googleapis"].map((name) =>
  path.join(deps, name),
);
const entries = readFileSync(path.join(root, "proto/roots.txt"), "utf8")
  .split("\n")
  .map((line) => line.replace(/#.*/, "").trim())
  .filter((line) => line !== "");

/**
 * The JSON form of Any, which ts-proto does not know. The type has no other fields, so that an
 * object literal with content does not compile: src/envoy/config/extensions.ts checks the content.
 */
const ANY = 'export interface Any {\n  readonly "@type": string;\n}\n';

const stage = path.join(root, "node_modules/.cache/svc-protos");
rmSync(stage, { recursive: true, force: true });

const seen = new Set();
const queue = [...entries];
for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
  if (seen.has(file) || file.startsWith("google/protobuf/")) continue;
  seen.add(file);
  const source = importRoots
    .map((dir) => path.join(dir, file))
    .find((candidate) => existsSync(candidate));
  if (source === undefined) throw new Error(`proto/roots.txt: ${file} is not in @grpc/grpc-js-xds`);
  const text = readFileSync(source, "utf8").replaceAll(/,?\s*ignore_empty:\s*true/g, "");
  const target = path.join(stage, file);
  mkdirSync(path.dirname(target), { recursive: true });
  writeFileSync(target, text);
  for (const match of text.matchAll(/^import\s+(?:public\s+|weak\s+)?"([^"]+)";/gm))
    queue.push(match[1]);
}

writeFileSync(path.join(stage, "buf.yaml"), "version: v2\n");
const gen = path.join(root, "src/gen");
const types = path.join(gen, "types");
rmSync(types, { recursive: true, force: true });
mkdirSync(gen, { recursive: true });
buf("generate");
writeFileSync(path.join(types, "google/protobuf/any.ts"), ANY);
writeFileSync(path.join(gen, "messages.ts"), messageMap());
// Last: the Makefile compares its age with those of the inputs.
buf("build", stage, "--exclude-source-info", "-o", path.join(gen, "envoy.binpb"));
console.log(`src/gen: ${seen.size} files of definitions`);

function buf(...args) {
  execFileSync(process.execPath, [require.resolve("@bufbuild/buf/bin/buf"), ...args], {
    cwd: root,
    stdio: "inherit",
  });
}

/** Maps the top-level messages of the files that proto/roots.txt names, and exports all types. */
function messageMap() {
  const imports = [];
  const members = [];
  for (const [index, file] of entries.entries()) {
    const text = readFileSync(path.join(stage, file), "utf8");
    const scope = /^package ([\w.]+);/m.exec(text)[1];
    imports.push(`import type * as m${index} from ${JSON.stringify(typesOf(file))};`);
    for (const [, name] of text.matchAll(/^message (\w+) \{/gm))
      members.push(`  "${scope}.${name}": m${index}.${name};`);
  }
  return [...imports, ...exports(), "export interface Messages {", ...members, "}", ""].join("\n");
}

/** Statements that export every type whose name no other file has; Envoy's go before xDS's. */
function exports() {
  const files = ["google/protobuf/any.proto", ...seen].filter((file) =>
    /^(envoy|xds|google\/protobuf)\//.test(file),
  );
  const owners = new Map();
  for (const file of files.toSorted((a, b) => a.localeCompare(b))) {
    const text = readFileSync(path.join(gen, typesOf(file)), "utf8");
    for (const [, name] of text.matchAll(/^export (?:interface|type) (\w+)/gm)) {
      const others = owners.get(name) ?? new Set();
      if (!file.startsWith("xds/") || others.size === 0) owners.set(name, others.add(file));
    }
  }
  return [...owners]
    .filter(([, own]) => own.size === 1)
    .map(([name, [file]]) => `export type { ${name} } from ${JSON.stringify(typesOf(file))};`);
}

function typesOf(file) {
  return `./types/${file.replace(/\.proto$/, ".ts")}`;
}
