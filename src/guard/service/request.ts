/** Reads a request of the classifier protocol, strictly. */
import type http from "node:http";
import type { Readable } from "node:stream";
import * as z from "zod";
import { MAX_CLASSIFY_CHARS } from "../protocol.ts";

/**
 * Any text of the maximum length fits: JSON writes a UTF-16 code unit in at most 6 bytes
 * (`\u0000`).
 */
const MAX_BODY_BYTES = MAX_CLASSIFY_CHARS * 6 + 1024;

/** RequestRefusal says why a request is not classified. Its message has nothing of the text. */
export class RequestRefusal extends Error {
  readonly status: 400 | 413 | 415;
  readonly code: string;

  constructor(status: 400 | 413 | 415, code: string, message: string) {
    super(message);
    this.name = "RequestRefusal";
    this.status = status;
    this.code = code;
  }
}

const JSON_TYPE = /^application\/json(?:; ?charset=(?:utf-8|"utf-8"))?$/i;

/** Refuses by the headers, before a body is read. */
export function checkHeaders(headers: http.IncomingHttpHeaders): void {
  if (!JSON_TYPE.test((headers["content-type"] ?? "").trim()))
    throw new RequestRefusal(
      415,
      "unsupported_media_type",
      "The content type must be application/json.",
    );
  if ((headers["content-encoding"] ?? "identity").toLowerCase() !== "identity")
    throw new RequestRefusal(
      415,
      "unsupported_media_type",
      "The body must not be compressed: send no content-encoding.",
    );
  if (Number(headers["content-length"] ?? 0) > MAX_BODY_BYTES) throw tooLong();
}

/** Returns the text of a request's body. */
export async function readText(body: Readable): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  // Destroyed, a request takes its connection with it, and its refusal could not be sent.
  const read: AsyncIterable<Uint8Array> = body.iterator({ destroyOnReturn: false });
  for await (const chunk of read) {
    size += chunk.byteLength;
    if (size > MAX_BODY_BYTES) throw tooLong();
    chunks.push(chunk);
  }
  return textOf(Buffer.concat(chunks));
}

const requestSchema = z.strictObject({ text: z.string() });

function textOf(body: Uint8Array): string {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    throw new RequestRefusal(400, "invalid_json", "The body is not JSON in UTF-8.");
  }
  const parsed = requestSchema.safeParse(value);
  if (!parsed.success)
    throw new RequestRefusal(
      400,
      "invalid_request",
      'The body must be an object with one member, "text", which is a string.',
    );
  const { text } = parsed.data;
  if (text.length > MAX_CLASSIFY_CHARS) throw tooLong();
  return text;
}

function tooLong(): RequestRefusal {
  return new RequestRefusal(
    413,
    "text_too_long",
    `The text has over ${MAX_CLASSIFY_CHARS} UTF-16 code units. Split it into several requests.`,
  );
}
