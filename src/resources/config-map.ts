/**
 * ConfigMap: the core Kubernetes kind (`v1`), as far as this service uses it: only the one of price
 * overrides.
 */
import * as z from "zod";
import { MESSAGE, NAME, READY, REASON } from "./columns.ts";
import { defineKind } from "./kind.ts";
import type { ResourceBase } from "./metadata.ts";
import { dataKeySchema, secretMetadataSchema } from "./metadata.ts";
import {
  type ModelPrices,
  parsePriceTable,
  PriceFileError,
  PRICES_CONFIG_MAP,
} from "./model-prices.ts";
import { statusSchema } from "./object-status.ts";

const priceText = z.string().superRefine((text, context) => {
  try {
    parsePriceTable(text);
  } catch (error) {
    if (!(error instanceof PriceFileError)) throw error;
    context.addIssue({ code: "custom", message: error.message });
  }
});

export const configMapSchema = z.strictObject({
  apiVersion: z.literal("v1"),
  kind: z.literal("ConfigMap"),
  metadata: secretMetadataSchema.refine(({ name }) => name === PRICES_CONFIG_MAP, {
    path: ["name"],
    message: `must be ${PRICES_CONFIG_MAP}, the only ConfigMap that svc reads`,
  }),
  immutable: z.boolean().optional().describe("As in Kubernetes; ignored."),
  data: z
    .record(dataKeySchema, priceText)
    .optional()
    .describe("Tables of prices, each as text in YAML or JSON; a later key overrides an earlier."),
  status: statusSchema({}).optional(),
});

export interface ConfigMapResource extends ResourceBase {
  readonly kind: "ConfigMap";
  readonly data: Readonly<Record<string, string>>;
  /** The prices of all its tables. */
  readonly prices: ModelPrices;
}

export const configMapKind = defineKind({
  kind: "ConfigMap",
  apiVersion: "v1",
  collection: "configMaps",
  names: { singular: "config-map", plural: "config-maps", short: "cm" },
  reference:
    "The core Kubernetes kind, `apiVersion: v1`. Only the one named `svc-model-prices` is read: " +
    "price overrides, see [pricing](pricing.md). If several namespaces have one, the first by " +
    "name of namespace is in use.",
  schema: configMapSchema,
  build: ({ data = {} }, base): ConfigMapResource => ({
    kind: "ConfigMap",
    ...base,
    data,
    prices: Object.assign({}, ...Object.values(data).map(parsePriceTable)) as ModelPrices,
  }),
  view: ({ data }) => ({ data }),
  columns: [NAME, READY, REASON, MESSAGE],
});
