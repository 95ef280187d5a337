/** The result of every source of resources. */
import type { Problem } from "../resources/problem.ts";
import type { ResourceSet } from "../resources/resource-set.ts";

export interface LoadResult {
  /** The resources in use: the newest good version of every object. */
  readonly resources: ResourceSet;
  /** Refused documents, in the order of the files. */
  readonly problems: readonly Problem[];
}
