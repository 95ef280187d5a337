/**
 * Finds every place that a body, a parameter or a path names: projects, buckets, and resources
 * without a project. Google's APIs use uniform names, so one method covers all of them: full names
 * (`projects/p/topics/t`, with or without the API's host), addresses of storage (`gs://b/o`), and
 * members named after their content (`projectId`, `bucket`).
 *
 * Programs are not examined (scripts, images of running containers, workflows): they act as the
 * service account that runs them.
 */
import type { ServiceResource } from "../contract.ts";
import { jsonMembers, type StrictJson } from "../strict-json.ts";
import { type BucketProjects, project, projectOfBucket, unscopable } from "./resources.ts";

/** Maximum number of places that are evaluated individually. */
const MAX_PLACES = 200;

/** Collects places without duplicates. */
export class GcpPlaces {
  readonly #buckets: BucketProjects;
  readonly #found = new Map<string, ServiceResource>();

  constructor(buckets: BucketProjects) {
    this.#buckets = buckets;
  }

  get resources(): readonly ServiceResource[] {
    return this.#found.size > MAX_PLACES
      ? [unscopable("the request names too many resources")]
      : [...this.#found.values()];
  }

  /** Adds every member of a body, except those that contain the caller's own data. */
  addDocument(document: StrictJson, data?: ReadonlySet<string>): void {
    for (const { key, value } of jsonMembers(document, data)) {
      if (this.#found.size > MAX_PLACES) return;
      if (SQL_MEMBERS.test(key) && typeof value === "string" && value !== "")
        this.#add(unscopable("a query may read from any project"));
      else if (DRIVE_MEMBERS.test(key)) this.#add(unscopable("files of Drive are in no project"));
      else if (typeof value === "string" || typeof value === "number")
        this.addMember(key, String(value));
    }
  }

  addMember(name: string, value: string): void {
    if (value === "") return;
    const isPath = /[/\s]/.test(value);
    if (PROJECT_MEMBERS.test(name) && !isPath) this.#add(project(value));
    else if (BUCKET_MEMBERS.test(name) && !isPath) this.#addBucket(value);
    else if (TABLE_MEMBERS.test(name)) this.#addTable(value);
    this.addText(value);
  }

  /**
   * Finds names and addresses in a text; in prose, which contains spaces, only at its beginning.
   */
  addText(text: string): void {
    const trimmed = text.trimStart();
    if (/\s/.test(trimmed) && !LOCATOR_START.test(trimmed)) return;
    if (!MAY_LOCATE.test(trimmed)) return;
    this.#addNames(trimmed);
    const decoded = decoded1(trimmed);
    if (decoded !== trimmed) this.#addNames(decoded);
  }

  #addNames(text: string): void {
    for (const { pattern, kind } of NAMES) {
      for (const [, name = ""] of text.matchAll(pattern)) {
        if (this.#found.size > MAX_PLACES) return;
        if (kind === "bucket") this.#addBucket(name);
        else if (kind === "project") this.#add(project(name));
        else this.#add(unscopable(`the request names ${kind}`));
      }
    }
  }

  /**
   * Adds `project.dataset.table` or `project:dataset.table`; without a project it is in the
   * caller's own.
   */
  #addTable(value: string): void {
    const name = /^`?([A-Za-z0-9:.-]{1,80}?)[:.][A-Za-z0-9_-]+\.[A-Za-z0-9_$*-]+`?$/.exec(
      value,
    )?.[1];
    if (name !== undefined) this.#add(project(name));
  }

  #addBucket(name: string): void {
    this.#add(projectOfBucket(name, this.#buckets));
  }

  #add(resource: ServiceResource): void {
    const key = resource.kind === "scoped" ? `${resource.key}=${resource.value}` : resource.kind;
    this.#found.set(key, resource);
  }
}

const PROJECT_MEMBERS = /(?:^|_|[a-z])projects?(?:_?(?:ids?|numbers?|names?))?$/i;
const BUCKET_MEMBERS = /bucket(?:_?(?:name|id))?$/i;
const TABLE_MEMBERS = /(?:table|dataset|view)(?:_?(?:id|name|uri))?$/i;
/** Members of BigQuery and its transfers that contain SQL statements, or represent a table. */
const SQL_MEMBERS = /^(?:query|definitionBody|definition_body|filterPredicate|filter_predicate)$/;
const DRIVE_MEMBERS = /^(?:google)?_?drive_?(?:source|ids?|folder)?s?$/i;

const LOCATOR_START =
  /^(?:gs|bq):\/\/|^(?:\/\/|https?:\/\/)?[a-z0-9.-]*googleapis\.com\/|^\/?projects\/|^https:\/\/(?:storage\.cloud|drive|docs)\.google\.com\//i;
/** A cheap filter, because most texts name no place. */
const MAY_LOCATE =
  /projects(?:\/|%2f)|:\/\/|googleapis\.com|organizations\/|folders\/|billingAccounts\/|gcr\.io|pkg\.dev|gserviceaccount\.com|:[a-z]{1,20}-[a-z]{1,20}\d{1,2}:/i;

type Kind = "project" | "bucket" | `${"a" | "an"} ${string}`;

const END = "[^/?#&,;\"'`\\s]";
const LOCATION = "[a-z]+-[a-z]+[0-9]{1,2}";
const NAMES: readonly { readonly pattern: RegExp; readonly kind: Kind }[] = [
  // Storage names a bucket `projects/_/buckets/b`.
  { kind: "project", pattern: new RegExp(`(?<![\\w-])projects/(?!_/buckets/)(${END}+)`, "gi") },
  { kind: "bucket", pattern: new RegExp(`(?<![\\w-])projects/_/buckets/(${END}+)`, "gi") },
  { kind: "bucket", pattern: new RegExp(`gs://(${END}+)`, "gi") },
  {
    kind: "bucket",
    pattern: new RegExp(
      "(?:storage|www)\\.(?:googleapis|mtls\\.googleapis|cloud\\.google)\\.com(?::\\d+)?/" +
        `(?:(?:download|upload)/)?storage/v1/b/(${END}+)`,
      "gi",
    ),
  },
  {
    kind: "bucket",
    pattern: new RegExp(
      "storage\\.(?:googleapis|mtls\\.googleapis|cloud\\.google)\\.com(?::\\d+)?/(?!(?:(?:" +
        `download|upload)/)?storage/v1/|projects/)(${END}+)`,
      "gi",
    ),
  },
  { kind: "bucket", pattern: /\/\/([a-z0-9][a-z0-9._-]{1,220})\.storage\.googleapis\.com/gi },
  { kind: "project", pattern: /(?:bq|bigquery):\/\/([a-z0-9-]+(?::[a-z0-9-]+)?)/gi },
  { kind: "project", pattern: new RegExp(`(?:^|[./@-])gcr\\.io/(${END}+)`, "gi") },
  { kind: "project", pattern: new RegExp(`-docker\\.pkg\\.dev/(${END}+)`, "gi") },
  { kind: "project", pattern: /@([a-z0-9.-]{1,80}?)\.iam\.gserviceaccount\.com/gi },
  { kind: "project", pattern: /(?:^|[^a-z0-9-])([a-z0-9-]{1,80})@appspot\.gserviceaccount\.com/gi },
  { kind: "project", pattern: /(?<!\d)(\d{1,20})-compute@developer\.gserviceaccount\.com/gi },
  // A database of Cloud SQL: `project:region:instance`.
  {
    kind: "project",
    pattern: new RegExp(
      `(?:^|,)((?:[a-z0-9.-]{1,60}:)?[a-z][a-z0-9-]{1,60}):${LOCATION}:[a-z0-9-]{1,98}(?=,|$)`,
      "gi",
    ),
  },
  {
    kind: "an organization, a folder or a billing account",
    pattern:
      /^(?:(?:https?:)?\/\/[a-z0-9.-]+\/(?:v\d\w*\/)?)?\/?(?:organizations|folders|billingAccounts)\/([^/]+)/gi,
  },
  { kind: "a file of Drive", pattern: /\/\/((?:drive|docs|sheets)\.google\.com)\//gi },
];

function decoded1(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
