/** {@link ClusterAccess} over the Kubernetes API. */
import type { ClusterAccess } from "../cluster-access.ts";
import type { ClusterTarget } from "../target.ts";
import { copyChains } from "./audit-copy.ts";
import { checkCluster } from "./check.ts";
import { explained, openSession } from "./session.ts";

/** @throws CliError if the kubeconfig cannot be used */
export function clusterAccess(target: ClusterTarget): ClusterAccess {
  const session = openSession(target);
  return {
    copyChains: (dir, workload, atEnd) =>
      explained(session, async () => copyChains(session, dir, workload, atEnd)),
    check: (root) => checkCluster(session, root),
  };
}
