/** What is replaced in a text. */

export type RedactedKind =
  | "email"
  | "phone"
  | "api-key"
  | "card"
  | "jwt"
  | "pem"
  | "hex"
  | "base64";

/** A secret, or personal data, at its place in a text. */
export interface Span {
  readonly start: number;
  readonly end: number;
  readonly kind: RedactedKind;
}
