/** All plugins at once, for components that evaluate specs of any type: the gateway, and tests. */
import type { ProviderPlugin } from "./contract.ts";
import { loaders } from "./loaders.ts";

/** By `spec.type`. */
export const plugins: ReadonlyMap<string, ProviderPlugin> = new Map(
  await Promise.all(
    [...loaders].map(async ([type, load]): Promise<[string, ProviderPlugin]> => [
      type,
      (await load()).plugin,
    ]),
  ),
);
