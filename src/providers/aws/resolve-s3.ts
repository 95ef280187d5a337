/** Determines the actions and keys of a request to S3. */
import type {
  ActionResolution,
  ResolvedAction,
  ServiceResource,
  ServiceRequest,
} from "../contract.ts";
import { parseQuery, repeatedName } from "../raw-url.ts";
import { arn, unscopable } from "./arns.ts";
import { safe } from "./call.ts";
import type { AwsEndpoint } from "./endpoint.ts";
import { s3Payload } from "./payload.ts";
import { deletedObjects } from "./s3-delete.ts";
import { MODIFIERS, s3Actions, SUBRESOURCES } from "./s3-operations.ts";
import { copySource, s3Target, type S3Target } from "./s3-path.ts";

type S3Endpoint = AwsEndpoint & { readonly kind: "s3" | "s3-access-point" };

export function resolveS3(request: ServiceRequest, endpoint: S3Endpoint): ActionResolution {
  const payload = s3Payload(request);
  if (payload.kind === "refused") return unresolved(payload.reason, payload.hint);
  const target =
    endpoint.kind === "s3"
      ? s3Target(request.path, endpoint.bucket)
      : s3Target(request.path, endpoint.name);
  if (target.kind === "doubtful")
    return unresolved(`The path can be read in more than one way: ${target.reason}`);
  const asked = parametersOf(request.query);
  if (typeof asked === "string") return unresolved(asked);
  return target.kind === "service"
    ? resolveService(request, asked)
    : resolveTarget(request, endpoint, target, asked);
}

interface Asked {
  readonly subresource: string;
  readonly names: ReadonlySet<string>;
}

/** Returns the parsed parameters of the query, or the reason why it is ambiguous. */
function parametersOf(query: string): Asked | string {
  const parameters = parseQuery(query);
  if (parameters === undefined)
    return (
      "The query can be read in more than one way: escape a plus as %2B, a space as %20 and " +
      "a semicolon as %3B"
    );
  const repeated = repeatedName(parameters);
  if (repeated !== undefined) return `The parameter ${safe(repeated)} stands twice`;
  const names = new Set(parameters.map(([name]) => name));
  const unknown = [...names].find((name) => !SUBRESOURCES.has(name) && !MODIFIERS.has(name));
  if (unknown !== undefined) return `The parameter ${safe(unknown)} is not a known parameter of S3`;
  const [subresource = "", ...more] = [...names].filter((name) => SUBRESOURCES.has(name));
  return more.length > 0
    ? `The query names several subresources: ${[subresource, ...more].join(", ")}`
    : { subresource, names };
}

function resolveService(request: ServiceRequest, asked: Asked): ActionResolution {
  if (request.method !== "GET" || asked.subresource !== "")
    return unresolved(`${safe(request.method)} without a bucket is not a known request of S3`);
  return {
    kind: "resolved",
    actions: [
      {
        action: "s3:ListAllMyBuckets",
        resources: [unscopable("a list of all buckets is in no bucket")],
      },
    ],
  };
}

function resolveTarget(
  request: ServiceRequest,
  endpoint: S3Endpoint,
  target: S3Target & { readonly kind: "bucket" | "object" },
  asked: Asked,
): ActionResolution {
  if (asked.subresource === "session")
    return unresolved("CreateSession answers with credentials, which an agent must not have");
  if (asked.subresource === "delete") return resolveDelete(request, endpoint, target);
  const versioned = asked.names.has("versionId");
  const names = s3Actions({
    method: request.method,
    level: target.kind,
    subresource: asked.subresource,
    versioned,
    headers: request.headers,
  });
  if (names === undefined) {
    return unresolved(
      `${safe(request.method)} ` +
        `${asked.subresource === "" ? "" : `?${asked.subresource} `}on ` +
        `${target.kind === "bucket" ? "a bucket" : "an object"} is not a known request of S3`,
    );
  }
  if (request.headers.has("x-amz-rename-source"))
    return unresolved("x-amz-rename-source is of directory buckets, which are not supported");
  const resources = [resourceOf(endpoint, target), ...further(request, target, asked)];
  const actions: ResolvedAction[] = names.map((action) => ({ action, resources }));
  const source = request.headers.get("x-amz-copy-source");
  if (source === undefined) return { kind: "resolved", actions };
  // On other requests the header currently has no effect, but that could change.
  if (!names.includes("s3:PutObject") || request.method !== "PUT" || target.kind !== "object")
    return unresolved("x-amz-copy-source belongs on PUT of an object");
  const copied = copySource(source);
  if (copied === undefined)
    return unresolved(
      "x-amz-copy-source can be read in more than one way",
      "Send bucket/key, percent-encoded once.",
    );
  actions.push({
    action: copied.versioned ? "s3:GetObjectVersion" : "s3:GetObject",
    resources: [arn(copied.arn(endpoint.partition))],
  });
  return { kind: "resolved", actions };
}

/** Settings of a bucket whose unread body names a destination of objects or reports. */
const SENDS_ELSEWHERE: ReadonlySet<string> = new Set([
  "analytics",
  "inventory",
  "logging",
  "notification",
  "replication",
]);

/** Returns the resources that a request reaches besides its bucket or object. */
function further(
  { method, body, headers }: ServiceRequest,
  target: S3Target,
  { subresource }: Asked,
): readonly ServiceResource[] {
  if (target.kind === "bucket" && method === "PUT" && SENDS_ELSEWHERE.has(subresource))
    return [unscopable(`the body of ${subresource} names where objects, or reports, go`)];
  if (subresource !== "restore" || body === undefined) return [];
  return headers.has("content-encoding") || !isPlainRestore(body)
    ? [unscopable("what is restored may be written to another bucket")]
    : [];
}

/**
 * The results of a restored selection are written to `OutputLocation`. In UTF-8 and without a
 * document type, XML has only one way to write a name.
 */
function isPlainRestore(body: Buffer): boolean {
  const text = body.toString("latin1");
  return (
    /^\s*</.test(text) &&
    !/outputlocation|<!|\0/i.test(text) &&
    !/encoding\s*=\s*["'](?!utf-8["'])/i.test(text)
  );
}

/** Many keys in one request: each is evaluated. */
function resolveDelete(
  request: ServiceRequest,
  endpoint: S3Endpoint,
  target: S3Target & { readonly kind: "bucket" | "object" },
): ActionResolution {
  if (request.method !== "POST" || target.kind !== "bucket")
    return unresolved("delete belongs on POST of a bucket");
  const isPlain =
    !request.headers.has("content-encoding") &&
    !(request.headers.get("x-amz-content-sha256") ?? "").startsWith("STREAMING-");
  const objects = request.body === undefined || !isPlain ? undefined : deletedObjects(request.body);
  if (objects === undefined)
    return unresolved(
      "The list of keys to delete is not understood",
      "Send plain XML as the SDKs do, or delete the keys one by one.",
    );
  const byAction = new Map<string, ServiceResource[]>();
  for (const { key, versioned } of objects) {
    const action = versioned ? "s3:DeleteObjectVersion" : "s3:DeleteObject";
    byAction.set(action, [
      ...(byAction.get(action) ?? []),
      resourceOf(endpoint, { kind: "object", bucket: target.bucket, key }),
    ]);
  }
  if (request.headers.has("x-amz-bypass-governance-retention"))
    byAction.set("s3:BypassGovernanceRetention", [...byAction.values()].flat());
  return {
    kind: "resolved",
    actions: [...byAction].map(([action, resources]) => ({ action, resources })),
  };
}

function resourceOf(
  endpoint: S3Endpoint,
  target: S3Target & { readonly kind: "bucket" | "object" },
): ServiceResource {
  if (endpoint.kind === "s3-access-point") {
    const point =
      `arn:${endpoint.partition}:s3:${endpoint.region}:${endpoint.account}:accesspoint/` +
      endpoint.name;
    return arn(target.kind === "bucket" ? point : `${point}/object/${target.key}`);
  }
  return arn(
    `arn:${endpoint.partition}:s3:::` +
      `${target.bucket}${target.kind === "bucket" ? "" : `/${target.key}`}`,
  );
}

function unresolved(reason: string, hint?: string): ActionResolution {
  return { kind: "unresolved", reason, ...(hint === undefined ? {} : { hint }) };
}
