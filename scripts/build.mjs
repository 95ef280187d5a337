/**
 * Bundles each process into dist/, with parts that are loaded when they are wanted. Packages stay
 * outside, in node_modules, but for the sidecar: there is one in each pod, and what it does not
 * hold costs no memory. The plugins of the sidecar are those that have a folder by then.
 */
import { chmodSync, rmSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import "./generate-plugins.ts";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const common = {
  absWorkingDir: root,
  outdir: "dist",
  bundle: true,
  splitting: true,
  chunkNames: "parts/[name]-[hash]",
  platform: "node",
  format: "esm",
  target: "node24",
  sourcemap: true,
  // Mappings alone: a process keeps what it reads of them.
  sourcesContent: false,
  logLevel: "warning",
};

rmSync(path.join(root, "dist"), { recursive: true, force: true });
await build({
  ...common,
  entryPoints: ["src/bin/svc.ts", "src/bin/gateway.ts", "src/bin/svc-init.ts"],
  packages: "external",
});
await build({
  ...common,
  entryPoints: ["src/bin/sidecar.ts"],
  // Names stay: stacks are read without source maps there.
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: "linked",
  // Loaded by those alone that exchange tokens; and a CommonJS package that a bundle imports
  // dynamically loses its names.
  external: ["undici"],
  // For packages that are CommonJS.
  banner: {
    js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
  },
});
chmodSync(path.join(root, "dist/svc.js"), 0o755);
