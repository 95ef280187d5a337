/** An instance of every plugin, with the requests that its contract sample knows. */
import { readdirSync } from "node:fs";
import path from "node:path";
import type {
  ProviderInstance,
  ProviderPlugin,
  ServiceRequest,
} from "../src/providers/contract.ts";
import { type ContractSample, context } from "../src/providers/testing.ts";

export interface KnownInstance {
  readonly instance: ProviderInstance;
  readonly requests: readonly ServiceRequest[];
}

const FOLDER = path.resolve(import.meta.dirname, "../src/providers");

async function load(name: string): Promise<KnownInstance> {
  const { plugin } = (await import(path.join(FOLDER, name, "plugin.ts"))) as {
    readonly plugin: ProviderPlugin;
  };
  const { sample } = (await import(path.join(FOLDER, name, "contract-sample.ts"))) as {
    readonly sample: ContractSample;
  };
  const [authType = "", auth = { secrets: {} }] = Object.entries(sample.auth)[0] ?? [];
  const instance = plugin.create(
    context({ authType, secrets: auth.secrets, config: auth.config ?? {}, ...auth.context }),
  );
  return { instance, requests: sample.requests.map(({ request }) => request) };
}

export const instances: readonly KnownInstance[] = await Promise.all(
  readdirSync(FOLDER, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => load(name)),
);
