/**
 * Determines whether a batch of Git LFS downloads or uploads.
 * https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md
 */
import type { ServiceRequest } from "../contract.ts";
import { isJsonObject, parseStrictJson } from "../strict-json.ts";

export type LfsOperation = "download" | "upload";

export const LFS_BATCH_PATH = "*/info/lfs/objects/batch";

/** An unclear batch counts as an upload: a caller that may write may also read. */
export function readLfsOperation(request: ServiceRequest): LfsOperation {
  const { body, headers } = request;
  if (body === undefined || headers.has("content-encoding")) return "upload";
  const parsed = parseStrictJson(body);
  if (parsed.kind === "invalid" || !isJsonObject(parsed.value)) return "upload";
  return parsed.value["operation"] === "download" ? "download" : "upload";
}
