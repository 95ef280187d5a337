/**
 * Parses JSON of a client or an agent: strictly, and with the same result as every other parser.
 *
 * V8 from version 13 (Node.js 24) misreads keys that begin with an escape: once an object with the
 * key `"\\"` was parsed, `"\u0073tream"` in the same place of another object becomes that key too,
 * so that a request could hide `stream` from us and show it to its upstream (see
 * docs/decisions/2026-11-22-keys-with-escapes.md). Therefore no text that is passed to `JSON.parse`
 * here has a key that begins with an escape: unnecessary escapes are decoded first, and keys that
 * need one are refused.
 */
import { JSON_LIMITS, JsonError, type JsonLimits, type JsonScan, scanJson } from "./scan.ts";

export interface ParsedText extends JsonScan {
  readonly value: unknown;
}

/** @throws JsonError */
export function parseJson(bytes: Buffer, limits: JsonLimits = JSON_LIMITS): ParsedText {
  const scan = scanJson(bytes, limits);
  return { ...scan, value: parseScanned(bytes, scan) };
}

/**
 * Parses the value between two offsets.
 * @param scan of all the bytes
 * @throws JsonError
 */
export function parseScanned(
  bytes: Buffer,
  { escapedKeys }: JsonScan,
  start = 0,
  end = bytes.length,
): unknown {
  const parts: string[] = [];
  let at = start;
  for (const escaped of escapedKeys) {
    if (escaped.start < at || escaped.end > end) continue;
    parts.push(bytes.toString("utf8", at, escaped.start), JSON.stringify(escaped.key));
    at = escaped.end;
  }
  const rest = bytes.toString("utf8", at, end);
  try {
    return JSON.parse(parts.length === 0 ? rest : `${parts.join("")}${rest}`);
  } catch {
    throw new JsonError("a control character in a string");
  }
}
