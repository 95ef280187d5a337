/** Which method of which API a request to Google is, and on which project. */
import type { ActionResolution, Resource, ServiceRequest } from "../contract.ts";
import {
  overridingHeader,
  parseQuery,
  pathSegments,
  repeatedName,
  type Parameters,
} from "../raw-url.ts";
import { googleHost } from "./hosts.ts";
import { matchMethods, type Match } from "./methods.ts";

/** Projects that the operator says buckets are in. */
export type BucketProjects = ReadonlyMap<string, string>;

/** Parameters with a dollar that every API knows, and that say how, not what. */
const SYSTEM = new Set(["$.xgafv", "$alt", "$fields", "$prettyPrint", "$unique"]);
const PROJECT_PARAMETERS = ["project", "projectId", "userProject"];
const PROJECT = /^(?:[a-z][a-z0-9.-]{0,61}:)?[a-z0-9][a-z0-9-]{0,61}$/;

/** Answers that are credentials: keys of service accounts, signatures in their names, keys of APIs and of storage. */
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
  "redis.tokenAuthUsers.addAuthToken",
  "sqladmin.connect.generateEphemeral",
  "sqladmin.sslCerts.createEphemeral",
  "sqladmin.sslCerts.insert",
  "storage.hmacKeys.create",
]);
const CREDENTIAL_RPCS =
  /^(?:CreateServiceAccountKey|UploadServiceAccountKey|SignBlob|SignJwt|GetKeyString|CreateKey|CreateHmacKey|GenerateAccessToken|GenerateIdToken|GenerateEphemeralCert|FetchReadToken|FetchReadWriteToken|ResetUserPassword|CreateUserCreds|Generate[A-Za-z]*AccessToken)$/;
/** Their statements and queries reach into any project that the service account can read. */
const REACHES_FURTHER = /^bigquery\.jobs\.(?:insert|query)$/;

export function resolve(request: ServiceRequest, buckets: BucketProjects): ActionResolution {
  const host = googleHost(request.host);
  if (host === undefined)
    return unresolved(
      "This host is no API of Google that is known",
      "Use the API's own host, such as storage.googleapis.com or us-central1-aiplatform.googleapis.com.",
    );
  if (host.kind === "tokens")
    return unresolved(
      "This host answers with credentials, which an agent must not have",
      "Call the API itself: the proxy puts the access token on.",
    );
  const override = overridingHeader(request.headers);
  if (override !== undefined)
    return unresolved(`The header ${override} asks for another request than the request line`);
  const query = parseQuery(request.query);
  const path = pathSegments(request.path, { slashes: true });
  if (path === undefined || query === undefined)
    return unresolved(
      "The path or the query can be read in more than one way",
      "Send it without //, dot segments, semicolons, plus signs, and escapes that are not needed.",
    );
  const doubt = doubtOfQuery(query);
  if (doubt !== undefined) return unresolved(doubt);
  if (isGrpc(request)) return resolveGrpc(request, host.name);
  if (path.trailingSlash || /%3a/i.test(request.path.slice(request.path.lastIndexOf("/"))))
    return unresolved("The path ends in a slash, or in a name with an escaped colon");
  if (path.segments[0] === "batch")
    return unresolved("A batch holds many requests in one body", "Send them one by one.");
  return resolveRest(request, host.host, path.segments, query, buckets);
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

/** The method is the path; projects stand in a body that nobody here can read. */
function resolveGrpc(request: ServiceRequest, api: string): ActionResolution {
  const [, service = "", method = ""] =
    /^\/google\.[A-Za-z0-9_.]+\.([A-Za-z0-9_]+)\/([A-Za-z0-9_]+)$/.exec(request.path) ?? [];
  if (request.method !== "POST" || service === "" || request.query !== "")
    return unresolved("This is no call of gRPC that is known");
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
  const resumed = segments.includes("upload") && query.some(([name]) => name === "upload_id");
  // An upload that was begun goes on, or ends, by the same path with other methods.
  const method =
    resumed && (request.method === "PUT" || request.method === "DELETE") ? "POST" : request.method;
  const matches = matchMethods(host, method, segments);
  if (matches.length === 0)
    return unresolved(
      "This is no method that is known of this API",
      "Methods are those of Google's discovery documents.",
    );
  const credential = matches.find(({ action }) => CREDENTIAL_ACTIONS.has(action));
  if (credential !== undefined)
    return unresolved(
      `${credential.action} answers with credentials, which an agent must not have`,
    );
  return {
    kind: "resolved",
    actions: matches.map((match) => ({
      action: match.action,
      resources: resourcesOf(match, request, query, buckets),
    })),
  };
}

function resourcesOf(
  match: Match,
  request: ServiceRequest,
  query: Parameters,
  buckets: BucketProjects,
): readonly Resource[] {
  const { labels } = match;
  const found: Resource[] = [];
  const named = new Set(["project", "projectId"].flatMap((name) => labels[name] ?? []));
  for (const name of named) found.push(project(name));
  for (const name of ["bucket", "sourceBucket", "destinationBucket"])
    if (labels[name] !== undefined) found.push(projectOfBucket(labels[name], buckets));
  for (const [name, value] of query)
    if (PROJECT_PARAMETERS.includes(name)) found.push(project(value));
  if (found.length === 0) found.push(unscopable("the request names no project"));
  // Whose quota and money it takes.
  const quota = request.headers.get("x-goog-user-project");
  if (quota !== undefined) found.push(project(quota));
  if (REACHES_FURTHER.test(match.action))
    found.push(unscopable("a query may read from any project"));
  return found;
}

function project(value: string): Resource {
  return PROJECT.test(value)
    ? { kind: "scoped", key: "projects", value }
    : unscopable("the project is no id or number of one");
}

function projectOfBucket(bucket: string, buckets: BucketProjects): Resource {
  const known = buckets.get(bucket);
  return known === undefined
    ? unscopable(
        "a bucket does not tell its project: list it in config.bucketProjects of the Provider",
      )
    : project(known);
}

function unscopable(reason: string): Resource {
  return { kind: "unscopable", reason };
}

function unresolved(reason: string, hint?: string): ActionResolution {
  return { kind: "unresolved", reason, ...(hint === undefined ? {} : { hint }) };
}
