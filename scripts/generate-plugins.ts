/**
 * Writes the list of plugins from the folders of `src/providers`; every build does. Run: `node
 * scripts/generate-plugins.ts`. A test fails if the committed files differ.
 */
import { fileURLToPath } from "node:url";
import { writePluginFiles } from "./plugin-files.ts";

writePluginFiles(fileURLToPath(new URL("../", import.meta.url)));
