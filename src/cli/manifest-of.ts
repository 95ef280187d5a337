/** Builds a manifest from flags. */
import type { ManifestText } from "./backend.ts";
import { renderYaml } from "./render-objects.ts";

export function manifestOf(objects: readonly object[]): ManifestText {
  return { source: "(flags)", text: renderYaml(objects) };
}
