/** What every source of resources hands on. */
import type { Problem } from "../resources/problem.ts";
import type { ResourceSet } from "../resources/resource-set.ts";

export interface LoadResult {
  /** What serves: the newest good version of every object. */
  readonly resources: ResourceSet;
  /** What was refused, in the order of the files. */
  readonly problems: readonly Problem[];
}
