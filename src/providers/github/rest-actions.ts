/**
 * Which actions a REST operation is: GitHub's category of it, `read` or `write` by its method, and the effects it has
 * beyond its category. The tables are what people decided; docs/providers/github.md says why.
 */
import type { Route } from "../route-trie.ts";

/** `category.subcategory`, or a category, that goes by the name of GitHub's permission, since its effect is that. */
const RENAMED: Readonly<Record<string, string>> = {
  "repos.contents": "contents",
  git: "contents",
  "repos.webhooks": "webhooks",
  "orgs.webhooks": "webhooks",
  "actions.secrets": "secrets",
  "actions.variables": "variables",
};

/** What an operation does besides, so that denying that does deny it: every action must be permitted. */
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

/** Posts that change nothing: their body is a question. */
const READING_POSTS = new Set([
  "markdown/render",
  "markdown/render-raw",
  "orgs/list-attestations-bulk",
  "users/list-attestations-bulk",
  "repos/generate-release-notes",
]);

/** They hand out, test or revoke credentials: for who holds credentials, and an agent does not. */
const CREDENTIALS = new Set([
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

/** At least one. */
export function actionsOf(route: Route): readonly string[] {
  const reads = route.method === "GET" || READING_POSTS.has(route.operation);
  return [`${categoryOf(route)}:${reads ? "read" : "write"}`, ...(EFFECTS[route.operation] ?? [])];
}

export function handsOutCredentials(route: Route): boolean {
  return CREDENTIALS.has(route.operation);
}

/** For the test that every line of a table is about an operation that exists. */
export const TABLES = { RENAMED, EFFECTS, READING_POSTS, CREDENTIALS };
