/** Checks that the namespaces of Agents admit their pods. */
import { CORE } from "../../kubernetes/objects.ts";
import { type CheckResult, fail, ok } from "../checks.ts";
import type { ClusterSession } from "./session.ts";
import { addressOf } from "./views.ts";

/** https://kubernetes.io/docs/concepts/security/pod-security-admission/ */
const ENFORCE = "pod-security.kubernetes.io/enforce";
/** Levels that forbid NET_ADMIN, which the init container of the redirect has. */
const FORBIDDING = new Set(["baseline", "restricted"]);

/** @throws ApiError */
export async function checkPodSecurity(
  { client }: ClusterSession,
  interception: "init" | "sysctl",
): Promise<readonly CheckResult[]> {
  const [agents, namespaces] = await Promise.all([
    client.list(addressOf("Agent")),
    client.list(CORE.namespace),
  ]);
  const used = new Set(agents.items.map(({ metadata }) => metadata.namespace));
  const faults =
    interception === "sysctl"
      ? []
      : namespaces.items.flatMap(({ metadata: { name, labels } }) => {
          const level = labels?.[ENFORCE] ?? "";
          return used.has(name) && FORBIDDING.has(level) ? [faultOf(name, level)] : [];
        });
  return faults.length > 0
    ? faults
    : [ok("pod security", `${used.size} namespaces of agents admit their pods`)];
}

function faultOf(namespace: string, level: string): CheckResult {
  return fail(
    "pod security",
    `the namespace ${namespace} enforces "${level}", which forbids the init container with ` +
      "NET_ADMIN of agents' pods. Install with agents.interception=sysctl, or label the " +
      `namespace: kubectl label namespace ${namespace} ${ENFORCE}=privileged --overwrite.`,
  );
}
