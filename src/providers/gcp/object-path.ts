/**
 * Paths of Cloud Storage's JSON API, in which names of objects and folders are one percent-encoded
 * segment each. Storage decodes a segment once and uses the rest as the name, including `//`, `..`
 * and a trailing slash: https://cloud.google.com/storage/docs/request-endpoints#encoding
 */
import { decodeOnce } from "../raw-url.ts";

const STORAGE = /^\/(?:(?:download|upload|resumable\/upload)\/)?storage\/v1\/b\//;
/** Letters, digits, `-`, `.`, `_` and `~`: escaping them could only hide something. */
const NEEDLESS_ESCAPE = /%(?:2[de]|3[0-9]|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9ae])/i;

/** Returns whether a path is one of those; hosts of other APIs have none. */
export function isObjectPath(path: string): boolean {
  return STORAGE.test(path);
}

/**
 * Returns its segments, each decoded once. Returns undefined if a segment is empty, or is `.` or
 * `..`, which a normalising server would change, or if an unescaped character could end the path or
 * the name for some server.
 */
export function objectSegments(path: string): readonly string[] | undefined {
  if (/[;+\\]/.test(path) || NEEDLESS_ESCAPE.test(path)) return undefined;
  const segments: string[] = [];
  for (const raw of path.slice(1).split("/")) {
    if (raw === "" || raw === "." || raw === "..") return undefined;
    const segment = decodeOnce(raw);
    if (segment === undefined) return undefined;
    // A bucket's name contains no character that needs an escape.
    if (segments.at(-1) === "b" && segment !== raw) return undefined;
    segments.push(segment);
  }
  return segments;
}
