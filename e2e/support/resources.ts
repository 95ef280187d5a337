/** The resources of tests, as YAML (JSON is YAML). */
import type { Vendor } from "./vendors.ts";

function render(...objects: readonly object[]): string {
  return objects.map((object) => JSON.stringify(object)).join("\n---\n");
}

export interface ProviderOptions {
  readonly kind?: string;
  readonly baseURL?: string;
  /** More of its spec. */
  readonly spec?: Readonly<Record<string, unknown>>;
}

/** Waits that are too short to slow a test down. */
const QUICK_RETRIES = { attempts: 3, baseIntervalMs: 1, maxIntervalMs: 2 };

/** A ModelProvider that is the fake, with its key in a Secret. */
export function providerYaml(name: string, vendor: Vendor, { kind = vendor.dialect, baseURL = vendor.baseURL, spec = {} }: ProviderOptions = {}): string {
  return render(
    { apiVersion: "v1", kind: "Secret", metadata: { name }, stringData: { "api-key": vendor.key } },
    {
      apiVersion: "svc.io/v1",
      kind: "ModelProvider",
      metadata: { name },
      spec: { provider: kind, baseURL, apiKeySecretRef: { name, key: "api-key" }, retries: QUICK_RETRIES, ...spec },
    },
  );
}

export function agentYaml(name: string, models: readonly string[]): string {
  return render({ apiVersion: "svc.io/v1", kind: "Agent", metadata: { name }, spec: { models } });
}
