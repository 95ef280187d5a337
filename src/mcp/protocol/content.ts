/** What the headers of a POST say of its body: one JSON text in UTF-8, without an encoding. */

/** Maximum size of a client's message in bytes; larger ones are answered with 413. */
export const MAX_MESSAGE_BYTES = 1_048_576;

export interface ContentProblem {
  readonly code: "unsupported_encoding" | "unsupported_media_type";
  readonly status: 415;
  /** A sentence for the client. */
  readonly message: string;
}

/**
 * Returns why a body cannot be read; undefined if it can.
 * @param headers by lower-case name
 */
export function contentProblem(headers: ReadonlyMap<string, string>): ContentProblem | undefined {
  const encoding = headers.get("content-encoding");
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") {
    const message = "Send the body without content-encoding.";
    return { code: "unsupported_encoding", status: 415, message };
  }
  const [type = "", ...parameters] = (headers.get("content-type") ?? "").split(";");
  const charset = parameters
    .map((parameter) => parameter.trim().toLowerCase())
    .find((parameter) => parameter.startsWith("charset="));
  const isUtf8 = charset === undefined || /^charset="?utf-8"?$/.test(charset);
  if (type.trim().toLowerCase() !== "application/json" || !isUtf8) {
    const message = "Send the body as application/json in UTF-8.";
    return { code: "unsupported_media_type", status: 415, message };
  }
  return undefined;
}
