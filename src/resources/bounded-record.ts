/** Maps with a bounded number of members. */
import * as z from "zod";

interface Bounds {
  readonly max: number;
  /** Form of the keys. Only the parser checks it: in a CRD its cost would be too high. */
  readonly key: RegExp;
  /** What the keys must be. */
  readonly message: string;
}

/** A map from keys of one form to values of one schema. */
export function boundedRecord<Value extends z.ZodType>(
  value: Value,
  { max, key, message }: Bounds,
) {
  return z
    .record(z.string().regex(key, message), value)
    .refine((map) => Object.keys(map).length <= max, `must have at most ${max} members`)
    .meta({ maxProperties: max });
}
