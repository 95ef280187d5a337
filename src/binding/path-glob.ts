/** Globs over paths: `*` within a segment, `**` across them. No other character is special. */
import picomatch from "picomatch";

const OPTIONS: picomatch.PicomatchOptions = {
  dot: true,
  nobrace: true,
  noextglob: true,
  nobracket: true,
  nonegate: true,
  strictSlashes: true,
};

export function compilePathGlobs(
  globs: readonly string[],
  ignoreCase: boolean,
): (path: string) => string | undefined {
  const compiled = globs.map((glob) => ({
    glob,
    matches: picomatch(glob.replaceAll(/[^\p{L}\p{N}_*/]/gu, "\\$&"), {
      ...OPTIONS,
      nocase: ignoreCase,
    }),
  }));
  return (path) => compiled.find(({ matches }) => matches(path))?.glob;
}
