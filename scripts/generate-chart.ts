/**
 * Writes the derived files of the chart: the schema of its values, its copies of the
 * CustomResourceDefinitions, its version, and `docs/helm.md`. Run: `make chart`. A test fails if
 * the committed files differ.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { CHART_CRDS, chartFiles } from "./chart/files.ts";

const root = path.resolve(import.meta.dirname, "..");
const files = chartFiles(root);
rmSync(path.join(root, CHART_CRDS), { recursive: true, force: true });
for (const [file, content] of files) {
  mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
  writeFileSync(path.join(root, file), content);
}
