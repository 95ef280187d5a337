/**
 * Money is an integer number of picodollars (10^-12 US dollars) in a bigint. A price in US dollars per million tokens
 * with up to six decimals is then a whole number of picodollars per token, and no sum is ever rounded.
 */

const PICODOLLARS = 1_000_000_000_000n;

/**
 * Reads a price in US dollars per million tokens (`"2.50"`) as picodollars per token.
 * @throws RangeError for anything but a plain decimal with at most six decimals, up to a million dollars.
 */
export function parsePricePerMillion(text: string): bigint {
  const match = /^(\d{1,7})(?:\.(\d{1,6}))?$/.exec(text);
  if (match === null) throw new RangeError("a price must be a plain decimal with at most 6 decimals, such as 2.50");
  return BigInt((match[1] ?? "0") + (match[2] ?? "").padEnd(6, "0"));
}

/** Exact US dollars as a decimal without exponent: `0.0025`, `12`, `0`. */
export function formatUsd(picodollars: bigint): string {
  const sign = picodollars < 0n ? "-" : "";
  const absolute = picodollars < 0n ? -picodollars : picodollars;
  const fraction = (absolute % PICODOLLARS).toString().padStart(12, "0").replace(/0+$/, "");
  return `${sign}${absolute / PICODOLLARS}${fraction === "" ? "" : `.${fraction}`}`;
}

/** Rounds up to whole micro-dollars, the unit of counters in the state store: a call that cost anything counts. */
export function toMicrodollars(picodollars: bigint): bigint {
  return (picodollars + 999_999n) / 1_000_000n;
}

/** US dollars as a float, for metrics only: never to be added up and billed. */
export function toUsdNumber(picodollars: bigint): number {
  return Number(picodollars) / 1e12;
}
