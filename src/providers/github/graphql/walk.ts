/**
 * Follows the fields of a document by GitHub's schema. Below `repository(owner, name)` everything
 * belongs to that repository until a field leads out of it: to another repository, to what a person
 * or organisation has, to issues that are only linked. Names and ids of such may be read (who wrote
 * it, which fork it came from), all else counts as outside.
 */
import { type FieldNode, type FragmentDefinitionNode, Kind, type SelectionSetNode } from "graphql";
import { categoryOfType } from "./categories.ts";
import { fieldOf, isType } from "./schema.ts";
import { type Touched, Unjudged } from "./touched.ts";

/**
 * `inside` a repository; at the `name` of something outside; or anywhere, where it does not matter
 * any more.
 */
export type Place = "inside" | "name" | "anywhere";

export type Fragments = ReadonlyMap<string, FragmentDefinitionNode>;

/** Fields that hand out a credential, whatever the type. */
const CREDENTIAL = /token|secret|password|recoverycode/i;

/** Fields by which a thing outside is named. */
const NAMING = new Set(
  (
    "id databaseId fullDatabaseId name nameWithOwner login slug number url resourcePath sshUrl oid isPrivate isFork isArchived isInOrganization " +
    "viewerPermission totalCount hasNextPage hasPreviousPage startCursor endCursor cursor"
  ).split(" "),
);
/** Fields that lead on to what still only names. */
const NAMING_OBJECTS = new Set(
  "nodes edges node pageInfo owner repository organization defaultBranchRef project column".split(
    " ",
  ),
);
/** Categories of things that belong to people or organisations, and not to the repository. */
const PROFILES = new Set(["users", "orgs", "teams", "projects"]);
/** Fields by which those present themselves; a person's profile is public whole. */
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
/** Fields from a thing of the repository to one that may be of another. */
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
/** Of selections within selections and fragments: what a client sends has a tenth of it. */
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
   * The fields of a selection, with those of its fragments. `type` is the narrowest that the
   * document tells.
   */
  *fields(
    set: SelectionSetNode,
    type: string,
    place: Place,
    touched: Touched | undefined,
  ): Generator<{ readonly field: FieldNode; readonly type: string }> {
    if (++this.#depth > MAX_DEPTH)
      throw new Unjudged("The query is nested too deeply to be judged", SIMPLER);
    for (const selection of set.selections) {
      if (++this.#fields > MAX_FIELDS)
        throw new Unjudged("The query has too many fields to be judged", SIMPLER);
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
    place: Place,
    touched: Touched | undefined,
  ): Generator<{ readonly field: FieldNode; readonly type: string }> {
    const fragment = this.#fragments.get(name);
    if (fragment === undefined)
      throw new Unjudged("The query spreads a fragment that it does not define", "Define it");
    if (this.#open.has(name))
      throw new Unjudged("The query's fragments spread each other in a circle", "Break the circle");
    if (touched !== undefined) {
      // What a fragment touches at one place it touches there again: without this, ten fragments
      // could stand for billions of fields.
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

  /** Everything below a field that leads to `type`. */
  below(set: SelectionSetNode | undefined, type: string, place: Place, touched: Touched): void {
    if (set === undefined) return;
    for (const { field, type: parent } of this.fields(set, type, place, touched))
      this.#field(field, parent, place, touched);
  }

  /** Of a mutation's payload: each thing in it, as something that is named. */
  named(set: SelectionSetNode | undefined, payload: string, touched: Touched): void {
    if (set === undefined) return;
    for (const { field, type } of this.fields(set, payload, "name", touched)) {
      const target = fieldOf(type, field.name.value);
      if (target.kind === "object") this.below(field.selectionSet, target.type, "name", touched);
      else if (field.selectionSet !== undefined || CREDENTIAL.test(field.name.value))
        throw new Unjudged(`What ${field.name.value} answers is not known here`, SIMPLER);
    }
  }

  #field(field: FieldNode, parent: string, around: Place, touched: Touched): void {
    const name = field.name.value;
    // A union may lead from a pull request to its reviewer: what a person has is not the
    // repository's.
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

  #leaf(name: string, parent: string, place: Place, touched: Touched): void {
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

  #next(field: FieldNode, parent: string, type: string, place: Place): Place {
    const name = field.name.value;
    if (place === "anywhere") return "anywhere";
    // With arguments it asks for another thing of that name: `owner { repository(name: "other") }`.
    if (place === "name")
      return NAMING_OBJECTS.has(name) && (field.arguments?.length ?? 0) === 0 ? "name" : "anywhere";
    const category = categoryOfType(type);
    if (REPOSITORY.test(type) || PROFILES.has(category) || LINKS.has(`${parent}.${name}`))
      return "name";
    // What an event of a timeline points to may be of any repository.
    if (parent.endsWith("Event")) return "name";
    return OUTSIDE_CATEGORIES.has(category) ? "anywhere" : "inside";
  }
}

function conditionOf(type: string): string {
  if (!isType(type))
    throw new Unjudged("The query has a fragment on a type that is not known here", SIMPLER);
  return type;
}
