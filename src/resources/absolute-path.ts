/** Paths inside an agent's file system. */
import * as z from "zod";

/**
 * A path in its only spelling: absolute, without empty segments, `.`, `..`, colons (which
 * Kubernetes does not allow in mount paths) and control characters. Written without look-ahead, so
 * that the API server can read it.
 */
const CHARACTER = String.raw`[^/:\x00-\x1f\x7f]`;
const NO_DOT = String.raw`[^/.:\x00-\x1f\x7f]`;
const SEGMENT = String.raw`(?:\.?${NO_DOT}${CHARACTER}*|\.\.${CHARACTER}+)`;
const PATH = new RegExp(`^/(?:${SEGMENT}(?:/${SEGMENT})*)?$`);

export const absolutePathSchema = z
  .string()
  .max(1024)
  .regex(PATH, "must be an absolute path without '.', '..', '//', ':' and a '/' at its end");
