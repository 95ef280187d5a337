/** Projects in the form of `spec.scope`. */
import type { ServiceResource } from "../contract.ts";

/** Configured projects of buckets. */
export type BucketProjects = ReadonlyMap<string, string>;

const PROJECT = /^(?:[a-z][a-z0-9.-]{0,61}:)?[a-z0-9][a-z0-9-]{0,61}$/;

export function project(value: string): ServiceResource {
  return PROJECT.test(value)
    ? { kind: "scoped", key: "projects", value }
    : unscopable("the project is no id or number of one");
}

export function projectOfBucket(bucket: string, buckets: BucketProjects): ServiceResource {
  const known = buckets.get(bucket);
  return known === undefined
    ? unscopable(
        "a bucket does not tell its project: list it in config.bucketProjects of the Provider",
      )
    : project(known);
}

export function unscopable(reason: string): ServiceResource {
  return { kind: "unscopable", reason };
}
