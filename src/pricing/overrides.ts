/**
 * The operator's prices: a file that maps models to prices, or the manifest of the ConfigMap
 * `svc-model-prices`, whose values are such files.
 */
import type { Clock } from "../platform/clock.ts";
import { WatchedFile } from "../platform/watched-file.ts";
import {
  checkPriceTable,
  parsePriceTable,
  parsePriceText,
  PriceFileError,
  PRICES_CONFIG_MAP,
} from "../resources/model-prices.ts";
import type { PriceTable } from "./price-book.ts";

/** Reads a file of prices, YAML or JSON. @throws PriceFileError */
export function parsePriceFile(text: string): PriceTable {
  const value = parsePriceText(text);
  if (value === null || value === "") return {};
  if (!isObject(value) || value["kind"] !== "ConfigMap") return checkPriceTable(value);
  const metadata = value["metadata"];
  if (!isObject(metadata) || metadata["name"] !== PRICES_CONFIG_MAP) {
    throw new PriceFileError(
      `metadata.name: the ConfigMap of prices is called ${PRICES_CONFIG_MAP}`,
    );
  }
  const data = value["data"] ?? {};
  if (!isObject(data)) throw new PriceFileError("data: must be an object");
  const tables = Object.entries(data).map(([key, content]) => {
    if (typeof content !== "string")
      throw new PriceFileError(
        `data.${key}: must be text that holds a map of prices (use "${key}: |")`,
      );
    try {
      return parsePriceTable(content);
    } catch (error) {
      throw new PriceFileError(`data.${key}: ${(error as Error).message}`);
    }
  });
  return Object.assign({}, ...tables) as PriceTable;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export interface WatchOverridesOptions {
  readonly path: string;
  readonly clock: Clock;
  /** Interval between reads of the file, in milliseconds. */
  readonly intervalMs: number;
  /** Called with the new prices whenever they change; a deleted file has none. */
  readonly onChange: (override: PriceTable) => void;
  /** Called once for each invalid version of the file; the last good prices stay in force. */
  readonly onError: (error: Error) => void;
}

/** Reads the file of overrides now and at every interval. Never throws: errors go to `onError`. */
export function watchOverrides(options: WatchOverridesOptions): Promise<WatchedFile> {
  const { path: file, clock, intervalMs, onChange, onError } = options;
  let known = false;
  const onText = (text: string | undefined): void => {
    // That there is no file, and was none, is no change.
    if (text === undefined && !known) return;
    known = text !== undefined;
    try {
      onChange(text === undefined ? {} : parsePriceFile(text));
    } catch (error) {
      onError(error as Error);
    }
  };
  return WatchedFile.open({ file, clock, intervalMs, onText, onError });
}
