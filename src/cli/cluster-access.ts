/** Operations of commands on an installation in a cluster besides those on its objects. */
import type { CheckResult } from "./checks.ts";

export interface ClusterAccess {
  /**
   * Copies the audit chains of the pods that run into folders of a folder.
   * @param workload only chains that can have records of it; undefined for all
   */
  copyChains(dir: string, workload: string | undefined): Promise<readonly CopiedPod[]>;
  /** @param root of the package, for the manifests of its version */
  check(root: string): Promise<readonly CheckResult[]>;
}

/** A pod whose chains were to be copied. */
export interface CopiedPod {
  /** `<namespace>/<name>` */
  readonly pod: string;
  /** Folder of its chains. */
  readonly dir: string;
  /** Why its chains are not there, or not whole. */
  readonly problem: string | undefined;
}
