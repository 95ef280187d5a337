/** Every plugin there is: one import and one line each. The bundle holds what is imported here, and nothing is looked for at run time. */
import type { ProviderPlugin } from "./contract.ts";
import { plugin as aws } from "./aws/plugin.ts";
import { plugin as azure } from "./azure/plugin.ts";
import { plugin as discord } from "./discord/plugin.ts";
import { plugin as example } from "./example/plugin.ts";
import { plugin as gcp } from "./gcp/plugin.ts";
import { plugin as github } from "./github/plugin.ts";
import { plugin as slack } from "./slack/plugin.ts";

/** By `spec.type`. */
export const plugins: ReadonlyMap<string, ProviderPlugin> = new Map(
  [
    aws,
    azure,
    discord,
    example,
    gcp,
    github,
    slack,
  ].map((plugin) => [plugin.providerName, plugin]),
);
