/**
 * Writes `crds/*.yaml` and `docs/resources.md` from the schemas. Run: `node
 * scripts/generate-crds.ts`. A test fails if the committed files differ.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { generatedFiles } from "../src/resources/generate.ts";

const root = fileURLToPath(new URL("../", import.meta.url));
for (const [path, content] of generatedFiles()) {
  mkdirSync(dirname(root + path), { recursive: true });
  writeFileSync(root + path, content);
}
