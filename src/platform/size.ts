/** Sizes as people write them: `512MiB`, `1.5GiB`, `1048576`. */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** @returns bytes; undefined for an invalid size: unknown unit, negative, empty, above 8 PiB */
export function parseSize(text: string): number | undefined {
  const match = /^(\d{1,15}(?:\.\d{1,6})?)(B|KiB|MiB|GiB|TiB)?$/.exec(text);
  if (match === null) return undefined;
  const power = UNITS.indexOf((match[2] ?? "B") as (typeof UNITS)[number]);
  const bytes = Math.round(Number(match[1]) * 1024 ** power);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/**
 * Formats a size in the largest unit that gives at least 1, with one decimal: `75.9 GiB`, `12 B`.
 */
export function formatSize(bytes: number): string {
  let power = 0;
  while (power < UNITS.length - 1 && bytes >= 1024 ** (power + 1)) power += 1;
  const number = bytes / 1024 ** power;
  return `${power === 0 ? number : number.toFixed(1)} ${UNITS[power]}`;
}
