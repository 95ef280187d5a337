/**
 * The form of access keys: `svc_` and 256 random bits in base 62. For clients that require a
 * vendor's form, a key can be wrapped in it; both forms are the same key.
 */
import { BASE62_256_LENGTH, base62 } from "./base62.ts";

const PREFIX = "svc_";
const WRAPPER_START = "sk-ant-api03-";
const WRAPPER_END = "-AA";

const RAW = new RegExp(`^${PREFIX}[0-9A-Za-z]{${BASE62_256_LENGTH}}$`);

/** @param random 32 random bytes */
export function newAccessKey(random: Uint8Array): string {
  if (random.length !== 32) throw new Error("an access key needs 32 random bytes");
  return PREFIX + base62(random);
}

/** Returns `sk-ant-api03-<raw>-AA`, which clients that check the form of Anthropic keys accept. */
export function wrapAccessKey(raw: string): string {
  return WRAPPER_START + raw + WRAPPER_END;
}

/** Returns the raw key of a wrapped one; any other text unchanged. */
export function unwrapAccessKey(text: string): string {
  if (!text.startsWith(WRAPPER_START) || !text.endsWith(WRAPPER_END)) return text;
  const inner = text.slice(WRAPPER_START.length, -WRAPPER_END.length);
  return isAccessKey(inner) ? inner : text;
}

/**
 * Returns whether a text has the form of a raw access key, without checking that such a key exists.
 */
export function isAccessKey(text: string): boolean {
  return RAW.test(text);
}
