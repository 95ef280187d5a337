/** Determines the API, the method and the project of a request to Google. */
import type { ActionResolution, ServiceResource, ServiceRequest } from "../contract.ts";
import { parseQuery, repeatedName, type Parameters } from "../raw-url.ts";
import { plainSegments } from "../url-path.ts";
import { parseStrictJson, type StrictJson } from "../strict-json.ts";
import { googleHost } from "./hosts.ts";
import { GcpPlaces } from "./locators.ts";
import { matchMethods, type Match } from "./methods.ts";
import { isObjectPath, objectSegments } from "./object-path.ts";
import { reachesFurther } from "./reach.ts";
import { type BucketProjects, project, projectOfBucket, unscopable } from "./resources.ts";

/** Parameters with a dollar sign that every API knows, and that do not affect the action. */
const SYSTEM = new Set(["$.xgafv", "$alt", "$fields", "$prettyPrint", "$unique"]);
const PROJECT_PARAMETERS = ["project", "projectId", "userProject"];

/**
 * Methods whose responses are credentials: keys of service accounts, signatures in their names,
 * keys of APIs and of storage.
 */
const CREDENTIAL_ACTIONS: ReadonlySet<string> = new Set([
  "aiplatform.featureViews.generateFetchAccessToken",
  "aiplatform.notebookExecutionJobs.generateAccessToken",
  "aiplatform.notebookRuntimes.generateAccessToken",
  "apikeys.keys.create",
  "apikeys.keys.getKeyString",
  "cloudbuild.repositories.accessReadToken",
  "cloudbuild.repositories.accessReadWriteToken",
  "firestore.userCreds.create",
  "firestore.userCreds.resetPassword",
  "iam.credentials.create",
  "iam.keys.create",
  "iam.keys.upload",
  "iam.serviceAccounts.signBlob",
  "iam.serviceAccounts.signJwt",
  "redis.authTokens.get",
  "redis.authTokens.list",
  "redis.instances.getAuthString",
  "redis.tokenAuthUsers.addAuthToken",
  "sqladmin.connect.generateEphemeral",
  "sqladmin.sslCerts.createEphemeral",
  "sqladmin.sslCerts.insert",
  "storage.hmacKeys.create",
]);
const CREDENTIAL_RPCS =
  /^(?:CreateServiceAccountKey|UploadServiceAccountKey|SignBlob|SignJwt|GetKeyString|CreateKey|CreateHmacKey|GenerateAccessToken|GenerateIdToken|GenerateEphemeralCert|FetchReadToken|FetchReadWriteToken|ResetUserPassword|CreateUserCreds|Generate[A-Za-z]*AccessToken)$/;
/** Parameters that filter or shape a response, or name something in a bucket. */
const WITHIN_PARAMETERS: ReadonlySet<string> = new Set([
  "delimiter",
  "endOffset",
  "fields",
  "filter",
  "matchGlob",
  "name",
  "orderBy",
  "pageToken",
  "prefix",
  "startOffset",
  "upload_id",
]);

/** By action: members of the body that contain the caller's own data, which names no resource. */
const DATA: readonly (readonly [action: RegExp, members: ReadonlySet<string>])[] = [
  [/^aiplatform\.(?:models|endpoints)\./, new Set(["text"])],
  [/^bigquery\.tabledata\.insertAll$/, new Set(["json"])],
  [/^datastore\.projects\.commit$/, new Set(["properties"])],
  [/^firestore\.documents\./, new Set(["fields"])],
  [/^pubsub\.topics\.publish$/, new Set(["attributes", "data"])],
  [/^spanner\.sessions\./, new Set(["params", "values"])],
  // Names of objects, of one bucket, and their own metadata.
  [
    /^storage\.(?:objects|folders|managedFolders)\./,
    new Set(["metadata", "name", "sourceObjects"]),
  ],
];

/** Content of an object or a file, which streams unread. */
const UPLOADS = /^(?:resumable\/)?upload\//;
export const UNREAD_PATHS = "(?:/resumable)?/upload/.*";
export const UNREAD_CONTENT_TYPES = "application/grpc(?:[+;].*)?";

function isUpload(segments: readonly string[]): boolean {
  return UPLOADS.test(segments.join("/"));
}

export function resolve(request: ServiceRequest, buckets: BucketProjects): ActionResolution {
  const host = googleHost(request.host);
  if (host === undefined)
    return unresolved(
      "This host is not a known API of Google",
      "Use the API's own host, such as storage.googleapis.com or " +
        "us-central1-aiplatform.googleapis.com.",
    );
  if (host.kind === "tokens")
    return unresolved(
      "This host answers with credentials, which an agent must not have",
      "Call the API itself: the proxy adds the access token.",
    );
  const query = parseQuery(request.query);
  const objects = isStorage(host.host) && isObjectPath(request.path);
  const path = objects
    ? { segments: objectSegments(request.path), trailingSlash: false }
    : plainSegments(request.path, { slashes: true });
  if (path?.segments === undefined || query === undefined)
    return unresolved(
      "The path or the query can be read in more than one way",
      objects
        ? "Percent-encode the object's name, its slashes and semicolons too, and leave " +
            "letters, digits and -._~ as they are."
        : "Send it without //, dot segments, semicolons, plus signs, and escapes that are " +
            "not needed.",
    );
  const doubt = doubtOfQuery(query);
  if (doubt !== undefined) return unresolved(doubt);
  if (objects) return resolveRest(request, host.host, path.segments, query, buckets);
  if (isGrpc(request)) return resolveGrpc(request, host.name);
  if (path.trailingSlash || /%3a/i.test(request.path.slice(request.path.lastIndexOf("/"))))
    return unresolved("The path ends in a slash, or in a name with an escaped colon");
  if (path.segments[0] === "batch")
    return unresolved("A batch holds many requests in one body", "Send them one by one.");
  return resolveRest(request, host.host, path.segments, query, buckets);
}

/** Returns whether a host serves the JSON API of Cloud Storage. */
function isStorage(host: string): boolean {
  return host === "storage.googleapis.com" || host === "www.googleapis.com";
}

function isGrpc(request: ServiceRequest): boolean {
  return /^application\/grpc(?:$|[+;])/.test(request.headers.get("content-type") ?? "");
}

function doubtOfQuery(query: Parameters): string | undefined {
  const odd = query.find(([name]) => name.startsWith("$") && !SYSTEM.has(name));
  if (odd !== undefined) return "The query holds a parameter with $ that is not known";
  const projects = query.filter(([name]) =>
    PROJECT_PARAMETERS.some((other) => other.toLowerCase() === name.toLowerCase()),
  );
  if (repeatedName(projects) !== undefined) return "A project stands twice in the query";
  return projects.some(([name]) => !PROJECT_PARAMETERS.includes(name))
    ? "A project stands in the query under a name that is nearly right"
    : undefined;
}

/** The method is the path; the project is in a body that is not decoded here. */
function resolveGrpc(request: ServiceRequest, api: string): ActionResolution {
  const [, service = "", method = ""] =
    /^\/google\.[A-Za-z0-9_.]+\.([A-Za-z0-9_]+)\/([A-Za-z0-9_]+)$/.exec(request.path) ?? [];
  if (request.method !== "POST" || service === "" || request.query !== "")
    return unresolved("This is not a known gRPC call");
  if (CREDENTIAL_RPCS.test(method))
    return unresolved(`${method} answers with credentials, which an agent must not have`);
  return {
    kind: "resolved",
    actions: [
      {
        action: `${api}.${service}.${method}`,
        resources: [
          unscopable(
            "a call of gRPC names its project in a body that is not read: use the REST transport",
          ),
        ],
      },
    ],
  };
}

function resolveRest(
  request: ServiceRequest,
  host: string,
  segments: readonly string[],
  query: Parameters,
  buckets: BucketProjects,
): ActionResolution {
  const resumed = isUpload(segments) && query.some(([name]) => name === "upload_id");
  // An upload that has begun continues, or ends, at the same path with other methods.
  const method =
    resumed && (request.method === "PUT" || request.method === "DELETE") ? "POST" : request.method;
  const matches = matchMethods(host, method, segments, !isObjectPath(request.path));
  if (matches.length === 0)
    return unresolved(
      "This is not a known method of this API",
      "Methods are those of Google's discovery documents.",
    );
  const credential = matches.find(({ action }) => CREDENTIAL_ACTIONS.has(action));
  if (credential !== undefined)
    return unresolved(
      `${credential.action} answers with credentials, which an agent must not have`,
    );
  const sent: Sent = { request, segments, query, buckets };
  return {
    kind: "resolved",
    actions: matches.map((match) => ({
      action: match.action,
      resources: resourcesOf(match, sent),
    })),
  };
}

interface Sent {
  readonly request: ServiceRequest;
  /** Segments of the path, decoded. */
  readonly segments: readonly string[];
  readonly query: Parameters;
  readonly buckets: BucketProjects;
}

function resourcesOf(match: Match, sent: Sent): readonly ServiceResource[] {
  const { request, segments, query, buckets } = sent;
  const { labels } = match;
  const found: ServiceResource[] = [];
  const named = new Set(["project", "projectId"].flatMap((name) => labels[name] ?? []));
  for (const name of named) found.push(project(name));
  for (const name of ["bucket", "sourceBucket", "destinationBucket"])
    if (labels[name] !== undefined) found.push(projectOfBucket(labels[name], buckets));
  for (const [name, value] of query)
    if (PROJECT_PARAMETERS.includes(name)) found.push(project(value));
  if (found.length === 0) return [unscopable("the request names no project")];
  // The project whose quota and money the request uses.
  const quota = request.headers.get("x-goog-user-project");
  if (quota !== undefined) found.push(project(quota));
  const further = reachesFurther(match.action, segments);
  if (further !== undefined) return [...found, unscopable(further)];
  const known = new Set(
    found.map((resource) => (resource.kind === "scoped" ? resource.value : "")),
  );
  const besides = placesBesides(match, sent).filter(
    (resource) => resource.kind !== "scoped" || !known.has(resource.value),
  );
  return [...found, ...besides];
}

/** Returns the places that the rest of the path, the query and the body name. */
function placesBesides(
  { action }: Match,
  { request, segments, query, buckets }: Sent,
): readonly ServiceResource[] {
  const places = new GcpPlaces(buckets);
  // Names of objects are arbitrary, and name no other resource.
  if (!action.startsWith("storage.")) for (const segment of segments) places.addText(segment);
  for (const [name, value] of query)
    if (!WITHIN_PARAMETERS.has(name)) places.addMember(name, value);
  if (request.body === undefined || isUpload(segments)) return places.resources;
  const body = readBody(request);
  if (body === undefined)
    return [unscopable("the body may name another project, and is not plain JSON")];
  places.addDocument(body, DATA.find(([pattern]) => pattern.test(action))?.[1]);
  return places.resources;
}

/** With another content type, Google may interpret the same bytes differently. */
function readBody({ body, headers }: ServiceRequest): StrictJson | undefined {
  const type = headers.get("content-type") ?? "";
  const isJson = /^application\/json(?:\s*;\s*charset="?utf-8"?)?\s*$/i.test(type);
  if (body === undefined || !isJson || headers.has("content-encoding")) return undefined;
  const parsed = parseStrictJson(body);
  return parsed.kind === "parsed" ? parsed.value : undefined;
}

function unresolved(reason: string, hint?: string): ActionResolution {
  return { kind: "unresolved", reason, ...(hint === undefined ? {} : { hint }) };
}
