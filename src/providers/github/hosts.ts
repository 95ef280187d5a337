/**
 * GitHub's hosts, the surfaces that each serves, and the form in which each expects the token.
 * Unlisted hosts are not bound: the targets of GitHub's download redirects
 * (objects.githubusercontent.com, release-assets.githubusercontent.com, storage of Amazon and
 * Azure) have a signature in their address and need no token.
 */

export type GitHubSurface =
  /** REST, and GraphQL at `graphqlPath`; `prefix` precedes each path of REST. */
  | { readonly kind: "api"; readonly prefix: string; readonly graphqlPath: string }
  | { readonly kind: "uploads"; readonly prefix: string }
  /** Git over HTTPS, LFS, and downloads from the web pages. */
  | { readonly kind: "git" }
  /** `/owner/repo/<rest>`: raw files, and archives. */
  | { readonly kind: "files" };

/** Surfaces of a host; the first that accepts the path is used. */
export type Hosts = ReadonlyMap<string, readonly GitHubSurface[]>;

const API: GitHubSurface = { kind: "api", prefix: "", graphqlPath: "/graphql" };
const UPLOADS: GitHubSurface = { kind: "uploads", prefix: "" };
const GIT: GitHubSurface = { kind: "git" };
const FILES: GitHubSurface = { kind: "files" };

const PUBLIC: Hosts = new Map([
  ["api.github.com", [API]],
  ["github.com", [GIT]],
  ["uploads.github.com", [UPLOADS]],
  ["codeload.github.com", [FILES]],
  ["raw.githubusercontent.com", [FILES]],
]);

export const PUBLIC_HOSTS = [...PUBLIC.keys()];

const HOST =
  /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)+$/;

/**
 * @param enterprise host of GitHub Enterprise: `octocorp.ghe.com`, or a server's own; undefined for
 * github.com.
 *   A token is only for one of them: an enterprise's token is never sent to github.com.
 * @returns undefined if that is not a valid host
 */
export function hostsOf(enterprise: string | undefined): Hosts | undefined {
  if (enterprise === undefined) return PUBLIC;
  const isAddress = /^[0-9.]+$/.test(enterprise);
  if (!HOST.test(enterprise) || isAddress || PUBLIC.has(enterprise)) return undefined;
  if (enterprise.endsWith(".ghe.com")) {
    return new Map([
      [`api.${enterprise}`, [API]],
      [`uploads.${enterprise}`, [UPLOADS]],
      [enterprise, [GIT]],
    ]);
  }
  return new Map([
    [
      enterprise,
      [
        { kind: "api", prefix: "/api/v3", graphqlPath: "/api/graphql" },
        { kind: "uploads", prefix: "/api/uploads" },
        GIT,
      ],
    ],
  ]);
}

/** Returns the base URL that issues installation tokens. */
export function apiBaseOf(enterprise: string | undefined): string {
  if (enterprise === undefined) return "https://api.github.com";
  return enterprise.endsWith(".ghe.com")
    ? `https://api.${enterprise}`
    : `https://${enterprise}/api/v3`;
}
