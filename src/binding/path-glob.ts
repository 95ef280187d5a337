/**
 * Path globs: `*` matches within a segment, `**` across segments. No other character is special.
 */
import { compilePathGlob } from "../platform/glob.ts";

/** @returns the first glob that matches a path; undefined if none does */
export function compilePathGlobs(
  globs: readonly string[],
  ignoreCase: boolean,
): (path: string) => string | undefined {
  const compiled = globs.map((glob) => ({ glob, matches: compilePathGlob(glob, { ignoreCase }) }));
  return (path) => compiled.find(({ matches }) => matches(path))?.glob;
}
