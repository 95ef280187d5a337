/** Durations as people write them: `30s`, `5m`, `2h`, `7d`, `1h30m`. */

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/**
 * Longest accepted duration, in milliseconds: ten years of 365 days. Longer ones are treated as
 * mistakes.
 */
const MAX_MS = 3_650 * 86_400_000;

/**
 * @returns milliseconds; undefined for an invalid duration: without a unit, negative, empty, a
 * repeated unit, or more than ten years
 */
export function parseDuration(text: string): number | undefined {
  if (!/^(?:\d{1,15}(?:\.\d{1,6})?(?:ms|s|m|h|d))+$/.test(text)) return undefined;
  const seen = new Set<string>();
  let total = 0;
  for (const [, number, unit] of text.matchAll(/(\d{1,15}(?:\.\d{1,6})?)(ms|s|m|h|d)/g)) {
    if (seen.has(unit as string)) return undefined;
    seen.add(unit as string);
    total += Number(number) * (UNIT_MS[unit as string] as number);
  }
  return total <= MAX_MS ? Math.round(total) : undefined;
}

/** Formats the two largest non-zero units, for tables: `45s`, `5m`, `2h30m`, `7d`. Rounds down. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const [minutes, hours, days] = [
    Math.floor(seconds / 60),
    Math.floor(seconds / 3_600),
    Math.floor(seconds / 86_400),
  ];
  if (minutes === 0) return `${seconds}s`;
  if (hours === 0)
    return minutes < 10 && seconds % 60 > 0 ? `${minutes}m${seconds % 60}s` : `${minutes}m`;
  if (days === 0) return hours < 10 && minutes % 60 > 0 ? `${hours}h${minutes % 60}m` : `${hours}h`;
  return days < 10 && hours % 24 > 0 ? `${days}d${hours % 24}h` : `${days}d`;
}
