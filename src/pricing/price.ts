/** Parses prices exactly. */
import { PRICE_PATTERN } from "../resources/model-prices.ts";

/**
 * Reads a price in US dollars per million tokens (`"2.50"`) as picodollars per token.
 * @throws RangeError for anything but a plain decimal with at most six decimals, up to a million
 * dollars.
 */
export function parsePricePerMillion(text: string): bigint {
  const match = PRICE_PATTERN.exec(text);
  if (match === null)
    throw new RangeError("a price must be a plain decimal with at most 6 decimals, such as 2.50");
  return BigInt((match[1] ?? "0") + (match[2] ?? "").padEnd(6, "0"));
}
