/**
 * The IAM actions that a request to S3 needs, by method, subresource and headers. From the Service
 * Authorization Reference and "Required permissions for Amazon S3 API operations".
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-with-s3-policy-actions.html
 */

/** By subresource; `""` is a request without one. */
type BySubresource = Readonly<Record<string, string>>;

const BUCKET: Readonly<Record<string, BySubresource>> = {
  GET: {
    "": "ListBucket",
    abac: "GetBucketAbac",
    accelerate: "GetAccelerateConfiguration",
    acl: "GetBucketAcl",
    analytics: "GetAnalyticsConfiguration",
    cors: "GetBucketCORS",
    encryption: "GetEncryptionConfiguration",
    "intelligent-tiering": "GetIntelligentTieringConfiguration",
    inventory: "GetInventoryConfiguration",
    lifecycle: "GetLifecycleConfiguration",
    location: "GetBucketLocation",
    logging: "GetBucketLogging",
    metadataConfiguration: "GetBucketMetadataTableConfiguration",
    metadataTable: "GetBucketMetadataTableConfiguration",
    metrics: "GetMetricsConfiguration",
    notification: "GetBucketNotification",
    "object-lock": "GetBucketObjectLockConfiguration",
    ownershipControls: "GetBucketOwnershipControls",
    policy: "GetBucketPolicy",
    policyStatus: "GetBucketPolicyStatus",
    publicAccessBlock: "GetBucketPublicAccessBlock",
    replication: "GetReplicationConfiguration",
    requestPayment: "GetBucketRequestPayment",
    tagging: "GetBucketTagging",
    uploads: "ListBucketMultipartUploads",
    versioning: "GetBucketVersioning",
    versions: "ListBucketVersions",
    website: "GetBucketWebsite",
  },
  HEAD: { "": "ListBucket" },
  PUT: {
    "": "CreateBucket",
    abac: "PutBucketAbac",
    accelerate: "PutAccelerateConfiguration",
    acl: "PutBucketAcl",
    analytics: "PutAnalyticsConfiguration",
    cors: "PutBucketCORS",
    encryption: "PutEncryptionConfiguration",
    "intelligent-tiering": "PutIntelligentTieringConfiguration",
    inventory: "PutInventoryConfiguration",
    lifecycle: "PutLifecycleConfiguration",
    logging: "PutBucketLogging",
    metrics: "PutMetricsConfiguration",
    notification: "PutBucketNotification",
    "object-lock": "PutBucketObjectLockConfiguration",
    ownershipControls: "PutBucketOwnershipControls",
    policy: "PutBucketPolicy",
    publicAccessBlock: "PutBucketPublicAccessBlock",
    replication: "PutReplicationConfiguration",
    requestPayment: "PutBucketRequestPayment",
    tagging: "PutBucketTagging",
    versioning: "PutBucketVersioning",
    website: "PutBucketWebsite",
  },
  DELETE: {
    "": "DeleteBucket",
    analytics: "PutAnalyticsConfiguration",
    cors: "PutBucketCORS",
    encryption: "PutEncryptionConfiguration",
    "intelligent-tiering": "PutIntelligentTieringConfiguration",
    inventory: "PutInventoryConfiguration",
    lifecycle: "PutLifecycleConfiguration",
    metrics: "PutMetricsConfiguration",
    ownershipControls: "PutBucketOwnershipControls",
    policy: "DeleteBucketPolicy",
    publicAccessBlock: "PutBucketPublicAccessBlock",
    replication: "PutReplicationConfiguration",
    tagging: "PutBucketTagging",
    website: "DeleteBucketWebsite",
  },
};

/** Actions on objects; `*Version` instead of `*` if the request names a version. */
const OBJECT: Readonly<Record<string, BySubresource>> = {
  GET: {
    "": "GetObject",
    acl: "GetObjectAcl",
    attributes: "GetObject GetObjectAttributes",
    "legal-hold": "GetObjectLegalHold",
    retention: "GetObjectRetention",
    tagging: "GetObjectTagging",
    torrent: "GetObjectTorrent",
    uploadId: "ListMultipartUploadParts",
  },
  HEAD: { "": "GetObject" },
  PUT: {
    "": "PutObject",
    acl: "PutObjectAcl",
    "legal-hold": "PutObjectLegalHold",
    retention: "PutObjectRetention",
    tagging: "PutObjectTagging",
    uploadId: "PutObject",
  },
  POST: {
    restore: "RestoreObject",
    select: "GetObject",
    uploadId: "PutObject",
    uploads: "PutObject",
  },
  DELETE: { "": "DeleteObject", tagging: "DeleteObjectTagging", uploadId: "AbortMultipartUpload" },
};

/** Names of actions on one version. */
const OF_A_VERSION: Readonly<Record<string, string>> = {
  DeleteObject: "DeleteObjectVersion",
  DeleteObjectTagging: "DeleteObjectVersionTagging",
  GetObject: "GetObjectVersion",
  GetObjectAcl: "GetObjectVersionAcl",
  GetObjectAttributes: "GetObjectVersionAttributes",
  GetObjectTagging: "GetObjectVersionTagging",
  GetObjectTorrent: "GetObjectVersionTorrent",
  PutObjectAcl: "PutObjectVersionAcl",
  PutObjectTagging: "PutObjectVersionTagging",
};

/**
 * Headers that add a further action to a request that writes an object; names that end in `-` are
 * prefixes.
 */
const WITH_OBJECT: readonly (readonly [header: string, action: string])[] = [
  ["x-amz-acl", "PutObjectAcl"],
  ["x-amz-grant-", "PutObjectAcl"],
  ["x-amz-tagging", "PutObjectTagging"],
  ["x-amz-object-lock-mode", "PutObjectRetention"],
  ["x-amz-object-lock-retain-until-date", "PutObjectRetention"],
  ["x-amz-object-lock-legal-hold", "PutObjectLegalHold"],
];
const WITH_BUCKET: readonly (readonly [header: string, action: string])[] = [
  ["x-amz-acl", "PutBucketAcl"],
  ["x-amz-grant-", "PutBucketAcl"],
  ["x-amz-object-ownership", "PutBucketOwnershipControls"],
  ["x-amz-bucket-object-lock-enabled", "PutBucketObjectLockConfiguration"],
];
const BYPASS = "x-amz-bypass-governance-retention";

/**
 * Parameters that select the operation. `delete` depends on its body: {@link
 * file://./s3-delete.ts}.
 */
export const SUBRESOURCES: ReadonlySet<string> = new Set([
  "delete",
  "session",
  ...[BUCKET, OBJECT]
    .flatMap((level) => Object.values(level).flatMap((subresources) => Object.keys(subresources)))
    .filter(Boolean),
]);

/** Parameters that modify an operation without changing its action. */
export const MODIFIERS: ReadonlySet<string> = new Set([
  "bucket-region",
  "continuation-token",
  "delimiter",
  "encoding-type",
  "fetch-owner",
  "id",
  "key-marker",
  "list-type",
  "marker",
  "max-buckets",
  "max-keys",
  "max-parts",
  "max-uploads",
  "part-number-marker",
  "partNumber",
  "prefix",
  "response-cache-control",
  "response-content-disposition",
  "response-content-encoding",
  "response-content-language",
  "response-content-type",
  "response-expires",
  "select-type",
  "start-after",
  "upload-id-marker",
  "version-id-marker",
  "versionId",
  "x-id",
]);

export interface S3Question {
  readonly method: string;
  readonly level: "bucket" | "object";
  readonly subresource: string;
  /** Whether `versionId` is present. */
  readonly versioned: boolean;
  readonly headers: ReadonlyMap<string, string>;
}

/** Returns the names of all required IAM actions; undefined for an unknown request. */
export function s3Actions(question: S3Question): readonly string[] | undefined {
  const { method, level, subresource, versioned, headers } = question;
  const names = (level === "bucket" ? BUCKET : OBJECT)[method]?.[subresource]?.split(" ");
  if (names === undefined) return undefined;
  const actions = versioned ? names.map((name) => OF_A_VERSION[name] ?? name) : [...names];
  const writes = (name: string): boolean => names.includes(name);
  if (writes("PutObject")) actions.push(...also(WITH_OBJECT, headers));
  if (writes("CreateBucket")) actions.push(...also(WITH_BUCKET, headers));
  if (headers.has(BYPASS) && (writes("DeleteObject") || writes("PutObjectRetention")))
    actions.push("BypassGovernanceRetention");
  return [...new Set(actions)].map((name) => `s3:${name}`);
}

function also(rules: typeof WITH_OBJECT, headers: ReadonlyMap<string, string>): readonly string[] {
  const names = [...headers.keys()];
  return rules
    .filter(([header]) =>
      names.some((name) => (header.endsWith("-") ? name.startsWith(header) : name === header)),
    )
    .map(([, action]) => action);
}
