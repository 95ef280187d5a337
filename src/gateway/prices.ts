/**
 * The prices in force: the shipped table, overridden by the ConfigMap `svc-model-prices`, and that
 * by the operator's file.
 */
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import { watchOverrides } from "../pricing/overrides.ts";
import { createPriceBook, type PriceBook, type PriceTable } from "../pricing/price-book.ts";
import { SHIPPED_PRICES } from "../pricing/prices.ts";

export interface Prices {
  current(): PriceBook;
  /** Brings the prices of the ConfigMap into force; none if it has been deleted. */
  setConfigMap(table: PriceTable): void;
  close(): void;
}

export async function openPrices(
  options: { readonly pricesFile?: string | undefined; readonly pricesReloadMs: number },
  clock: Clock,
  log: Logger,
): Promise<Prices> {
  let book = createPriceBook(SHIPPED_PRICES);
  let configMap: PriceTable = {};
  let file: PriceTable = {};
  const compile = (): void => {
    const override = { ...configMap, ...file };
    book = createPriceBook(SHIPPED_PRICES, override);
    log.info({ models: Object.keys(override).length }, "price overrides in force");
  };
  const overrides =
    options.pricesFile === undefined
      ? undefined
      : await watchOverrides({
          path: options.pricesFile,
          clock,
          intervalMs: options.pricesReloadMs,
          onChange: (table) => {
            file = table;
            compile();
          },
          onError: (error) =>
            log.error(
              { error: error.message },
              "price overrides not read; the last good ones stay in force",
            ),
        });
  return {
    current: () => book,
    setConfigMap: (table) => {
      if (isDeepStrictEqual(table, configMap)) return;
      configMap = table;
      compile();
    },
    close: () => overrides?.close(),
  };
}
