/** GitHub's public GraphQL schema, reduced to the types of its fields. */
import generated from "../../../gen/github-graphql.json" with { type: "json" };

/** By type: for each field its type, or `undefined` for a leaf. */
const types: ReadonlyMap<string, ReadonlyMap<string, string | undefined>> = new Map(
  Object.entries(generated.types).map(([type, fields]) => [
    type,
    new Map(
      fields
        .split(" ")
        .filter((field) => field !== "")
        .map((field): [string, string | undefined] => {
          const [name = "", target] = field.split(":");
          return [name, target];
        }),
    ),
  ]),
);

export type FieldTarget =
  | { readonly kind: "leaf" }
  | { readonly kind: "object"; readonly type: string }
  | { readonly kind: "unknown" };

export function fieldOf(type: string, name: string): FieldTarget {
  const fields = types.get(type);
  if (fields === undefined || !fields.has(name)) return { kind: "unknown" };
  const target = fields.get(name);
  return target === undefined ? { kind: "leaf" } : { kind: "object", type: target };
}

export function isType(name: string): boolean {
  return types.has(name);
}

export function fieldNames(type: string): readonly string[] {
  return [...(types.get(type)?.keys() ?? [])];
}

export function typeNames(): readonly string[] {
  return [...types.keys()];
}
