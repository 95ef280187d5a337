/**
 * Reads the caller's key from a request. OpenAI's clients send `Authorization: Bearer`, Anthropic's
 * that or `x-api-key`, Azure's `api-key`, Google's `x-goog-api-key` or `?key=`.
 */
import { hash } from "node:crypto";
import type { HeaderMap } from "../envoy/ext-proc/messages.ts";
import { unwrapAccessKey } from "./access-keys.ts";

/**
 * Headers that may carry the caller's key: all of them are removed before the request is forwarded.
 */
export const CREDENTIAL_HEADERS = [
  "authorization",
  "x-api-key",
  "api-key",
  "x-goog-api-key",
] as const;

export type Credential =
  | { readonly kind: "none" }
  /** Several different keys: the effective key must not depend on the reader. */
  | { readonly kind: "conflict" }
  | { readonly kind: "key"; readonly sha256: string };

/** Maximum length of a key in characters; our keys are far shorter. */
const MAX_KEY_LENGTH = 512;

/**
 * @param query the request's query string without `?`; its `key` parameter is read, which Google's
 * clients send
 */
export function readCredential(headers: HeaderMap, query: string): Credential {
  let key: string | undefined;
  for (const text of candidates(headers, query)) {
    const candidate = unwrapAccessKey(text);
    if (key !== undefined && key !== candidate) return { kind: "conflict" };
    key = candidate;
  }
  if (key === undefined || key === "" || key.length > MAX_KEY_LENGTH) return { kind: "none" };
  return { kind: "key", sha256: hashKey(key) };
}

function* candidates(headers: HeaderMap, query: string): Generator<string> {
  const authorization = headers.get("authorization");
  if (authorization !== undefined) {
    const match = /^bearer +(\S+) *$/i.exec(authorization);
    yield match?.[1] ?? "";
  }
  for (const name of ["x-api-key", "api-key", "x-goog-api-key"]) {
    const value = headers.get(name);
    if (value !== undefined) yield value.trim();
  }
  if (query.includes("key=")) {
    const value = new URLSearchParams(query).get("key");
    if (value !== null) yield value;
  }
}

/** Returns the hash by which keys and tokens are stored and looked up. */
export function hashKey(key: string): string {
  return hash("sha256", key, "hex");
}
