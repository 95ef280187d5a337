/**
 * Replaces secrets and personal data in a text by `[REDACTED:<kind>]`, before it is recorded. The
 * time is linear in the length for any text. It errs on the side of redaction: a record needs no
 * key to be useful.
 */
import { numbersIn } from "./numbers.ts";
import { pemIn } from "./pem.ts";
import { runSecretsIn } from "./runs.ts";
import type { Span } from "./span.ts";

/** Returns the text without secrets and personal data. */
export function redact(text: string): string {
  return redactPart(text, 0, text.length);
}

/**
 * Returns a part of a text without secrets and personal data. A secret that the part's edge cuts is
 * recognised by the whole text.
 */
export function redactPart(text: string, start: number, end: number): string {
  const parts: string[] = [];
  let at = start;
  for (const span of secretsIn(text)) {
    if (span.end <= at) continue;
    if (span.start >= end) break;
    parts.push(text.slice(at, span.start), `[REDACTED:${span.kind}]`);
    at = span.end;
  }
  parts.push(text.slice(at, Math.max(at, end)));
  return parts.join("");
}

/** Returns the secrets of a text, in order. */
function secretsIn(text: string): readonly Span[] {
  return [runSecretsIn, numbersIn].reduce<readonly Span[]>(
    (found, find) => between(text, found, find),
    [...pemIn(text)],
  );
}

/** Adds what is found between spans. */
function between(
  text: string,
  spans: readonly Span[],
  find: (text: string) => Iterable<Span>,
): readonly Span[] {
  const all: Span[] = [];
  let at = 0;
  const add = (to: number): void => {
    for (const { start, end, kind } of find(text.slice(at, to))) {
      all.push({ start: at + start, end: at + end, kind });
    }
  };
  for (const span of spans) {
    add(span.start);
    all.push(span);
    at = span.end;
  }
  add(text.length);
  return all;
}
