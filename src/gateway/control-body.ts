/** JSON bodies of the control API. */
import type http from "node:http";

/**
 * Maximum size of a body in bytes: that of the largest file in the resource folder, plus its
 * quoting.
 */
export const MAX_CONTROL_BODY_BYTES = 64 * 1024 * 1024;

export class BodyError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "BodyError";
    this.status = status;
  }
}

/** @throws BodyError, which quotes nothing of the body */
export async function readBody(
  request: http.IncomingMessage,
  maxBytes = MAX_CONTROL_BODY_BYTES,
): Promise<unknown> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    length += part.length;
    // The rest is read and dropped, because a client that is still sending would not see the
    // answer.
    if (length <= maxBytes) parts.push(part);
  }
  if (length > maxBytes) throw new BodyError(413, `the body is longer than ${maxBytes} bytes`);
  try {
    return JSON.parse(Buffer.concat(parts).toString("utf8"));
  } catch {
    throw new BodyError(400, "the body is not JSON");
  }
}
