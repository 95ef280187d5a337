/** Operations of commands on an installation in a cluster besides those on its objects. */
import type { CheckResult } from "./checks.ts";
import type { AtEnd } from "./temporary-folder.ts";

export interface ClusterAccess {
  /**
   * Copies the audit chains of the pods that run, and those on claims, into folders of a folder.
   * @param workload only chains that can have records of it; undefined for all
   * @param atEnd undoes what reading makes in the cluster
   */
  copyChains(
    dir: string,
    workload: string | undefined,
    atEnd: AtEnd,
  ): Promise<readonly CopiedChains[]>;
  /** @param root of the package, for the manifests of its version */
  check(root: string): Promise<readonly CheckResult[]>;
}

/** The chains of one place: of a pod, or of a claim that several pods write to. */
export interface CopiedChains {
  /** `pod <namespace>/<name>` or `claim <namespace>/<name>`, for messages. */
  readonly place: string;
  /** Folder of the chains. */
  readonly dir: string;
  /** Why the chains are not there, or not whole. */
  readonly problem: string | undefined;
}
