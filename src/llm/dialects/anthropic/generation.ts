/** Differences between generations of Claude models, by their names. */

/**
 * Before 4.6, Claude expects a thinking budget; from then on `adaptive` with an effort, and from
 * 4.7 on it refuses a budget. An unknown name counts as a new model.
 */
export function thinksAdaptively(model: string): boolean {
  return (versionOf(model) ?? 5) >= 4.6;
}

/** Which of `temperature`, `top_p` and `top_k` a model takes. */
export type Sampling = "all" | "temperature-or-top-p" | "none";

/**
 * From 4.1 on, Claude refuses `temperature` beside `top_p`; from 4.7 on it refuses all three. A
 * name that is not Claude's belongs to a server that only speaks this dialect, and gets all.
 *
 * Source: https://platform.claude.com/docs/en/about-claude/models/migration-guide
 */
export function samplingOf(model: string): Sampling {
  const version = versionOf(model) ?? 0;
  if (version >= 4.7) return "none";
  return version >= 4.1 ? "temperature-or-top-p" : "all";
}

/** Returns e.g. 4.5 for `claude-sonnet-4-5-20250929`, and 3 for every version 3. */
function versionOf(model: string): number | undefined {
  if (/claude-3/.test(model)) return 3;
  // A number of more than two digits is a date.
  const match = /claude-[a-z]+-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/.exec(model);
  if (match === null) return undefined;
  return Number(match[1]) + Number(match[2] ?? 0) / 10;
}
