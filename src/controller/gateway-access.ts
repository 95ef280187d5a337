/**
 * The gateway's access to Secrets: in each namespace with Secrets that it needs, a Role with
 * exactly these. Pure.
 */
import { secretsOfGateway } from "../compile/gateway-secrets.ts";
import { CORE } from "../kubernetes/objects.ts";
import type { ResourceSet } from "../resources/resource-set.ts";
import type { ControllerConfig } from "./config.ts";
import { FIELD_MANAGER } from "./names.ts";
import type { PlannedObject } from "./plan.ts";

/** Name of the Role and of its binding. */
export const GATEWAY_SECRETS = "svc-gateway-secrets";

/** Returns the namespaces with Secrets that the gateway needs. */
export function gatewayNamespaces(resources: ResourceSet): ReadonlySet<string> {
  return new Set([...secretsOfGateway(resources)].map((secret) => secret.split("/", 1)[0] ?? ""));
}

/** Returns what a namespace needs; nothing if the gateway needs none of its Secrets. */
export function gatewayAccess(
  namespace: string,
  resources: ResourceSet,
  { gateway }: ControllerConfig,
): readonly PlannedObject[] {
  const names = [...secretsOfGateway(resources)]
    .filter((secret) => secret.startsWith(`${namespace}/`))
    .map((secret) => secret.slice(namespace.length + 1));
  if (names.length === 0) return [];
  const [, gatewayNamespace = ""] = gateway.host.split(".");
  const metadata = {
    name: GATEWAY_SECRETS,
    namespace,
    labels: { "app.kubernetes.io/name": "svc", "app.kubernetes.io/managed-by": FIELD_MANAGER },
  };
  const { role, roleBinding } = CORE;
  return [
    {
      kind: role,
      object: {
        apiVersion: role.apiVersion,
        kind: role.kind,
        metadata,
        rules: [
          {
            apiGroups: [""],
            resources: ["secrets"],
            resourceNames: names.toSorted(),
            verbs: ["get", "list", "watch"],
          },
        ],
      },
    },
    {
      kind: roleBinding,
      object: {
        apiVersion: roleBinding.apiVersion,
        kind: roleBinding.kind,
        metadata,
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: GATEWAY_SECRETS },
        subjects: [
          { kind: "ServiceAccount", name: gateway.serviceAccount, namespace: gatewayNamespace },
        ],
      },
    },
  ];
}
