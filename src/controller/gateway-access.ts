/**
 * The gateway's access to Secrets: in each namespace with ModelProviders, a Role with exactly the
 * Secrets that they name. Pure.
 */
import { CORE } from "../kubernetes/objects.ts";
import type { ResourceSet } from "../resources/resource-set.ts";
import type { ControllerConfig } from "./config.ts";
import { FIELD_MANAGER } from "./names.ts";
import type { PlannedObject } from "./plan.ts";

/** Name of the Role and of its binding. */
export const GATEWAY_SECRETS = "svc-gateway-secrets";

/** Returns what a namespace needs; nothing if none of its ModelProviders names a Secret. */
export function gatewayAccess(
  namespace: string,
  { modelProviders }: ResourceSet,
  { gateway }: ControllerConfig,
): readonly PlannedObject[] {
  const names = new Set(
    [...modelProviders.values()].flatMap(({ namespace: its, spec }) =>
      its === namespace && spec.apiKeySecretRef !== undefined ? [spec.apiKeySecretRef.name] : [],
    ),
  );
  if (names.size === 0) return [];
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
            resourceNames: [...names].toSorted(),
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
