/** What the tables of requests and their texts have in common. */
import type { WireFormat } from "./dialect.ts";

/** A text as the tables write it: `prompt` or `result of <tool>`, and the text. */
export type TextRow = readonly [kind: string, text: string];

export type TextsCase = readonly [
  name: string,
  dialect: WireFormat,
  body: object,
  texts: readonly TextRow[],
];

/** Data of an image, in base64. */
export const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ";

export const SCHEMA = {
  type: "object",
  properties: { city: { type: "string", description: "name of a city", enum: ["Paris"] } },
};

export const SCHEMA_TEXT =
  "type\nobject\nproperties\ncity\ntype\nstring\ndescription\nname of a city\nenum\nParis";
