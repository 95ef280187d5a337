/**
 * Signatures of one vendor in another vendor's dialect. A client replays them unchanged, so the
 * wrapping names the vendor; for any other vendor the wrapped value is removed again.
 */
import type { DialectName } from "./dialect.ts";
import { isObject, type JsonObject } from "./fields.ts";
import type { Signature } from "./model.ts";

/** 12 bytes, so that its base64 form is also a fixed prefix. */
export const FOREIGN_MARK = "svc-foreign:";
export const FOREIGN_MARK_BASE64 = "c3ZjLWZvcmVpZ246";

/** Returns whether a value is a signature of another vendor, wrapped with the given mark. */
export function isForeign(value: unknown, mark: string): boolean {
  return typeof value === "string" && value.startsWith(mark);
}

/**
 * Returns a message without its foreign items; undefined if nothing else is left of it, because no
 * vendor accepts a message without content.
 */
export function withoutForeignItems(
  message: JsonObject,
  key: string,
  foreign: (item: JsonObject) => boolean,
): JsonObject | undefined {
  const items = message[key];
  if (!Array.isArray(items)) return message;
  const own = items.filter((item: unknown) => !isObject(item) || !foreign(item));
  if (own.length === items.length) return message;
  return own.length === 0 ? undefined : { ...message, [key]: own };
}

/**
 * The block that a signature belongs to, if the client's dialect cannot attach it to the block
 * itself. `redacted`: the signature is the whole block, in a dialect that does not tell.
 */
export type SignatureBinding = "own" | "call" | "text" | "redacted";

const WRAPPED = /^svc-foreign:(openai|anthropic|gemini):(own|call|text|redacted):/;

export function wrap(signature: Signature, binding: SignatureBinding): string {
  return `${FOREIGN_MARK}${signature.vendor}:${binding}:${signature.value}`;
}

/** Reads a signature found in `dialect`: the dialect's own unless it is wrapped. */
export function unwrap(
  value: string,
  dialect: DialectName,
): { readonly signature: Signature; readonly binding: SignatureBinding } {
  const match = WRAPPED.exec(value);
  if (match === null) return { signature: { vendor: dialect, value }, binding: "own" };
  return {
    signature: { vendor: match[1] as DialectName, value: value.slice(match[0].length) },
    binding: match[2] as SignatureBinding,
  };
}

/**
 * Gemini's signatures are base64, and its SDKs decode them: a foreign one is wrapped, then encoded.
 */
export function wrapBase64(signature: Signature, binding: SignatureBinding): string {
  return Buffer.from(wrap(signature, binding), "utf8").toString("base64");
}

export function unwrapBase64(
  value: string,
  dialect: DialectName,
): { readonly signature: Signature; readonly binding: SignatureBinding } {
  if (!value.startsWith(FOREIGN_MARK_BASE64))
    return { signature: { vendor: dialect, value }, binding: "own" };
  return unwrap(Buffer.from(value, "base64").toString("utf8"), dialect);
}
