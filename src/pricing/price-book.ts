/** Looks up prices. */
import { parsePricePerMillion } from "./price.ts";

/** Prices of a model as written: US dollars per million tokens, as decimals. */
export interface PriceEntry {
  readonly input: string;
  /** @defaultValue the input price */
  readonly cachedInput?: string | undefined;
  /** @defaultValue 1.25 times the input price for `claude` models, else the input price */
  readonly cacheWrite5m?: string | undefined;
  /**
   * @defaultValue 2 times the input price for `claude` models, else the price of a 5 minute write
   */
  readonly cacheWrite1h?: string | undefined;
  readonly output: string;
  /** Higher prices for long requests. @defaultValue none */
  readonly longPrompt?: LongPrompt | undefined;
}

/**
 * A request with more input tokens than `above` is charged these percentages of the prices, for all
 * its tokens.
 */
export interface LongPrompt {
  readonly above: number;
  /** Percentage for input, cached input and cache writes. */
  readonly inputPercent: number;
  readonly outputPercent: number;
}

/** By model; `*` as the last character is a wildcard. */
export type PriceTable = Readonly<Record<string, PriceEntry>>;

/** Prices of a model in picodollars per token, defaults applied. */
export interface ModelPrice {
  readonly input: bigint;
  readonly cachedInput: bigint;
  readonly cacheWrite5m: bigint;
  readonly cacheWrite1h: bigint;
  readonly output: bigint;
  readonly longPrompt: LongPrompt | undefined;
}

/**
 * Token counts of a call; has the fields of a dialect's `Usage`. `inputTokens` includes cached
 * reads and cache writes.
 */
export interface TokenCounts {
  readonly inputTokens: number;
  readonly cachedInputTokens: number;
  readonly cacheWrite5mTokens: number;
  readonly cacheWrite1hTokens: number;
  readonly outputTokens: number;
}

/** Picodollars. The kinds of `svc_cost_usd_total{kind}`; they add up to `total`. */
export interface Cost {
  /** Input that was not read from a cache, writes to a cache included. */
  readonly input: bigint;
  readonly cachedInput: bigint;
  readonly output: bigint;
  readonly total: bigint;
}

export interface PriceBook {
  /** Returns undefined if no price is known: the call proceeds, without a cost. */
  priceOf(model: string): ModelPrice | undefined;
}

/** Maximum number of models cached by a book, because clients choose model names. */
const MAX_REMEMBERED = 4096;

/**
 * Compiles tables into a book. Entries of `override` replace those of `table` under the same key;
 * then a model's exact name wins, and the longest wildcard after it, whichever table they came
 * from.
 * @throws RangeError naming the model of a price that cannot be read.
 */
export function createPriceBook(table: PriceTable, override: PriceTable = {}): PriceBook {
  const exact = new Map<string, ModelPrice>();
  const wildcards: { prefix: string; price: ModelPrice }[] = [];
  for (const [model, entry] of Object.entries({ ...table, ...override })) {
    const price = compilePrice(model, entry);
    if (model.endsWith("*")) wildcards.push({ prefix: model.slice(0, -1), price });
    else exact.set(model, price);
  }
  wildcards.sort((a, b) => b.prefix.length - a.prefix.length);
  const remembered = new Map<string, ModelPrice | undefined>();

  return {
    priceOf(model) {
      const known = exact.get(model);
      if (known !== undefined) return known;
      const seen = remembered.get(model);
      if (seen !== undefined || remembered.has(model)) return seen;
      const price = wildcards.find(({ prefix }) => model.startsWith(prefix))?.price;
      if (remembered.size >= MAX_REMEMBERED) remembered.clear();
      remembered.set(model, price);
      return price;
    },
  };
}

function compilePrice(model: string, entry: PriceEntry): ModelPrice {
  try {
    const input = parsePricePerMillion(entry.input);
    const charged = model.startsWith("claude");
    const optional = (text: string | undefined, fallback: bigint) =>
      text === undefined ? fallback : parsePricePerMillion(text);
    // A quarter of a price with six decimals may not be whole: it is rounded up to a picodollar per
    // token.
    const cacheWrite5m = optional(entry.cacheWrite5m, charged ? (input * 5n + 3n) / 4n : input);
    return {
      input,
      cachedInput: optional(entry.cachedInput, input),
      cacheWrite5m,
      cacheWrite1h: optional(entry.cacheWrite1h, charged ? input * 2n : cacheWrite5m),
      output: parsePricePerMillion(entry.output),
      longPrompt: entry.longPrompt,
    };
  } catch (error) {
    throw new RangeError(`price of ${model}: ${(error as Error).message}`, { cause: error });
  }
}
