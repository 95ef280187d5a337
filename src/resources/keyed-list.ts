/** Lists whose items have a key. The API server refuses a repeated key, and merges items by it. */
import * as z from "zod";

/** A list of at most `max` items that differ in the member `key`. */
export function keyedList<Key extends string, Item extends z.ZodType<Record<Key, string>>>(
  item: Item,
  key: Key,
  max: number,
) {
  return z
    .array(item)
    .max(max)
    .superRefine((items, context) => {
      const seen = new Set<string>();
      for (const [index, { [key]: own }] of items.entries()) {
        if (seen.has(own))
          context.addIssue({
            code: "custom",
            path: [index, key],
            message: "must differ from that of every other item",
          });
        seen.add(own);
      }
    })
    .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key] });
}
