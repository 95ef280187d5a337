/**
 * Every plugin there is, one line each. A sidecar loads those that its bindings name: the others'
 * tables of operations cost it no memory. The bundles hold what is imported here, and nothing is
 * looked for at run time.
 */
import type { ProviderPlugin } from "./contract.ts";

interface Module {
  readonly plugin: ProviderPlugin;
}

/** By `spec.type`. */
export const loaders: ReadonlyMap<string, () => Promise<Module>> = new Map<
  string,
  () => Promise<Module>
>([
  ["aws", () => import("./aws/plugin.ts")],
  ["azure", () => import("./azure/plugin.ts")],
  ["discord", () => import("./discord/plugin.ts")],
  ["example", () => import("./example/plugin.ts")],
  ["gcp", () => import("./gcp/plugin.ts")],
  ["github", () => import("./github/plugin.ts")],
  ["slack", () => import("./slack/plugin.ts")],
]);

/** undefined for a type that nothing is known of. */
export async function loadPlugin(type: string): Promise<ProviderPlugin | undefined> {
  return (await loaders.get(type)?.())?.plugin;
}
