/** Names of repositories, and what of them a scope is held against. */
import type { Resource } from "../contract.ts";

const OWNER = /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/;
const NAME = /^[A-Za-z0-9._-]{1,100}$/;

/**
 * The resource of `owner/name`, or undefined where that is no repository's name. GitHub takes a
 * name with `.git` for the one without it, so there is one way to write each here: without.
 */
export function repositoryResource(owner: string, name: string): Resource | undefined {
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

/** Of `owner/name` in one piece. */
export function namedRepository(text: string): Resource | undefined {
  const [owner, name, ...more] = text.split("/");
  return owner === undefined || name === undefined || more.length > 0
    ? undefined
    : repositoryResource(owner, name);
}

export function unscopable(reason: string): Resource {
  return { kind: "unscopable", reason };
}
