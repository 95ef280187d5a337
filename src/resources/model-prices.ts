/** Tables of model prices as operators write them: YAML or JSON that maps models to prices. */
import { parseDocument } from "yaml";
import * as z from "zod";
import { explainIssues } from "./explain.ts";
import { formatPath } from "./problem.ts";
import { lineAt, syntaxMessage } from "./yaml.ts";

/** Name of the ConfigMap whose values are such tables. */
export const PRICES_CONFIG_MAP = "svc-model-prices";

/** US dollars per million tokens: whole dollars, and at most six decimals. */
export const PRICE_PATTERN = /^(\d{1,7})(?:\.(\d{1,6}))?$/;

const price = z
  .string()
  .regex(
    PRICE_PATTERN,
    "must be US dollars per million tokens, a decimal with at most 6 decimals such as 2.50",
  );

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

/** Prices by model; `*` as the last character is a wildcard. */
export type ModelPrices = Readonly<z.output<typeof tableSchema>>;

/** Error for invalid prices. The message states the place and the reason. */
export class PriceFileError extends Error {
  override readonly name = "PriceFileError";
}

/** Reads one table from text. @throws PriceFileError */
export function parsePriceTable(text: string): ModelPrices {
  const value = parsePriceText(text);
  return value === null || value === "" ? {} : checkPriceTable(value);
}

/**
 * Reads YAML or JSON with the failsafe schema, which keeps every scalar as text, so that 2.50 never
 * becomes a float. @throws PriceFileError
 */
export function parsePriceText(text: string): unknown {
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

/** @throws PriceFileError */
export function checkPriceTable(value: unknown): ModelPrices {
  const parsed = tableSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [first] = explainIssues(parsed.error.issues, value, tableSchema);
  throw new PriceFileError(
    `${formatPath(first?.path ?? [])}: ${first?.message ?? "not a map of prices"}`,
  );
}
