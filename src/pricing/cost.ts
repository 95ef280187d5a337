/**
 * The cost of a call. Money is an integer number of picodollars (10^-12 US dollars) in a bigint: a
 * price in US dollars per million tokens with up to six decimals is then a whole number of
 * picodollars per token, and no sum is ever rounded.
 */
import type { Cost, ModelPrice, TokenCounts } from "./price-book.ts";

const PICODOLLARS = 1_000_000_000_000n;

/**
 * Returns the cost of a call. If the parts of a vendor's input breakdown exceed its total, the
 * parts are charged.
 */
export function costOf(price: ModelPrice, usage: TokenCounts): Cost {
  const cached = count(usage.cachedInputTokens);
  const written5m = count(usage.cacheWrite5mTokens);
  const written1h = count(usage.cacheWrite1hTokens);
  const remainder = count(usage.inputTokens) - cached - written5m - written1h;
  const plain = remainder > 0n ? remainder : 0n;
  const total = plain + cached + written5m + written1h;
  const long =
    price.longPrompt !== undefined && total > BigInt(price.longPrompt.above)
      ? price.longPrompt
      : undefined;
  const input = percent(
    plain * price.input + written5m * price.cacheWrite5m + written1h * price.cacheWrite1h,
    long?.inputPercent,
  );
  const cachedInput = percent(cached * price.cachedInput, long?.inputPercent);
  const output = percent(count(usage.outputTokens) * price.output, long?.outputPercent);
  return { input, cachedInput, output, total: input + cachedInput + output };
}

/**
 * Converts a vendor's count: a value that is not a positive integer counts as zero or is truncated
 * to an integer.
 */
function count(tokens: number): bigint {
  return Number.isFinite(tokens) && tokens > 0 ? BigInt(Math.trunc(tokens)) : 0n;
}

function percent(picodollars: bigint, percentage: number | undefined): bigint {
  return percentage === undefined ? picodollars : (picodollars * BigInt(percentage)) / 100n;
}

/** Formats exact US dollars as a decimal without exponent: `0.0025`, `12`, `0`. */
export function formatUsd(picodollars: bigint): string {
  const sign = picodollars < 0n ? "-" : "";
  const absolute = picodollars < 0n ? -picodollars : picodollars;
  const fraction = (absolute % PICODOLLARS)
    .toString()
    .padStart(12, "0")
    .replace(/(?<!0)0+$/, "");
  return `${sign}${absolute / PICODOLLARS}${fraction === "" ? "" : `.${fraction}`}`;
}

/**
 * Rounds up to whole micro-dollars, the unit of the counters in the state store, so that every call
 * with a cost counts.
 */
export function toMicrodollars(picodollars: bigint): bigint {
  return (picodollars + 999_999n) / 1_000_000n;
}

/** US dollars as a float, only for metrics: never to be summed and billed. */
export function toUsdNumber(picodollars: bigint): number {
  return Number(picodollars) / 1e12;
}
