/**
 * Signatures of one vendor travelling through another vendor's dialect. A client replays what it
 * was given, so the wrapping names the vendor; towards any other vendor the wrapped value is
 * removed again.
 */
import type { DialectName } from "./dialect.ts";
import type { Signature } from "./model.ts";

/** 12 bytes, so that its base64 form is a fixed prefix too. */
export const FOREIGN_MARK = "svc-foreign:";
export const FOREIGN_MARK_BASE64 = "c3ZjLWZvcmVpZ246";

/** What a signature belongs to, where the client's dialect cannot attach it to the block itself. */
export type Binding = "own" | "call" | "text";

const WRAPPED = /^svc-foreign:(openai|anthropic|gemini):(own|call|text):/;

export function wrap(signature: Signature, binding: Binding): string {
  return `${FOREIGN_MARK}${signature.vendor}:${binding}:${signature.value}`;
}

/** Reads a signature found in `dialect`: the dialect's own unless wrapped. */
export function unwrap(
  value: string,
  dialect: DialectName,
): { readonly signature: Signature; readonly binding: Binding } {
  const match = WRAPPED.exec(value);
  if (match === null) return { signature: { vendor: dialect, value }, binding: "own" };
  return {
    signature: { vendor: match[1] as DialectName, value: value.slice(match[0].length) },
    binding: match[2] as Binding,
  };
}

/**
 * Gemini's signatures are base64 bytes, and its SDKs decode them: a foreign one is wrapped, then
 * encoded.
 */
export function wrapBase64(signature: Signature, binding: Binding): string {
  return Buffer.from(wrap(signature, binding), "utf8").toString("base64");
}

export function unwrapBase64(
  value: string,
  dialect: DialectName,
): { readonly signature: Signature; readonly binding: Binding } {
  if (!value.startsWith(FOREIGN_MARK_BASE64))
    return { signature: { vendor: dialect, value }, binding: "own" };
  return unwrap(Buffer.from(value, "base64").toString("utf8"), dialect);
}
