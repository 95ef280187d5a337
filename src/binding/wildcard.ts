/** Patterns in which `*` stands for anything, as AWS' policies write them: no other character is special. */

/** @param ignoreCase compare without regard to case */
export function compileWildcards(
  patterns: readonly string[],
  ignoreCase: boolean,
): (text: string) => string | undefined {
  const compiled = patterns.map((pattern) => {
    const source = pattern
      .split("*")
      .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"))
      .join("[^]*");
    return { pattern, regex: new RegExp(`^${source}$`, ignoreCase ? "i" : "") };
  });
  return (text) => compiled.find(({ regex }) => regex.test(text))?.pattern;
}
