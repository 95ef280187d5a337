/**
 * The operator's prices: a file that maps models to prices, or the manifest of the ConfigMap
 * `svc-model-prices`, whose values are such files.
 */
import { parseDocument } from "yaml";
import { z } from "zod";
import type { Clock } from "../platform/clock.ts";
import { WatchedFile } from "../platform/watched-file.ts";
import { explainIssues } from "../resources/explain.ts";
import { formatPath } from "../resources/problem.ts";
import { lineAt, syntaxMessage } from "../resources/yaml.ts";
import { parsePricePerMillion } from "./price.ts";
import type { PriceTable } from "./price-book.ts";

export const PRICES_CONFIG_MAP = "svc-model-prices";

const price = z.string().refine((text) => {
  try {
    return parsePricePerMillion(text) >= 0n;
  } catch {
    return false;
  }
}, "must be US dollars per million tokens, a decimal with at most 6 decimals such as 2.50");

const integer = (min: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, "must be a whole number")
    .transform(Number)
    .refine((value) => value >= min, `must be at least ${min}`);

const tableSchema = z.record(
  z
    .string()
    .regex(
      /^(?:[^\s*\p{C}]+\*?|\*)$/u,
      "must be a model name, optionally with one '*' as its last character",
    ),
  z.strictObject({
    input: price,
    cachedInput: price.optional(),
    cacheWrite5m: price.optional(),
    cacheWrite1h: price.optional(),
    output: price,
    longPrompt: z
      .strictObject({ above: integer(0), inputPercent: integer(1), outputPercent: integer(1) })
      .optional(),
  }),
);

/** Error for an invalid file of prices. The message states the place and the reason. */
export class PriceFileError extends Error {
  override readonly name = "PriceFileError";
}

/** Reads a file of prices, YAML or JSON. @throws PriceFileError */
export function parsePriceFile(text: string): PriceTable {
  const value = parseText(text);
  if (value === null || value === "") return {};
  if (!isObject(value) || value["kind"] !== "ConfigMap") return checkTable(value, "");
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
    const table = parseText(content);
    return table === null || table === "" ? {} : checkTable(table, `data.${key}: `);
  });
  return Object.assign({}, ...tables) as PriceTable;
}

/** The failsafe schema keeps every scalar as text, so that 2.50 never becomes a float. */
function parseText(text: string): unknown {
  const document = parseDocument(text, {
    schema: "failsafe",
    prettyErrors: false,
    logLevel: "silent",
  });
  const [error] = document.errors;
  if (error !== undefined)
    throw new PriceFileError(
      `not valid YAML at line ${lineAt(text, error.pos[0])}: ${syntaxMessage(error.code)}`,
    );
  return document.toJS({ maxAliasCount: 100 }) as unknown;
}

function checkTable(value: unknown, where: string): PriceTable {
  const parsed = tableSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [first] = explainIssues(parsed.error.issues, value, tableSchema);
  throw new PriceFileError(
    `${where}${formatPath(first?.path ?? [])}: ${first?.message ?? "not a map of prices"}`,
  );
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
