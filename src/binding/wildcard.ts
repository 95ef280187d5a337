/** Patterns in which `*` matches any text, as in AWS's policies; no other character is special. */
import { compileWildcard } from "../platform/glob.ts";

/** @returns the first pattern that matches a text; undefined if none does */
export function compileWildcards(
  patterns: readonly string[],
  ignoreCase: boolean,
): (text: string) => string | undefined {
  const compiled = patterns.map((pattern) => ({
    pattern,
    matches: compileWildcard(pattern, { ignoreCase }),
  }));
  return (text) => compiled.find(({ matches }) => matches(text))?.pattern;
}
