/** The result of every source of resources. */
import type { Problem } from "../resources/problem.ts";
import type { ResourceSet } from "../resources/resource-set.ts";

export interface LoadResult {
  /** The resources in use: the newest good version of every object. */
  readonly resources: ResourceSet;
  /** Refused documents, in the order of the files. */
  readonly problems: readonly Problem[];
  /**
   * `metadata.generation` of the newest version of each object, also of a refused one, by its id.
   * Objects of a source without generations are not in it.
   */
  readonly generations: ReadonlyMap<string, number>;
}

/** The generations of a source that has none, such as a folder of files. */
export const NO_GENERATIONS: ReadonlyMap<string, number> = new Map();
