/**
 * All plugins, one line each. A sidecar loads only those that its bindings name, so the others'
 * tables of operations take no memory. The bundles contain the modules imported here; nothing is
 * resolved at run time.
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

/** Returns undefined for an unknown type. */
export async function loadPlugin(type: string): Promise<ProviderPlugin | undefined> {
  return (await loaders.get(type)?.())?.plugin;
}
