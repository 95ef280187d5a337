/**
 * The one strict reader of paths: it splits a request's path into segments without changing it. The
 * proxy forwards exactly the bytes that it evaluated, so a path that the service, or a server in
 * between, could interpret differently is refused: dot segments, empty segments, `;`, `\`, control
 * bytes, unnecessary escapes, double encoding.
 */

export interface Segment {
  /** Decoded once. Contains no `/` from an escape, unless `slashed`. */
  readonly text: string;
  /** Contains an encoded `/`: matches only a parameter that may span several segments. */
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
 * Letters, digits, `-`, `.`, `_`: a service's literals consist only of these. Encoding them could
 * only hide a literal.
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
    if (each === "") return refused("holds an empty segment (`//`)", "Remove the second slash");
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

export interface PlainSegments {
  /** Segments, each decoded once. */
  readonly segments: readonly string[];
  readonly trailingSlash: boolean;
}

/**
 * Returns the segments of the path of an API whose names are plain. Returns undefined if
 * {@link splitPath} refuses the path, or if it contains `+` or `^`, a needless escape of `~`, an
 * escaped `;`, `%`, `?` or `#`, or an escaped slash, unless `slashes` allows it inside a segment.
 */
export function plainSegments(
  path: string,
  options: { readonly slashes: boolean },
): PlainSegments | undefined {
  const split = splitPath(path);
  if (split.kind === "refused" || /[+^]|%7e/i.test(path)) return undefined;
  const { segments, trailingSlash } = split;
  const isPlain = ({ text, slashed }: Segment): boolean =>
    (options.slashes || !slashed) && !/[;%?#]/.test(text);
  if (!segments.every(isPlain)) return undefined;
  return { segments: segments.map(({ text }) => text), trailingSlash };
}

/**
 * Returns whether servers interpret a path in different ways, so that no glob is reliable for it:
 * {@link splitPath} refuses it, or it contains an escaped slash, `;`, `%` or `~`.
 */
export function isAmbiguousPath(path: string): boolean {
  const split = splitPath(path);
  return split.kind === "refused" || /%(?:2f|3b|25|7e)/i.test(path);
}
