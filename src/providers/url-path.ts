/**
 * A request's path, cut into segments without changing it. What is judged is what is forwarded, so
 * a path that the service, or something between, could read in another way than it is read here is
 * refused: dot segments, empty segments, `;`, `\`, control bytes, encoded forms of what needs no
 * encoding, encoded twice.
 */

export interface Segment {
  /** Decoded once. Where it was encoded it holds no `/`, unless `slashed`. */
  readonly text: string;
  /** Holds an encoded `/`: fits only where a parameter may span several segments. */
  readonly slashed: boolean;
}

export type SplitPath =
  | {
      readonly kind: "segments";
      readonly segments: readonly Segment[];
      readonly trailingSlash: boolean;
    }
  | { readonly kind: "refused"; readonly reason: string; readonly hint: string };

const MAX_BYTES = 8_192;
/**
 * RFC 3986 `pchar` and `/` without `;`, with `[`, `]` and `^`, which clients leave raw in logins
 * and revisions.
 */
const PLAIN = /^\/[A-Za-z0-9\-._~!$&'()*+,=:@%/[\]^]*$/;
const BROKEN_ESCAPE = /%(?![0-9A-Fa-f]{2})/;
/**
 * Letters, digits, `-`, `.`, `_`: all that a service's own words are made of. Encoded they could
 * only hide one.
 */
const NEEDLESS_ESCAPE = /%(?:2[de]|3\d|[46][1-9a-f]|[57][0-9a]|5f)/i;
const ENCODED_TWICE = /%25[0-9A-Fa-f]{2}/;
const DOT_SEGMENT = /^\.{1,2}(?:;|$)/;
// eslint-disable-next-line no-control-regex
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\\]/;

export function splitPath(path: string): SplitPath {
  if (path.length > MAX_BYTES) return refused("is too long", `At most ${MAX_BYTES} bytes`);
  if (!PLAIN.test(path))
    return refused("holds bytes that a path may not hold", "Percent-encode them; `;` is %3B");
  const encoded = path.includes("%");
  if (encoded) {
    if (BROKEN_ESCAPE.test(path))
      return refused("holds a broken percent-escape", "A literal % is %25");
    if (NEEDLESS_ESCAPE.test(path))
      return refused("encodes a letter, digit, `-`, `.` or `_`", "Write those as they are");
    if (ENCODED_TWICE.test(path)) return refused("is percent-encoded twice", "Encode it once");
  }
  const raw = path.slice(1).split("/");
  const trailingSlash = raw.length > 1 && raw.at(-1) === "";
  if (trailingSlash || path === "/") raw.pop();
  const segments: Segment[] = [];
  for (const each of raw) {
    if (each === "") return refused("holds an empty segment (`//`)", "Take the second slash away");
    const segment = encoded && each.includes("%") ? decode(each) : { text: each, slashed: false };
    if (segment === undefined)
      return refused(
        "holds bytes that are not UTF-8 text, or control bytes",
        "Percent-encode UTF-8 text",
      );
    const parts = segment.slashed ? segment.text.split("/") : [segment.text];
    if (parts.some((part) => part === "" || DOT_SEGMENT.test(part))) {
      return refused("holds a `.`, `..` or empty segment", "Write the path that is meant");
    }
    segments.push(segment);
  }
  return { kind: "segments", segments, trailingSlash };
}

function decode(raw: string): Segment | undefined {
  try {
    const text = decodeURIComponent(raw);
    return HIDDEN.test(text) ? undefined : { text, slashed: text.includes("/") };
  } catch {
    return undefined;
  }
}

function refused(what: string, hint: string): SplitPath {
  return { kind: "refused", reason: `The path ${what}`, hint };
}
