/** Checks the caller's rights: which commands they suffice for. */
import { ApiError } from "../../kubernetes/connection.ts";
import { type CheckResult, ok, warn } from "../checks.ts";
import type { ClusterSession } from "./session.ts";

/** https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access */
const REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

interface Right {
  readonly verb: string;
  readonly group?: string;
  readonly resource: string;
  readonly subresource?: string;
  /** In the installation's namespace; otherwise in all. */
  readonly system?: true;
  /** Commands that need it. */
  readonly for: string;
}

const RIGHTS: readonly Right[] = [
  { verb: "list", group: "svc.io", resource: "agents", for: "svc get -A and svc status" },
  { verb: "patch", group: "svc.io", resource: "agents", for: "svc apply in every namespace" },
  { verb: "create", group: "svc.io", resource: "accesskeys", for: "svc access-key create" },
  { verb: "delete", group: "svc.io", resource: "agents", for: "svc delete in every namespace" },
  { verb: "create", resource: "secrets", for: "svc create model-provider" },
  { verb: "get", resource: "secrets", for: "svc token" },
  { verb: "list", group: "apps", resource: "deployments", system: true, for: "svc status" },
  {
    verb: "get",
    resource: "pods",
    subresource: "proxy",
    system: true,
    for: "svc status, svc proxy-status and svc get metrics",
  },
  { verb: "create", resource: "pods", subresource: "exec", for: "svc audit and svc get tools" },
  { verb: "list", resource: "configmaps", system: true, for: "svc audit" },
  { verb: "list", resource: "persistentvolumeclaims", for: "svc audit, for pods that are gone," },
  { verb: "create", resource: "pods", for: "svc audit, for pods that are gone," },
  { verb: "delete", resource: "pods", for: "svc audit, for pods that are gone," },
];

export async function checkRights(session: ClusterSession): Promise<readonly CheckResult[]> {
  const checked = await Promise.all(
    RIGHTS.map(async (right) => [right, await isAllowed(session, right)] as const),
  );
  const missing = checked.filter(([, allowed]) => !allowed).map(([right]) => right);
  return missing.length === 0
    ? [ok("your rights", "suffice for all commands")]
    : missing.map(({ verb, resource, subresource, system, for: commands }) => {
        const what = subresource === undefined ? resource : `${resource}/${subresource}`;
        const where = system === true ? `namespace ${session.systemNamespace}` : "all namespaces";
        return warn(
          "your rights",
          `you may not ${verb} ${what} in ${where}, which ${commands} need. Ask an administrator.`,
        );
      });
}

async function isAllowed(
  { connection, systemNamespace }: ClusterSession,
  right: Right,
): Promise<boolean> {
  const { verb, group = "", resource, subresource, system } = right;
  const resourceAttributes = {
    verb,
    group,
    resource,
    ...(subresource === undefined ? {} : { subresource }),
    ...(system === true ? { namespace: systemNamespace } : {}),
  };
  try {
    const { status } = (await connection.request(REVIEWS, {
      method: "POST",
      body: {
        apiVersion: "authorization.k8s.io/v1",
        kind: "SelfSubjectAccessReview",
        spec: { resourceAttributes },
      },
    })) as { readonly status?: { readonly allowed?: boolean } };
    return status?.allowed === true;
  } catch (error) {
    if (error instanceof ApiError) return false;
    throw error;
  }
}
