/** Globs over paths: `*` within a segment, `**` across them. No other character is special. */
import { compilePathGlob } from "../platform/glob.ts";

/** @returns the first glob that covers a path; undefined for none */
export function compilePathGlobs(
  globs: readonly string[],
  ignoreCase: boolean,
): (path: string) => string | undefined {
  const compiled = globs.map((glob) => ({ glob, matches: compilePathGlob(glob, { ignoreCase }) }));
  return (path) => compiled.find(({ matches }) => matches(path))?.glob;
}
