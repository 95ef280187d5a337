/**
 * Writes the list of plugins from the folders of `src/providers`; every build does. Run: `node
 * scripts/generate-plugins.ts`. A test fails if the committed files differ.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { pluginFiles, shippedPlugins } from "./plugin-files.ts";

const root = fileURLToPath(new URL("../", import.meta.url));
for (const [name, content] of pluginFiles(shippedPlugins(root))) {
  const file = path.join(root, name);
  // An unchanged file keeps its time, so that make does not build again.
  if (!existsSync(file) || readFileSync(file, "utf8") !== content) writeFileSync(file, content);
}
