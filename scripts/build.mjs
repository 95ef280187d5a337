/**
 * Bundles each process into dist/, with parts that are loaded when they are wanted. Packages stay
 * outside, in node_modules, but for the sidecar: there is one in each pod, and what it does not
 * hold costs no memory. The plugins of the sidecar are those that have a folder by then.
 */
import { chmodSync, rmSync } from "node:fs";
import { builtinModules } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { packedTables } from "./packed-tables.mjs";
import { writePluginFiles } from "./plugin-files.ts";

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

writePluginFiles(root);
/**
 * Takes Node's own modules from the process, not by import: for an import, Node.js reads every
 * export, and some are loaded when they are read. `import "node:http"` alone loads `fetch`, HTTP/2
 * and worker threads: 8 MiB.
 */
const builtins = {
  name: "builtins",
  setup(build) {
    build.onResolve({ filter: /^(?:node:)?[a-z_/0-9]+$/ }, ({ path: name }) => {
      const plain = name.replace(/^node:/, "");
      return builtinModules.includes(plain) ? { path: plain, namespace: "builtin" } : undefined;
    });
    build.onLoad({ filter: /.*/, namespace: "builtin" }, ({ path: name }) => ({
      contents: `module.exports = process.getBuiltinModule("node:${name}");`,
    }));
  },
};

rmSync(path.join(root, "dist"), { recursive: true, force: true });
await build({
  ...common,
  entryPoints: [
    "src/bin/svc.ts",
    "src/bin/gateway.ts",
    "src/bin/gateway-pod.ts",
    "src/bin/controller.ts",
    "src/bin/svc-init.ts",
    "src/bin/guard-model.ts",
  ],
  packages: "external",
});
await build({
  ...common,
  entryPoints: ["src/bin/sidecar.ts", "src/bin/sidecar-pod.ts"],
  // Names stay: stacks are read without source maps there.
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: "linked",
  plugins: [builtins, packedTables(/\/(?:operations|methods|github-routes|github-graphql)\.json$/)],
  // For packages that are CommonJS.
  banner: {
    js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
  },
});
chmodSync(path.join(root, "dist/svc.js"), 0o755);
