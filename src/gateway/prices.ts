/** The prices in force: the shipped table with the overrides of `svc-model-prices`. */
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import { watchOverrides } from "../pricing/overrides.ts";
import { createPriceBook, type PriceBook } from "../pricing/price-book.ts";
import { SHIPPED_PRICES } from "../pricing/prices.ts";

export interface Prices {
  current(): PriceBook;
  close(): void;
}

export async function openPrices(
  options: { readonly pricesFile?: string | undefined; readonly pricesReloadMs: number },
  clock: Clock,
  log: Logger,
): Promise<Prices> {
  let book = createPriceBook(SHIPPED_PRICES);
  if (options.pricesFile === undefined) return { current: () => book, close: () => undefined };
  const overrides = await watchOverrides({
    path: options.pricesFile,
    clock,
    intervalMs: options.pricesReloadMs,
    onChange: (override) => {
      book = createPriceBook(SHIPPED_PRICES, override);
      log.info({ models: Object.keys(override).length }, "price overrides in force");
    },
    onError: (error) =>
      log.error(
        { error: error.message },
        "price overrides not read; the last good ones stay in force",
      ),
  });
  return { current: () => book, close: () => overrides.close() };
}
