/**
 * Replaces secrets and personal data in a text by `[REDACTED:<kind>]`, before it is recorded. One
 * pass over maximal runs of characters, so that the time is linear in the length for any text. It
 * errs on the side of redaction: a record needs no key to be useful.
 */
import { isCardNumber, isPhoneNumber } from "./numbers.ts";
import { isApiKey } from "./api-keys.ts";

export type RedactedKind =
  | "email"
  | "phone"
  | "api-key"
  | "card"
  | "jwt"
  | "pem"
  | "hex"
  | "base64";

/** Minimum length of hexadecimal digits: an MD5 hash, or a key of 128 bits. */
const MIN_HEX = 32;

/** Minimum length of base64: 240 bits. Shorter ones are words, paths and names as well. */
const MIN_BASE64 = 40;

const PEM_BEGIN = "-----BEGIN ";
const PEM_END = "-----END ";

/** Runs in which secrets are looked for: no white space, quotes, brackets or separators of URLs. */
const RUN = /[A-Za-z0-9+/_.~@%=-]+/g;

/** Runs of digits with the separators that people write in card and telephone numbers. */
const NUMBER = /\+?[0-9(][0-9 ().\u00A0-]{6,40}/g;

/** Returns the text without secrets and personal data. */
export function redact(text: string): string {
  return withoutPem(text)
    .replaceAll(RUN, (run) => redactRun(run))
    .replaceAll(NUMBER, (run) => redactNumber(run));
}

/** Keys in PEM, also with escaped newlines; one without its end is cut off. */
function withoutPem(text: string): string {
  const parts: string[] = [];
  let at = 0;
  for (;;) {
    const begin = text.indexOf(PEM_BEGIN, at);
    if (begin < 0) break;
    parts.push(text.slice(at, begin), mark("pem"));
    const end = text.indexOf(PEM_END, begin + PEM_BEGIN.length);
    if (end < 0) return parts.join("");
    const dashes = text.indexOf("-----", end + PEM_END.length);
    at = dashes < 0 ? text.length : dashes + "-----".length;
  }
  return at === 0 ? text : `${parts.join("")}${text.slice(at)}`;
}

/** A run may be `name=value`, or several values in a query. */
function redactRun(run: string): string {
  const kind = kindOf(run);
  if (kind !== undefined) return mark(kind);
  if (!run.includes("=")) return redactParts(run);
  return run
    .split("=")
    .map((part) => {
      const own = kindOf(part);
      return own === undefined ? redactParts(part) : mark(own);
    })
    .join("=");
}

/** Values at the ends of sentences and between slashes. */
function redactParts(run: string): string {
  const trimmed = run.replace(/[.%~-]$/, "");
  if (trimmed !== run) {
    const kind = kindOf(trimmed);
    if (kind !== undefined) return `${mark(kind)}${run.slice(trimmed.length)}`;
  }
  if (!run.includes("/")) return run;
  return run
    .split("/")
    .map((part) => {
      const kind = kindOf(part);
      return kind === undefined ? part : mark(kind);
    })
    .join("/");
}

function kindOf(run: string): RedactedKind | undefined {
  if (run.length < 6) return undefined;
  if (isEmail(run)) return "email";
  if (isJwt(run)) return "jwt";
  if (isApiKey(run)) return "api-key";
  if (run.length >= MIN_HEX && /^(?:0x)?[0-9A-Fa-f]+$/.test(run)) return "hex";
  return isBase64(run) ? "base64" : undefined;
}

/** `name@domain.tld`; also with the at sign as `%40`. */
function isEmail(run: string): boolean {
  const [name = "", domain = "", ...more] = run.replace("%40", "@").split("@");
  return (
    more.length === 0 &&
    /^[A-Za-z0-9._%+~-]{1,64}$/.test(name) &&
    domain.length <= 253 &&
    /^[A-Za-z0-9.-]+$/.test(domain) &&
    /^[A-Za-z]{2,24}$/.test(domain.split(".").at(-1) ?? "") &&
    domain.includes(".")
  );
}

/** RFC 7519: three parts in base64url, the first a JSON object. */
function isJwt(run: string): boolean {
  const parts = run.split(".");
  return (
    (parts.length === 3 || parts.length === 5) &&
    run.startsWith("eyJ") &&
    parts.every((part) => /^[A-Za-z0-9_-]*$/.test(part)) &&
    (parts[0] as string).length >= 10
  );
}

/** Base64 and base64url: long, and of several classes of characters. */
function isBase64(run: string): boolean {
  if (run.length < MIN_BASE64 || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(run)) return false;
  const classes = [/[a-z]/, /[A-Z]/, /[0-9]/].filter((one) => one.test(run)).length;
  // Paths and names in words have few changes between classes.
  return classes === 3 || (classes === 2 && !/[-_/]/.test(run));
}

function redactNumber(run: string): string {
  let end = run.length;
  while (end > 0 && !/[0-9]/.test(run[end - 1] as string)) end -= 1;
  const trimmed = run.slice(0, end);
  const rest = run.slice(end);
  if (isCardNumber(trimmed)) return `${mark("card")}${rest}`;
  return isPhoneNumber(trimmed) ? `${mark("phone")}${rest}` : run;
}

function mark(kind: RedactedKind): string {
  return `[REDACTED:${kind}]`;
}
