/**
 * Makes the objects that an installation needs once: the keys of workload tokens, and the ConfigMap
 * of price overrides. Neither is ever changed when it exists.
 */
import { randomBytes } from "node:crypto";
import type { KubeClient } from "../kubernetes/client.ts";
import { isConflict } from "../kubernetes/connection.ts";
import { CORE, type KubeKind } from "../kubernetes/objects.ts";
import { PRICES_CONFIG_MAP } from "../resources/model-prices.ts";
import { WORKLOAD_KEY_BYTES } from "../sources/kubernetes/workload-keys.ts";
import { FIELD_MANAGER } from "./names.ts";

export interface InstallationOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly workloadKeySecret: string;
}

/** @throws ApiError */
export async function makeInstallation({
  client,
  namespace,
  workloadKeySecret,
}: InstallationOptions): Promise<void> {
  const make = async (kind: KubeKind, name: string, fields: object): Promise<void> => {
    if ((await client.get(kind, { namespace, name })) !== undefined) return;
    const labels = {
      "app.kubernetes.io/name": "svc",
      "app.kubernetes.io/managed-by": FIELD_MANAGER,
    };
    const object = {
      apiVersion: kind.apiVersion,
      kind: kind.kind,
      metadata: { name, namespace, labels },
    };
    try {
      await client.create(kind, { ...object, ...fields });
    } catch (error) {
      // Another replica was faster.
      if (!isConflict(error)) throw error;
    }
  };
  await make(CORE.secret, workloadKeySecret, {
    type: "Opaque",
    data: { current: randomBytes(WORKLOAD_KEY_BYTES).toString("base64") },
  });
  await make(CORE.configMap, PRICES_CONFIG_MAP, { data: {} });
}
