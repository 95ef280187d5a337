/** Names of repositories, and the values that a scope is matched against. */
import type { ServiceResource } from "../contract.ts";

const OWNER = /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/;
const NAME = /^[A-Za-z0-9._-]{1,100}$/;

/**
 * Returns the resource of `owner/name`, or undefined if that is not a repository's name. GitHub
 * treats a name with `.git` as the one without it, so only the form without it is used here.
 */
export function repositoryResource(owner: string, name: string): ServiceResource | undefined {
  if (
    !OWNER.test(owner) ||
    !NAME.test(name) ||
    name === "." ||
    name === ".." ||
    /\.git$/i.test(name)
  )
    return undefined;
  return { kind: "scoped", key: "repositories", value: `${owner}/${name}` };
}

/** Parses `owner/name` from one text. */
export function namedRepository(text: string): ServiceResource | undefined {
  const [owner, name, ...more] = text.split("/");
  return owner === undefined || name === undefined || more.length > 0
    ? undefined
    : repositoryResource(owner, name);
}

export function unscopable(reason: string): ServiceResource {
  return { kind: "unscopable", reason };
}
