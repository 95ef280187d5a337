/**
 * Bucket and key of a request to S3. S3 decodes a path once and uses the rest as the key's name,
 * including `..` and `//`; nothing may normalise it in between.
 */
import { decodeOnce } from "../raw-url.ts";

export type S3Target =
  | { readonly kind: "service" }
  | { readonly kind: "bucket"; readonly bucket: string }
  | { readonly kind: "object"; readonly bucket: string; readonly key: string }
  | { readonly kind: "doubtful"; readonly reason: string };

/**
 * Old buckets of us-east-1 may have upper case and underscores; never an escape, and never only
 * dots.
 */
const BUCKET = /^(?!\.)(?!.*\.\.)[A-Za-z0-9._-]{3,255}$/;

/** @param bucket the host's bucket; undefined if the path begins with it */
export function s3Target(path: string, bucket: string | undefined): S3Target {
  // S3 treats a plus in a path as a space, other servers do not; no SDK sends one. `;` begins
  // parameters for some proxies.
  if (/[+;]/.test(path)) return doubtful("the path holds + or ; unescaped: send %2B or %3B");
  if (bucket !== undefined)
    return path === "/" ? { kind: "bucket", bucket } : object(bucket, path.slice(1));
  if (path === "/") return { kind: "service" };
  const slash = path.indexOf("/", 1);
  const name = path.slice(1, slash < 0 ? undefined : slash);
  if (!BUCKET.test(name)) return doubtful("the path does not begin with the name of a bucket");
  const rest = slash < 0 ? "" : path.slice(slash + 1);
  return rest === "" ? { kind: "bucket", bucket: name } : object(name, rest);
}

function object(bucket: string, raw: string): S3Target {
  const key = decodeOnce(raw);
  if (key === undefined)
    return doubtful(
      "the key holds an escape that is broken, a control character, or a byte that should " +
        "be escaped",
    );
  return { kind: "object", bucket, key };
}

function doubtful(reason: string): S3Target {
  return { kind: "doubtful", reason };
}

/**
 * Parses `bucket/key?versionId=v` or an access point's ARN of `x-amz-copy-source`, which S3 decodes
 * once.
 */
export function copySource(
  header: string,
): { readonly arn: (partition: string) => string; readonly versioned: boolean } | undefined {
  // Two headers arrive joined: S3 would use one of them.
  if (/,\s/.test(header) || /[+;]/.test(header)) return undefined;
  const question = header.indexOf("?");
  const raw = question < 0 ? header : header.slice(0, question);
  const versioned = question >= 0;
  if (versioned && !/^versionId=[A-Za-z0-9._-]+$/.test(header.slice(question + 1)))
    return undefined;
  const decoded = decodeOnce(raw);
  // An escaped `?` may be part of the key, or be interpreted as the beginning of a version.
  if (decoded === undefined || decoded.includes("?")) return undefined;
  if (decoded.startsWith("arn:")) {
    return /^arn:aws[a-z-]*:s3:[a-z0-9-]+:[0-9]{12}:accesspoint\/[a-z0-9-]{3,50}\/object\/.+$/s.test(
      decoded,
    )
      ? { arn: () => decoded, versioned }
      : undefined;
  }
  const [, bucket = "", key = ""] = /^\/?([^/]+)\/(.+)$/s.exec(decoded) ?? [];
  return BUCKET.test(bucket) && key !== ""
    ? { arn: (partition) => `arn:${partition}:s3:::${bucket}/${key}`, versioned }
    : undefined;
}
