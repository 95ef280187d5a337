/** The statement of a signature about the body. */
import { createHash } from "node:crypto";
import type { ServiceRequest } from "../contract.ts";

export type Payload =
  | { readonly kind: "hash"; readonly value: string }
  | { readonly kind: "refused"; readonly reason: string; readonly hint?: string };

const UNSIGNED = "UNSIGNED-PAYLOAD";
/** The body is not signed; chunks and trailer are forwarded unchanged. */
const UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
const EMPTY = createHash("sha256").digest("hex");

/**
 * S3: the client's statement about its body is kept, unless it signed each chunk with its own key.
 */
export function s3Payload(request: ServiceRequest): Payload {
  const said = request.headers.get("x-amz-content-sha256");
  if (said === undefined) return { kind: "hash", value: UNSIGNED };
  if (said === UNSIGNED || said === UNSIGNED_TRAILER || /^[0-9a-f]{64}$/.test(said))
    return { kind: "hash", value: said };
  if (said.startsWith("STREAMING-AWS4-")) {
    return {
      kind: "refused",
      reason:
        "Each chunk of the body is signed with the client's own key, and cannot be signed again",
      hint:
        "Let the client leave chunks unsigned: boto3 Config(s3={'payload_signing_enabled': " +
        "False}), AWS CLI s3.payload_signing_enabled=false, Java " +
        "S3Configuration.chunkedEncodingEnabled(false), or an https:// endpoint in clients " +
        "that sign chunks over http only.",
    };
  }
  return {
    kind: "refused",
    reason: "x-amz-content-sha256 is neither a SHA-256 nor a kind of unsigned payload",
  };
}

/** All other services: the body was read, and its hash is computed here. */
export function bodyPayload(request: ServiceRequest): Payload {
  if (request.headers.get("x-amz-content-sha256")?.startsWith("STREAMING-") === true) {
    return { kind: "refused", reason: "A body in chunks is for S3 alone" };
  }
  if (request.body !== undefined)
    return { kind: "hash", value: createHash("sha256").update(request.body).digest("hex") };
  const length = request.headers.get("content-length");
  if (request.headers.has("transfer-encoding") || (length !== undefined && length !== "0")) {
    return { kind: "refused", reason: "The body was not read, and a signature needs it" };
  }
  return { kind: "hash", value: EMPTY };
}
