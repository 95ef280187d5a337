/**
 * Names of models and patterns over them. A pattern is a name, or a prefix followed by one `*` as
 * its last character; matching is case-sensitive. `*` alone matches every name. No other character
 * is special, so any two patterns can be intersected exactly.
 */

/**
 * Maximum length of a name or pattern in characters. Vendors' longest names, with their own
 * prefixes, have some 120.
 */
export const MAX_MODEL_NAME = 256;

/**
 * A model name: visible ASCII without quotes, backslash and `*`. Names become labels of metrics,
 * fields of logs and parts of paths.
 */
export const MODEL_NAME = /^[!#-&()+-[\]^_a-~]+$/;

/** A model name or trailing-wildcard pattern: `*` only at the end. */
export const MODEL_PATTERN = /^(?:[!#-&()+-[\]^_a-~]+\*?|\*)$/;

/**
 * Splits `<provider>/<model>` at its first slash, because model names may contain slashes. Returns
 * undefined if either part is missing.
 */
export function splitModelRef(
  ref: string,
): { readonly provider: string; readonly model: string } | undefined {
  const slash = ref.indexOf("/");
  if (slash <= 0 || slash === ref.length - 1) return undefined;
  return { provider: ref.slice(0, slash), model: ref.slice(slash + 1) };
}

export function isPattern(name: string): boolean {
  return name.endsWith("*");
}

/**
 * Returns whether `pattern` covers `name`, which may itself be a pattern (and must then be covered
 * completely).
 */
export function covers(pattern: string, name: string): boolean {
  return isPattern(pattern) ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}

/** Returns the intersection of two patterns as one pattern; undefined if it is empty. */
export function intersect(a: string, b: string): string | undefined {
  if (covers(a, b)) return b;
  return covers(b, a) ? a : undefined;
}

/** Compiles patterns into one test; exact names cost one lookup for any number of them. */
export function compilePatterns(patterns: readonly string[]): (name: string) => boolean {
  if (patterns.includes("*")) return () => true;
  const exact = new Set(patterns.filter((pattern) => !isPattern(pattern)));
  const prefixes = patterns.filter(isPattern).map((pattern) => pattern.slice(0, -1));
  if (prefixes.length === 0) return (name) => exact.has(name);
  return (name) => exact.has(name) || prefixes.some((prefix) => name.startsWith(prefix));
}
