/**
 * Tests that the review of REST operations is complete: each operation on a repository is
 * classified, and everything that GitHub's OpenAPI description shows of another repository was
 * reviewed. A new version of the description with a new operation, or a new field of that kind,
 * fails here.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { TABLES as ACTION_TABLES } from "./rest-actions.ts";
import { JUDGED_BY_BODY } from "./rest-body.ts";
import { DESCRIBES_LINKED, REACHES_FURTHER, WITHIN } from "./rest-reach.ts";
import { isTwin } from "./rest.ts";

interface Schema {
  readonly $ref?: string;
  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
}

interface Media {
  readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>;
  readonly $ref?: string;
}

interface Described {
  readonly operationId: string;
  readonly requestBody?: Media;
  readonly responses?: Readonly<Record<string, Media>>;
  readonly parameters?: readonly { readonly $ref?: string; readonly name?: string }[];
}

const openapi = JSON.parse(
  readFileSync("node_modules/@octokit/openapi/generated/api.github.com.json", "utf8"),
) as { readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>> };

const METHODS = new Set(["get", "put", "post", "patch", "delete", "head"]);
/** Paths that name a repository and nothing else that a scope must name. */
const ON_REPOSITORY =
  /^\/(?:repos\/\{(?:template_)?owner\}\/|networks\/\{owner\}\/|agents\/repos\/\{owner\}\/|user\/starred\/\{owner\}\/)/;

const operations = Object.entries(openapi.paths).flatMap(([path, item]) =>
  ON_REPOSITORY.test(path) && !isTwin(path)
    ? Object.entries(item)
        .filter(([method]) => METHODS.has(method))
        .map(([, described]) => described)
    : [],
);

function resolved<T extends { readonly $ref?: string }>(value: T): T {
  if (value.$ref === undefined) return value;
  const parts = value.$ref.split("/").slice(1);
  return parts.reduce((at: unknown, key) => (at as Record<string, unknown>)[key], openapi) as T;
}

/** Every property below a schema, as the chain of names to it, with the schema's own name. */
function* properties(
  schema: Schema | undefined,
  chain: readonly string[] = [],
  open: readonly string[] = [],
): Generator<{ readonly chain: readonly string[]; readonly schemaName: string }> {
  if (schema === undefined || chain.length > 7) return;
  const schemaName = schema.$ref?.split("/").at(-1) ?? "";
  if (schemaName !== "" && open.includes(schemaName)) return;
  yield { chain, schemaName };
  const inside = schemaName === "" ? open : [...open, schemaName];
  const { allOf = [], anyOf = [], oneOf = [], items, properties: own = {} } = resolved(schema);
  for (const part of [...allOf, ...anyOf, ...oneOf]) yield* properties(part, chain, inside);
  yield* properties(items, chain, inside);
  for (const [name, value] of Object.entries(own))
    yield* properties(value, [...chain, name], inside);
}

const schemasOf = (media: Media | undefined): readonly Schema[] =>
  media === undefined
    ? []
    : Object.values(resolved(media).content ?? {}).flatMap(({ schema }) => schema ?? []);

const classified = new Map<string, string[]>();
for (const [table, names] of Object.entries({
  WITHIN,
  DESCRIBES_LINKED,
  REACHES_FURTHER: Object.keys(REACHES_FURTHER),
  JUDGED_BY_BODY,
  CREDENTIALS: [...ACTION_TABLES.CREDENTIALS],
}))
  for (const name of names) classified.set(name, [...(classified.get(name) ?? []), table]);

test("every operation on a repository stands in exactly one table", () => {
  expect(operations.length).toBeGreaterThanOrEqual(525);
  expect(
    operations
      .map(({ operationId }) => [operationId, classified.get(operationId) ?? []] as const)
      .filter(([, tables]) => tables.length !== 1),
  ).toEqual([]);
});

const isWithin = ({ operationId }: Described): boolean => WITHIN.has(operationId);

/** Schemas that describe a repository; as `repository` it is the one of the path. */
const REPOSITORY_SCHEMAS =
  /^(?:(?:nullable-)?(?:full-|minimal-|simple-|team-)?repository|(?:nullable-)?pull-request(?:-simple)?)$/;
const TEAM_SCHEMAS = /^(?:nullable-)?team/;

test("an answer that describes another repository is none of those within", () => {
  const found = operations.filter(isWithin).flatMap(({ operationId, responses = {} }) =>
    Object.entries(responses)
      .filter(([status]) => status.startsWith("2"))
      .flatMap(([, response]) => schemasOf(response))
      .flatMap((schema) => [...properties(schema)])
      .filter(
        ({ chain, schemaName }) =>
          (REPOSITORY_SCHEMAS.test(schemaName) && chain.at(-1) !== "repository") ||
          // A team's parent is a team, whose repositories are not shown.
          (!TEAM_SCHEMAS.test(schemaName) &&
            /^(?:parent|source|head_repository|template_repository|private_fork|forkee)$/.test(
              chain.at(-1) ?? "",
            )),
      )
      .map(({ chain }) => `${operationId}: ${chain.join(".")}`),
  );
  const reviewed = [
    // Teams again, whose schema has no name there.
    /: (?:restrictions\.)?teams\.parent$/,
    // The branch and folder of a site's source, and the line of a file.
    /^repos\/(?:get-pages|create-pages-site): source$/,
    /^repos\/codeowners-errors: errors\.source$/,
  ];
  expect(found.filter((line) => !reviewed.some((pattern) => pattern.test(line)))).toEqual([]);
});

test("a parameter or a body that could name another repository was looked at", () => {
  const NAMES =
    /repo(?!rt|sitory_access)|owner|organi[sz]ation|fork|parent|(?:^|_)head(?:_|$)|issue_id|upstream|source|vcs|new_name$/i;
  const found = operations.filter(isWithin).flatMap((operation) => {
    const { operationId, requestBody, parameters = [] } = operation;
    const query = parameters
      .map(resolved)
      .flatMap(({ name }) => (name === undefined ? [] : [[name]]));
    const body = schemasOf(requestBody).flatMap((schema) =>
      [...properties(schema)].map(({ chain }) => chain),
    );
    return [...query, ...body]
      .filter((chain) => NAMES.test(chain.at(-1) ?? ""))
      .map((chain) => `${operationId}: ${chain.join(".")}`);
  });
  const reviewed = [
    // The path's own.
    /: (?:template_)?(?:owner|repo)$/,
    // Branches and commits of the repository itself; `:` in them is refused.
    /^git\/create-commit: parents$|: head_sha$|^repos\/merge: head$|^agent-tasks\/create-task-in-repo: head_ref$/,
    /^repos\/rename-branch: new_name$|^issues\/update-label: new_name$/,
    // Settings of the repository about its forks and code owners, and the folder of a site.
    /require_code_owner_reviews?$|allow_fork_syncing$|: source$/,
    /from_fork_pull_requests$|require_approval_for_fork_pr_workflows$|github_owned_allowed$/,
    // Filters of a list of the repository's own alerts, and of what is stored of it.
    /^secret-scanning\/list-alerts-for-repo: (?:is_multi_repo|owner_email_hash)$/,
    /includes_parents$|multi_repo_permissions_opt_out$|source_location$/,
  ];
  expect([...new Set(found)].filter((line) => !reviewed.some((p) => p.test(line)))).toEqual([]);
});
