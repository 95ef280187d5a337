/** The installation's own state: its Deployments, and whether the API serves our kinds. */
import { isNotFound } from "../../kubernetes/connection.ts";
import { CORE, type KubeObject } from "../../kubernetes/objects.ts";
import { KINDS, RESOURCE_KINDS } from "../../resources/kinds.ts";
import { API_VERSION } from "../../resources/metadata.ts";
import type { ClusterSession } from "./session.ts";

export const COMPONENTS = ["controller", "gateway"] as const;

export interface Component {
  readonly component: (typeof COMPONENTS)[number];
  readonly name: string;
  readonly desired: number;
  readonly ready: number;
  /** Whether its newest version runs with all of its pods. */
  readonly isReady: boolean;
}

interface DeploymentStatus {
  readonly observedGeneration?: number;
  readonly updatedReplicas?: number;
  readonly readyReplicas?: number;
  readonly replicas?: number;
}

/** The Deployments of the installation. @throws ApiError */
export async function readComponents({
  client,
  systemNamespace,
}: ClusterSession): Promise<Component[]> {
  const labelSelector = "app.kubernetes.io/part-of=svc";
  const { items } = await client.list(CORE.deployment, systemNamespace, { labelSelector });
  return items.flatMap((object) => componentOf(object) ?? []);
}

function componentOf(object: KubeObject): Component | undefined {
  const { name, labels, generation = 0 } = object.metadata;
  const component = COMPONENTS.find((one) => one === labels?.["app.kubernetes.io/component"]);
  if (component === undefined) return undefined;
  const { replicas: desired = 1 } = (object["spec"] ?? {}) as { readonly replicas?: number };
  const {
    observedGeneration = 0,
    updatedReplicas = 0,
    readyReplicas = 0,
    replicas = 0,
  } = (object["status"] ?? {}) as DeploymentStatus;
  return {
    component,
    name,
    desired,
    ready: readyReplicas,
    isReady:
      observedGeneration >= generation &&
      updatedReplicas >= desired &&
      replicas === updatedReplicas &&
      readyReplicas >= desired,
  };
}

/** Returns what is missing or not ready, one line each. */
export function componentFaults(
  components: readonly Component[],
  systemNamespace: string,
): readonly string[] {
  return COMPONENTS.flatMap((component) => {
    const found = components.filter((one) => one.component === component);
    if (found.length === 0)
      return [`there is no Deployment of the ${component} in the namespace ${systemNamespace}`];
    return found
      .filter(({ isReady }) => !isReady)
      .map(({ name, ready, desired }) => `Deployment ${name}: ${ready} of ${desired} pods ready`);
  });
}

/** Returns the kinds of ours that the API does not serve. @throws ApiError */
export async function missingKinds({ connection }: ClusterSession): Promise<readonly string[]> {
  const wanted = RESOURCE_KINDS.filter((kind) => KINDS[kind].crd !== undefined);
  try {
    const { resources = [] } = (await connection.request(`/apis/${API_VERSION}`)) as {
      readonly resources?: readonly { readonly kind: string }[];
    };
    return wanted.filter((kind) => !resources.some((one) => one.kind === kind));
  } catch (error) {
    if (isNotFound(error)) return wanted;
    throw error;
  }
}
