/**
 * Makes src/gen/envoy.binpb, a descriptor set of the Envoy messages that we send and read, from the
 * definitions that the npm package @grpc/grpc-js-xds ships. Offline: no remote buf module or plugin
 * is asked for.
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
mkdirSync(path.join(root, "src/gen"), { recursive: true });
execFileSync(
  process.execPath,
  [
    require.resolve("@bufbuild/buf/bin/buf"),
    "build",
    stage,
    "--exclude-source-info",
    "-o",
    path.join(root, "src/gen/envoy.binpb"),
  ],
  { stdio: "inherit" },
);
console.log(`src/gen/envoy.binpb: ${seen.size} files`);
