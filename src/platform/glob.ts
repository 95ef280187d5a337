/**
 * Patterns with `*`, matched in time that is linear in the text: a regular expression with several
 * stars backtracks, and texts are a client's to choose. No other character is special.
 */

export interface GlobOptions {
  /** Compare without regard to case. */
  readonly ignoreCase: boolean;
}

type Matcher = (text: string) => boolean;

/** A pattern in which `*` stands for any text, also none (as in AWS's policies). */
export function compileWildcard(pattern: string, { ignoreCase }: GlobOptions): Matcher {
  const matches = wildcard(ignoreCase ? lowerCase(pattern) : pattern);
  return ignoreCase ? (text) => matches(lowerCase(text)) : matches;
}

/**
 * A pattern over segments that `/` divides: `*` stands for any text within a segment (a segment
 * that is `*` alone is not empty), `**` as a whole segment for any number of segments, at the end
 * for one at least: `/repos/**` covers `/repos/` and what is below it, and not `/repos`.
 */
export function compilePathGlob(glob: string, { ignoreCase }: GlobOptions): Matcher {
  const groups = groupsOf(ignoreCase ? lowerCase(glob) : glob);
  return (text) => matchGroups(groups, (ignoreCase ? lowerCase(text) : text).split("/"));
}

/** ASCII only: the Kelvin sign's lower case would be a plain `k`, which no service takes it for. */
function lowerCase(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** Leftmost places of the parts between stars are the best: what follows has the most room. */
function wildcard(pattern: string): Matcher {
  const parts = pattern.split("*");
  const first = parts[0] as string;
  if (parts.length === 1) return (text) => text === first;
  const last = parts.at(-1) as string;
  const inner = parts.slice(1, -1).filter((part) => part !== "");
  return (text) => {
    if (text.length < first.length + last.length) return false;
    if (!text.startsWith(first) || !text.endsWith(last)) return false;
    const end = text.length - last.length;
    let at = first.length;
    for (const part of inner) {
      const found = text.indexOf(part, at);
      if (found < 0) return false;
      at = found + part.length;
    }
    return at <= end;
  };
}

/** Matchers of segments in a row; `**` stands between the groups. */
type Group = readonly Matcher[];

function groupsOf(glob: string): readonly Group[] {
  const groups: Matcher[][] = [[]];
  const segments = glob.split("/");
  for (const [index, segment] of segments.entries()) {
    if (segment !== "**") {
      groups.at(-1)?.push(segmentMatcher(segment));
      continue;
    }
    // At the end it needs a segment of its own, which may be empty.
    if (index === segments.length - 1) groups.push([() => true]);
    else groups.push([]);
  }
  return groups;
}

function segmentMatcher(segment: string): Matcher {
  const matches = wildcard(segment);
  return /^\*+$/.test(segment) ? (text) => text !== "" : matches;
}

function matchGroups(groups: readonly Group[], segments: readonly string[]): boolean {
  const first = groups[0] as Group;
  if (groups.length === 1) {
    return segments.length === first.length && matchesAt(first, segments, 0);
  }
  const last = groups.at(-1) as Group;
  const end = segments.length - last.length;
  if (end < first.length || !matchesAt(first, segments, 0)) return false;
  if (!matchesAt(last, segments, end)) return false;
  let at = first.length;
  for (const group of groups.slice(1, -1)) {
    while (at + group.length <= end && !matchesAt(group, segments, at)) at += 1;
    at += group.length;
    if (at > end) return false;
  }
  return true;
}

function matchesAt(group: Group, segments: readonly string[], at: number): boolean {
  return group.every((matches, index) => {
    const segment = segments[at + index];
    return segment !== undefined && matches(segment);
  });
}
