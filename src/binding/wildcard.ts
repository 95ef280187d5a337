/**
 * Patterns in which `*` stands for anything, as AWS's policies write them: no other character is
 * special.
 */
import { compileWildcard } from "../platform/glob.ts";

/** @returns the first pattern that covers a text; undefined for none */
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
