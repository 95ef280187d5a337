/**
 * Determines the actions of a REST operation: GitHub's category of it, `read` or `write` by its
 * method, and its effects beyond its category. The tables are maintained by hand;
 * docs/providers/github.md explains them.
 */
import type { ResolvedAction } from "../contract.ts";
import type { Route } from "../route-trie.ts";

/**
 * `category.subcategory`, or a category, that uses the name of GitHub's permission, because its
 * effect is covered by that permission.
 */
const RENAMED: Readonly<Record<string, string>> = {
  "repos.contents": "contents",
  git: "contents",
  "repos.webhooks": "webhooks",
  "orgs.webhooks": "webhooks",
  "actions.secrets": "secrets",
  "actions.variables": "variables",
};

/**
 * Additional effects of an operation, so that denying such an effect also denies the operation:
 * every action must be permitted.
 */
const EFFECTS: Readonly<Record<string, readonly string[]>> = {
  "pulls/merge": ["contents:write"],
  "pulls/merge-async": ["contents:write"],
  "pulls/update-branch": ["contents:write"],
  "repos/merge": ["contents:write"],
  "repos/merge-upstream": ["contents:write"],
  "repos/rename-branch": ["contents:write"],
  "repos/create-release": ["contents:write"],
  "repos/update-release": ["contents:write"],
  "repos/delete-release": ["contents:write"],
  "repos/upload-release-asset": ["contents:write"],
  "repos/update-release-asset": ["contents:write"],
  "repos/delete-release-asset": ["contents:write"],
  "repos/create-deployment": ["contents:write"],
  "repos/create-dispatch-event": ["contents:write", "actions:write"],
  "code-scanning/commit-autofix": ["contents:write"],
};

/**
 * Data of a repository that every member sees: GitHub's permission `metadata`. Policies that name
 * `repos:read` also cover it.
 */
const METADATA = new Set([
  "repos/get",
  "repos/get-all-topics",
  "repos/get-hash-algorithm",
  "repos/list-contributors",
  "repos/list-issue-types",
  "repos/list-languages",
  "repos/list-tags",
]);

/** POST operations that change nothing: their body is a query. */
const READING_POSTS = new Set([
  "markdown/render",
  "markdown/render-raw",
  "orgs/list-attestations-bulk",
  "users/list-attestations-bulk",
  "repos/generate-release-notes",
]);

/** Operations that issue, test or revoke credentials, which an agent must not hold. */
const CREDENTIALS = new Set([
  "actions/create-registration-token-for-org",
  "actions/create-registration-token-for-repo",
  "actions/create-remove-token-for-org",
  "actions/create-remove-token-for-repo",
  "actions/generate-runner-jitconfig-for-org",
  "actions/generate-runner-jitconfig-for-repo",
  "apps/create-installation-access-token",
  "apps/revoke-installation-access-token",
  "apps/create-from-manifest",
  "apps/check-token",
  "apps/reset-token",
  "apps/delete-token",
  "apps/delete-authorization",
  "apps/scope-token",
  "credentials/revoke",
]);

export function categoryOf(route: Route): string {
  return (
    RENAMED[`${route.category}.${route.subcategory}`] ?? RENAMED[route.category] ?? route.category
  );
}

type Named = Pick<ResolvedAction, "action" | "broader">;

/** Returns at least one action. */
export function actionsOf(route: Route): readonly Named[] {
  if (METADATA.has(route.operation)) return [METADATA_READ];
  const reads = route.method === "GET" || READING_POSTS.has(route.operation);
  return [
    { action: `${categoryOf(route)}:${reads ? "read" : "write"}` },
    ...(EFFECTS[route.operation] ?? []).map((action) => ({ action })),
  ];
}

export const METADATA_READ: Named = { action: "metadata:read", broader: ["repos:read"] };

export function handsOutCredentials(route: Route): boolean {
  return CREDENTIALS.has(route.operation);
}

/** For the test that every line of a table matches an existing operation. */
export const TABLES = { RENAMED, EFFECTS, METADATA, READING_POSTS, CREDENTIALS };
