/**
 * Resolves a GraphQL request to the actions of all of its operations together. `operationName`,
 * `@skip` and `@include` are ignored: everything that may run must be permitted.
 */
import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  Kind,
  OperationTypeNode,
  type OperationDefinitionNode,
} from "graphql";
import type {
  ActionResolution,
  ResolvedAction,
  ServiceResource,
  ServiceRequest,
} from "../../contract.ts";
import { isJsonObject, type StrictJson } from "../../strict-json.ts";
import { METADATA_READ } from "../rest-actions.ts";
import { namedRepository, repositoryResource, unscopable } from "../repository.ts";
import { searchScope } from "../search-scope.ts";
import { unresolved } from "../unresolved.ts";
import { readGraphqlBody } from "./body.ts";
import { categoriesOfMutation, categoryOfType } from "./categories.ts";
import { fieldOf } from "./schema.ts";
import { Touched, Unjudged } from "./touched.ts";
import { argumentOf, type Variables, variablesOf } from "./values.ts";
import { Walk } from "./walk.ts";

/** Root fields about GitHub itself: neither they nor their subfields concern a repository. */
const META = new Set([
  "__typename",
  "__schema",
  "__type",
  "rateLimit",
  "meta",
  "codeOfConduct",
  "codesOfConduct",
  "license",
  "licenses",
]);
const REST =
  "Use the REST API, whose paths name what they are about: gh api repos/{owner}/{repo}/...";

export function resolveGraphql(request: ServiceRequest): ActionResolution {
  if (request.method !== "POST")
    return unresolved("GraphQL is asked by POST", "POST the query as JSON");
  const body = readGraphqlBody(request);
  if (body.kind === "refused") return unresolved(body.reason, body.hint);
  try {
    return { kind: "resolved", actions: actionsOf(body.document, body.variables) };
  } catch (error) {
    if (error instanceof Unjudged) return unresolved(error.message, error.hint);
    // Nesting beyond the stack, or a defect of ours: in doubt, deny.
    return unresolved("The query cannot be evaluated", REST);
  }
}

function actionsOf(
  document: DocumentNode,
  sent: Readonly<Record<string, StrictJson>>,
): readonly ResolvedAction[] {
  const fragments = new Map<string, FragmentDefinitionNode>();
  const operations: OperationDefinitionNode[] = [];
  for (const definition of document.definitions) {
    if (definition.kind === Kind.OPERATION_DEFINITION) operations.push(definition);
    else if (definition.kind !== Kind.FRAGMENT_DEFINITION || fragments.has(definition.name.value)) {
      throw new Unjudged(
        "The document holds more than operations and fragments, or two fragments of one name",
        "Send one query",
      );
    } else fragments.set(definition.name.value, definition);
  }
  if (operations.length === 0)
    throw new Unjudged("The document holds no operation", "Send a query or a mutation");
  const walk = new Walk(fragments);
  const actions = operations.flatMap((operation) =>
    operationActions(operation, variablesOf(operation, sent), walk),
  );
  return merged(actions);
}

function operationActions(
  operation: OperationDefinitionNode,
  variables: Variables,
  walk: Walk,
): ResolvedAction[] {
  if (operation.operation === OperationTypeNode.SUBSCRIPTION)
    throw new Unjudged("Subscriptions are not served", "Ask again from time to time");
  const mutates = operation.operation === OperationTypeNode.MUTATION;
  const root = mutates ? "Mutation" : "Query";
  const actions: ResolvedAction[] = [];
  for (const { field, type } of walk.fields(operation.selectionSet, root, "anywhere", undefined)) {
    if (type !== root)
      throw new Unjudged("The query has a fragment of another type than its root", "Leave it out");
    actions.push(
      ...(mutates ? mutationActions(field, variables, walk) : queryActions(field, variables, walk)),
    );
  }
  return actions;
}

function queryActions(field: FieldNode, variables: Variables, walk: Walk): ResolvedAction[] {
  const name = field.name.value;
  if (META.has(name)) return [{ action: "meta:read", resources: [{ kind: "none" }] }];
  const target = fieldOf("Query", name);
  if (target.kind === "unknown")
    throw new Unjudged(`What ${name} asks for is not known here`, REST);
  if (name === "viewer" && endsThere(field, walk))
    return [{ action: "users:read", resources: [{ kind: "none" }] }];
  const scoped = confinedTo(field, variables);
  const touched = new Touched(
    scoped ?? [unscopable(`${name} is not about a repository that it names`)],
  );
  if (target.kind === "object")
    walk.below(
      field.selectionSet,
      target.type,
      scoped === undefined ? "anywhere" : "inside",
      touched,
    );
  if (name === "search") touched.category("search");
  if (touched.categories.size === 0)
    touched.category((target.kind === "object" && categoryOfType(target.type)) || "repos");
  return reads(touched);
}

function reads({ categories, resources }: Touched): ResolvedAction[] {
  return [...categories].map((category) =>
    category === "metadata"
      ? { ...METADATA_READ, resources }
      : { action: `${category}:read`, resources },
  );
}

/** Returns the repositories of a root field, if it names them. */
function confinedTo(
  field: FieldNode,
  variables: Variables,
): readonly ServiceResource[] | undefined {
  const text = (argument: string): string | undefined => {
    const value = argumentOf(field, argument, variables);
    return typeof value === "string" ? value : undefined;
  };
  if (field.name.value === "search") {
    const [search, kind] = [text("query"), text("type")];
    return search !== undefined && kind !== undefined && kind.startsWith("ISSUE")
      ? searchScope(search)
      : undefined;
  }
  if (field.name.value !== "repository") return undefined;
  const resource = repositoryResource(text("owner") ?? "", text("name") ?? "");
  if (resource === undefined)
    throw new Unjudged(
      "`repository` names no repository, by `owner` and `name`",
      "Give both, as text or as variables with values",
    );
  return [resource];
}

/** Returns whether only leaf fields are requested: the identity of the caller. */
function endsThere(field: FieldNode, walk: Walk): boolean {
  if (field.selectionSet === undefined) return true;
  const touched = new Touched([]);
  walk.below(field.selectionSet, "User", "name", touched);
  return (
    touched.resources.length === 0 &&
    [...walk.fields(field.selectionSet, "User", "name", undefined)].every(
      (each) => each.field.selectionSet === undefined,
    )
  );
}

function mutationActions(field: FieldNode, variables: Variables, walk: Walk): ResolvedAction[] {
  const name = field.name.value;
  if (name === "__typename") return [{ action: "meta:read", resources: [{ kind: "none" }] }];
  const categories = categoriesOfMutation(name);
  const target = fieldOf("Mutation", name);
  if (categories === undefined || target.kind !== "object")
    throw new Unjudged(`The mutation ${name} is not known here`, REST);
  const resources = [
    committedTo(field, variables) ??
      unscopable(`${name} names what it changes by ids, which may be of any repository; ${REST}`),
  ];
  // Fields that only name the changed object reveal nothing new to the caller.
  const answer = new Touched(resources);
  walk.named(field.selectionSet, target.type, answer);
  const [category = "", ...effects] = categories;
  return [
    // Named by the mutation; for policies that name only the category, it is the category's write.
    { action: `graphql:${name}`, broader: [`${category}:write`], resources },
    ...effects.map((effect) => ({ action: `${effect}:write`, resources })),
    ...reads(answer),
  ];
}

/** `createCommitOnBranch` may name its repository. */
function committedTo(field: FieldNode, variables: Variables): ServiceResource | undefined {
  if (field.name.value !== "createCommitOnBranch") return undefined;
  const input = argumentOf(field, "input", variables);
  const branch = isJsonObject(input) ? input["branch"] : undefined;
  if (
    !isJsonObject(branch) ||
    (branch["id"] ?? null) !== null ||
    typeof branch["repositoryNameWithOwner"] !== "string"
  )
    return undefined;
  return namedRepository(branch["repositoryNameWithOwner"]);
}

/** Returns one entry per action, with all of its resources. */
function merged(actions: readonly ResolvedAction[]): readonly ResolvedAction[] {
  const byAction = new Map<
    string,
    Pick<ResolvedAction, "broader"> & { readonly all: Map<string, ServiceResource> }
  >();
  for (const { action, broader, resources } of actions) {
    const known = byAction.get(action) ?? {
      ...(broader === undefined ? {} : { broader }),
      all: new Map<string, ServiceResource>(),
    };
    byAction.set(action, known);
    for (const resource of resources)
      known.all.set(
        resource.kind === "scoped" ? `s${resource.value.toLowerCase()}` : JSON.stringify(resource),
        resource,
      );
  }
  if (byAction.size === 0) throw new Unjudged("The query asks for nothing", "Ask for a field");
  return [...byAction].map(([action, { all, ...more }]) => ({
    action,
    ...more,
    resources: [...all.values()],
  }));
}
