/**
 * Paths of Cloud Storage's JSON API, whose names of objects and folders are one segment each,
 * percent-encoded. Storage decodes a segment once and takes the rest as the name, `//`, `..` and a
 * slash at its end included: https://cloud.google.com/storage/docs/request-endpoints#encoding
 */
import { decodeOnce } from "../raw-url.ts";

const STORAGE = /^\/(?:(?:download|upload|resumable\/upload)\/)?storage\/v1\/b\//;
/** Letters, digits, `-`, `.`, `_` and `~`: escaped they could only hide something. */
const NEEDLESS_ESCAPE = /%(?:2[de]|3[0-9]|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9ae])/i;

/** Whether a path is one of those; hosts of other APIs have none. */
export function isObjectPath(path: string): boolean {
  return STORAGE.test(path);
}

/**
 * Its segments, each decoded once. Undefined where a segment is empty, or is `.` or `..`, so that
 * whoever normalises paths would make another one of it, or where something is not escaped that a
 * server could take for the end of the path or of the name.
 */
export function objectSegments(path: string): readonly string[] | undefined {
  if (/[;+\\]/.test(path) || NEEDLESS_ESCAPE.test(path)) return undefined;
  const segments: string[] = [];
  for (const raw of path.slice(1).split("/")) {
    if (raw === "" || raw === "." || raw === "..") return undefined;
    const segment = decodeOnce(raw);
    if (segment === undefined) return undefined;
    // A bucket's name has no sign that would be escaped.
    if (segments.at(-1) === "b" && segment !== raw) return undefined;
    segments.push(segment);
  }
  return segments;
}
