/** Bundles each process into dist/: one file that starts fast. Packages stay outside, in node_modules. */
import { chmodSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
await build({
  absWorkingDir: root,
  entryPoints: ["src/bin/svc.ts", "src/bin/gateway.ts", "src/bin/sidecar.ts", "src/bin/svc-init.ts"],
  outdir: "dist",
  bundle: true,
  packages: "external",
  platform: "node",
  format: "esm",
  target: "node24",
  sourcemap: true,
  logLevel: "warning",
});
chmodSync(path.join(root, "dist/svc.js"), 0o755);
