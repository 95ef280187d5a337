/**
 * Finds secrets that are written without white space: addresses of mail, keys, tokens, blobs. One
 * pass over maximal runs of characters, each cut into its parts.
 */
import { beginsAsApiKey, isApiKey } from "./api-keys.ts";
import type { RedactedKind, Span } from "./span.ts";

/** Runs in which secrets are looked for: no white space, quotes, brackets or separators of URLs. */
const RUN = /[A-Za-z0-9+/_.~@%=-]+/g;

/** An escape of JSON before a run, whose letters the run begins with: `\n`, `\u003d`. */
const ESCAPE = /^(?:[nrtbf]|u[0-9A-Fa-f]{4})/;

/** What separates a value from its name and its neighbours, the strongest first. */
const SEPARATORS: readonly (readonly [sign: string, pattern: RegExp])[] = [
  ["=", /=/g],
  ["/", /\//g],
  ["%", /%[0-9A-Fa-f]{2}/g],
  ["~", /~/g],
  ["@", /@/g],
];

/** Length of the shortest secret: an email. */
const MIN_SECRET = 6;

/** Yields the secrets of a text, in order. */
export function* runSecretsIn(text: string): Generator<Span> {
  let last: Run | undefined;
  for (const { 0: found, index } of text.matchAll(RUN)) {
    const run = runAt(text, found, index);
    if (run.text === "") continue;
    const kind = last === undefined ? undefined : wrappedKind(text, last, run);
    if (kind === undefined || last === undefined) {
      yield* run.spans;
      last = run;
      continue;
    }
    if (last.spans.length === 0) {
      yield { start: last.end - valueOf(last).length, end: last.end, kind };
    }
    const rest = { start: run.start, end: run.end, kind };
    yield rest;
    last = { ...run, spans: [rest] };
  }
}

interface Run {
  readonly text: string;
  readonly start: number;
  readonly end: number;
  /** Place behind the text before it, which may be an escape of JSON. */
  readonly gapEnd: number;
  readonly spans: readonly Span[];
}

/** Returns a run with its secrets; without the letters of an escape, unless it then has none. */
function runAt(text: string, run: string, start: number): Run {
  const end = start + run.length;
  const escape = text[start - 1] === "\\" ? (ESCAPE.exec(run)?.[0].length ?? 0) : 0;
  const rest = run.slice(escape);
  if (run.length < MIN_SECRET) {
    return { text: rest, start: start + escape, end, gapEnd: start, spans: [] };
  }
  const spans = [...secretsOf(rest, start + escape, 0)];
  if (escape === 0 || spans.length > 0) {
    return { text: rest, start: start + escape, end, gapEnd: start, spans };
  }
  const whole = [...secretsOf(run, start, 0)];
  return whole.length > 0
    ? { text: run, start, end, gapEnd: start, spans: whole }
    : { text: rest, start: start + escape, end, gapEnd: start, spans };
}

function* secretsOf(text: string, start: number, level: number): Generator<Span> {
  for (const value of new Set([withoutEnd(text), text])) {
    const kind = kindOf(value) ?? (value.includes("%") ? kindOf(decoded(value)) : undefined);
    if (kind === undefined) continue;
    yield { start, end: start + value.length, kind };
    return;
  }
  if (text.length < MIN_SECRET) return;
  const next = SEPARATORS.findIndex(([sign], index) => index >= level && text.includes(sign));
  if (next < 0) return;
  const [, separator] = SEPARATORS[next] as (typeof SEPARATORS)[number];
  let at = 0;
  for (const { 0: found, index } of text.matchAll(separator)) {
    if (index - at >= MIN_SECRET) {
      yield* secretsOf(text.slice(at, index), start + at, next + 1);
    }
    at = index + found.length;
  }
  yield* secretsOf(text.slice(at), start + at, next + 1);
}

/** Returns a run without what ends a sentence or an escape. */
function withoutEnd(run: string): string {
  let end = run.length;
  while (end > 0 && ".%~-".includes(run[end - 1] as string)) end -= 1;
  return run.slice(0, end);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function kindOf(run: string): RedactedKind | undefined {
  if (run.length < MIN_SECRET) return undefined;
  if (isEmail(run)) return "email";
  if (JWT.test(run)) return "jwt";
  if (isApiKey(run)) return "api-key";
  if (HEX.test(run)) return "hex";
  return isBase64(run) ? "base64" : undefined;
}

/** RFC 7519: parts in base64url, the first a JSON object. A line end may have cut it. */
const JWT = /^eyJ[\w-]{10,}\.[\w.-]*$/;

/** An MD5 hash, or a key of 128 bits. */
const HEX = /^(?:0x)?[0-9A-Fa-f]{32,}$/;

/** `name@domain.tld`; also with the at sign as `%40`. */
function isEmail(run: string): boolean {
  const [name = "", domain = "", ...more] = run.replace("%40", "@").split("@", 3);
  return (
    more.length === 0 &&
    /^[A-Za-z0-9._%+~-]{1,64}$/.test(name) &&
    domain.length <= 253 &&
    /^[A-Za-z0-9.-]+$/.test(domain) &&
    /^[A-Za-z]{2,24}$/.test(domain.split(".").at(-1) ?? "") &&
    domain.includes(".")
  );
}

/** Minimum length of base64: 240 bits. Shorter ones are words, paths and names as well. */
const MIN_BASE64 = 40;

/** Minimum length of a JSON object in base64. */
const MIN_OBJECT = 16;

const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;

/** Base64 in either alphabet. */
function isBase64(run: string): boolean {
  if (!BASE64.test(run)) return false;
  if (run.length < MIN_BASE64) return run.length >= MIN_OBJECT && run.startsWith("eyJ");
  return isRandom(run);
}

const CLASSES: readonly RegExp[] = [/[a-z]/, /[A-Z]/, /[0-9]/];

/** A word of an identifier, or a number. */
const WORD = /[A-Z]?[a-z]+|[A-Z]+|[0-9]+/g;

/**
 * Mean length of what looks like words, up to which a run is random, by its classes of characters.
 * It is 1.9 in base64, and 3.0 at most in 99.9 % of 40 random characters; in paths and identifiers
 * it is 4 and more.
 */
const MAX_MEAN_WORD = { 2: 3.5, 3: 3.1 } as const;

/** Returns whether a run is of random characters, and not a path or a name of several words. */
function isRandom(run: string): boolean {
  const classes = CLASSES.filter((one) => one.test(run)).length;
  if (classes < 2) return false;
  const words = run.match(WORD) ?? [];
  const length = words.reduce((sum, word) => sum + word.length, 0);
  return length / words.length <= MAX_MEAN_WORD[classes === 3 ? 3 : 2];
}

/** A line end between two parts of a secret: also as JSON writes it, and of quoted-printable. */
const LINE_END = /^(?:\r?\n[ \t>]{0,8}|(?:\\+r)?\\+)$/;

const MAX_LINE_END = 10;

/** The rest of a wrapped secret. */
const REST = /^[\w+/.-]{6,}={0,2}$/;
const HEX_REST = /^[0-9A-Fa-f]{6,}$/;

/** Returns the kind of a secret that a line end cuts into two runs. */
function wrappedKind(text: string, last: Run, run: Run): RedactedKind | undefined {
  if (run.text.length < MIN_SECRET && last.text.length < MIN_SECRET) return undefined;
  if (run.gapEnd - last.end > MAX_LINE_END || !LINE_END.test(text.slice(last.end, run.gapEnd))) {
    return undefined;
  }
  const span = last.spans.at(-1);
  if (span !== undefined) {
    const isRest =
      run.spans.length === 0 &&
      last.end - span.end <= 1 &&
      span.kind !== "email" &&
      (span.kind === "hex" ? HEX_REST.test(run.text) : isRandomRest(run.text));
    return isRest ? span.kind : undefined;
  }
  const value = valueOf(last);
  const kind = kindOf(value + withoutEnd(run.text));
  // The second half of a key may look like a secret by itself.
  if (kind === "api-key") return beginsAsApiKey(value) ? kind : undefined;
  if (run.spans.length > 0) return undefined;
  if (kind === "email") return value.includes("@") ? kind : undefined;
  if (kind === "base64") return isRandom(value) && isRandom(run.text) ? kind : undefined;
  return kind;
}

function isRandomRest(text: string): boolean {
  return REST.test(text) && (text.endsWith("=") || isRandom(text));
}

/** Returns the value of a run `name=value`, also before a soft line end. */
function valueOf({ text }: Run): string {
  const plain = text.endsWith("=") ? text.slice(0, -1) : text;
  return plain.slice(plain.lastIndexOf("=") + 1);
}
