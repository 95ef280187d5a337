/**
 * Walks the fields of a document by GitHub's schema. Below `repository(owner, name)`, everything
 * belongs to that repository until a field leads out of it: to another repository, to the objects
 * of a person or an organisation, to issues that are only linked. Names and ids of such objects may
 * be read (the author, the fork's parent); everything else is out of scope.
 */
import { type FieldNode, type FragmentDefinitionNode, Kind, type SelectionSetNode } from "graphql";
import { categoryOfType } from "./categories.ts";
import { fieldOf, isType } from "./schema.ts";
import { type Touched, Unjudged } from "./touched.ts";

/**
 * `inside` a repository; at the `name` of an object outside; or anywhere, if it no longer matters.
 */
export type SelectionPlace = "inside" | "name" | "anywhere";

export type Fragments = ReadonlyMap<string, FragmentDefinitionNode>;

/** Fields that return a credential, for any type. */
const CREDENTIAL = /token|secret|password|recoverycode/i;

/** Fields that name an object outside. */
const NAMING = new Set(
  (
    "id databaseId fullDatabaseId name nameWithOwner login slug number url resourcePath " +
    "sshUrl oid isPrivate isFork isArchived isInOrganization " +
    "viewerPermission totalCount hasNextPage hasPreviousPage startCursor endCursor cursor"
  ).split(" "),
);
/** Fields whose subfields still only name an object. */
const NAMING_OBJECTS = new Set(
  "nodes edges node pageInfo owner repository organization defaultBranchRef project column".split(
    " ",
  ),
);
/** Categories of objects that belong to people or organisations, and not to the repository. */
const PROFILES = new Set(["users", "orgs", "teams", "projects"]);
/** Profile fields of those; a person's profile is completely public. */
const PROFILE_FIELDS = new Set("avatarUrl closed description isVerified public title".split(" "));
export const OUTSIDE_CATEGORIES = new Set([
  ...PROFILES,
  "enterprise-admin",
  "packages",
  "gists",
  "sponsors",
  "migrations",
  "marketplace",
]);
const REPOSITORY = /^Repository(Connection|Edge|Node|Info)?$/;
/** Fields from an object of the repository to one that may belong to another. */
export const LINKS = new Set([
  "CheckSuite.matchingPullRequests",
  "Commit.associatedPullRequests",
  "Ref.associatedPullRequests",
  "Ref.compare",
  "RepositoryRuleset.source",
  "Issue.closedByPullRequestsReferences",
  "Issue.parent",
  "Issue.subIssues",
  "Issue.trackedInIssues",
  "Issue.trackedIssues",
  "LinkedBranch.ref",
  "PullRequest.closingIssuesReferences",
  "PullRequest.headRef",
]);
const MAX_FIELDS = 20_000;
/** Maximum nesting of selections and fragments, about ten times that of real clients. */
const MAX_DEPTH = 200;
const SIMPLER = "Ask for less, or use the REST API: gh api repos/{owner}/{repo}/...";

export class Walk {
  readonly #fragments: Fragments;
  readonly #seen = new Map<Touched, Set<string>>();
  readonly #open = new Set<string>();
  #fields = 0;
  #depth = 0;

  constructor(fragments: Fragments) {
    this.#fragments = fragments;
  }

  /**
   * Yields the fields of a selection, including those of its fragments. `type` is the narrowest
   * type in the document.
   */
  *fields(
    set: SelectionSetNode,
    type: string,
    place: SelectionPlace,
    touched: Touched | undefined,
  ): Generator<{ readonly field: FieldNode; readonly type: string }> {
    if (++this.#depth > MAX_DEPTH)
      throw new Unjudged("The query is nested too deeply to be evaluated", SIMPLER);
    for (const selection of set.selections) {
      if (++this.#fields > MAX_FIELDS)
        throw new Unjudged("The query has too many fields to be evaluated", SIMPLER);
      if (selection.kind === Kind.FIELD) yield { field: selection, type };
      else if (selection.kind === Kind.INLINE_FRAGMENT) {
        yield* this.fields(
          selection.selectionSet,
          conditionOf(selection.typeCondition?.name.value ?? type),
          place,
          touched,
        );
      } else yield* this.#spread(selection.name.value, place, touched);
    }
    this.#depth -= 1;
  }

  *#spread(
    name: string,
    place: SelectionPlace,
    touched: Touched | undefined,
  ): Generator<{ readonly field: FieldNode; readonly type: string }> {
    const fragment = this.#fragments.get(name);
    if (fragment === undefined)
      throw new Unjudged("The query spreads a fragment that it does not define", "Define it");
    if (this.#open.has(name))
      throw new Unjudged("The query's fragments spread each other in a circle", "Break the circle");
    if (touched !== undefined) {
      // A fragment has the same effect each time at one place: without this check, ten fragments
      // could expand to billions of fields.
      const seen = this.#seen.get(touched) ?? new Set<string>();
      this.#seen.set(touched, seen);
      if (seen.has(`${place} ${name}`)) return;
      seen.add(`${place} ${name}`);
    }
    this.#open.add(name);
    yield* this.fields(
      fragment.selectionSet,
      conditionOf(fragment.typeCondition.name.value),
      place,
      touched,
    );
    this.#open.delete(name);
  }

  /** Walks everything below a field of type `type`. */
  below(
    set: SelectionSetNode | undefined,
    type: string,
    place: SelectionPlace,
    touched: Touched,
  ): void {
    if (set === undefined) return;
    for (const { field, type: parent } of this.fields(set, type, place, touched))
      this.#field(field, parent, place, touched);
  }

  /** Walks a mutation's payload, in which each object is only named. */
  named(set: SelectionSetNode | undefined, payload: string, touched: Touched): void {
    if (set === undefined) return;
    for (const { field, type } of this.fields(set, payload, "name", touched)) {
      const target = fieldOf(type, field.name.value);
      if (target.kind === "object") this.below(field.selectionSet, target.type, "name", touched);
      else if (field.selectionSet !== undefined || CREDENTIAL.test(field.name.value))
        throw new Unjudged(`What ${field.name.value} answers is not known here`, SIMPLER);
    }
  }

  #field(field: FieldNode, parent: string, around: SelectionPlace, touched: Touched): void {
    const name = field.name.value;
    // A union may lead from a pull request to its reviewer: a person's objects do not belong to the
    // repository.
    const place =
      around === "inside" && OUTSIDE_CATEGORIES.has(categoryOfType(parent)) ? "name" : around;
    if (name === "__typename") return;
    if (CREDENTIAL.test(name))
      throw new Unjudged(`The query asks for ${name}, which may be a credential`, "Leave it out");
    const target = fieldOf(parent, name);
    if (field.selectionSet === undefined) {
      this.#leaf(name, parent, place, touched);
      return;
    }
    if (target.kind !== "object")
      throw new Unjudged(`Where ${parent}.${name} leads is not known here`, SIMPLER);
    const { type } = target;
    const next = this.#next(field, parent, type, place);
    if (next === "anywhere" && place !== "anywhere") touched.leaves(`${parent}.${name}`);
    this.below(field.selectionSet, type, next, touched);
  }

  #leaf(name: string, parent: string, place: SelectionPlace, touched: Touched): void {
    const category = categoryOfType(parent);
    if (place !== "name") {
      touched.category(category);
      return;
    }
    if (category === "projects") touched.category(category);
    if (category === "users" || NAMING.has(name)) return;
    if (PROFILES.has(category) && PROFILE_FIELDS.has(name)) return;
    touched.category(category);
    touched.leaves(`${parent}.${name}`);
  }

  #next(field: FieldNode, parent: string, type: string, place: SelectionPlace): SelectionPlace {
    const name = field.name.value;
    if (place === "anywhere") return "anywhere";
    // With arguments it selects another object: `owner { repository(name: "other") }`.
    if (place === "name")
      return NAMING_OBJECTS.has(name) && (field.arguments?.length ?? 0) === 0 ? "name" : "anywhere";
    const category = categoryOfType(type);
    if (REPOSITORY.test(type) || PROFILES.has(category) || LINKS.has(`${parent}.${name}`))
      return "name";
    // The target of a timeline event may belong to any repository.
    if (parent.endsWith("Event")) return "name";
    return OUTSIDE_CATEGORIES.has(category) ? "anywhere" : "inside";
  }
}

function conditionOf(type: string): string {
  if (!isType(type))
    throw new Unjudged("The query has a fragment on a type that is not known here", SIMPLER);
  return type;
}
