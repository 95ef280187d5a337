/** The resources of tests, as YAML (JSON is YAML). */
import { createHash } from "node:crypto";
import { newAccessKey } from "../../src/access/access-keys.ts";
import { hashKey } from "../../src/access/credentials.ts";
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
export function providerYaml(
  name: string,
  vendor: Vendor,
  { kind = vendor.dialect, baseURL = vendor.baseURL, spec = {} }: ProviderOptions = {},
): string {
  return render(
    { apiVersion: "v1", kind: "Secret", metadata: { name }, stringData: { "api-key": vendor.key } },
    {
      apiVersion: "svc.io/v1",
      kind: "ModelProvider",
      metadata: { name },
      spec: {
        provider: kind,
        baseURL,
        apiKeySecretRef: { name, key: "api-key" },
        retries: QUICK_RETRIES,
        ...spec,
      },
    },
  );
}

export function agentYaml(
  name: string,
  models: readonly string[],
  rateLimits: Readonly<Record<string, number>> = {},
): string {
  return render({
    apiVersion: "svc.io/v1",
    kind: "Agent",
    metadata: { name },
    spec: { models, rateLimits },
  });
}

/** The raw access key of this name: the same in every run. */
export function rawKey(name: string): string {
  return newAccessKey(createHash("sha256").update(`access key ${name}`).digest());
}

/** An AccessKey whose raw key is {@link rawKey} of its name. */
export function accessKeyYaml(
  name: string,
  modelProvider: string,
  spec: Readonly<Record<string, unknown>> = {},
): string {
  const keySHA256 = hashKey(rawKey(name));
  return render({
    apiVersion: "svc.io/v1",
    kind: "AccessKey",
    metadata: { name },
    spec: { modelProvider, keySHA256, ...spec },
  });
}
