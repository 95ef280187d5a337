/** GitHub's public GraphQL schema, reduced to the types of its fields. */
import generated from "../../../gen/github-graphql.json" with { type: "json" };

/** Fields of a type: for each its type, or `undefined` for a leaf. */
type Fields = ReadonlyMap<string, string | undefined>;

let texts: ReadonlyMap<string, string> | undefined;
const types = new Map<string, Fields>();

/** The fields of each type as text. Read with the first request, because it takes memory. */
function fieldTexts(): ReadonlyMap<string, string> {
  return (texts ??= new Map(Object.entries(generated.types)));
}

function fieldsOf(type: string): Fields | undefined {
  const known = types.get(type);
  const text = known === undefined ? fieldTexts().get(type) : undefined;
  if (text === undefined) return known;
  const fields = new Map(
    text
      .split(" ")
      .filter((field) => field !== "")
      .map((field): [string, string | undefined] => {
        const [name = "", target] = field.split(":");
        return [name, target];
      }),
  );
  types.set(type, fields);
  return fields;
}

export type FieldTarget =
  | { readonly kind: "leaf" }
  | { readonly kind: "object"; readonly type: string }
  | { readonly kind: "unknown" };

export function fieldOf(type: string, name: string): FieldTarget {
  const fields = fieldsOf(type);
  if (fields === undefined || !fields.has(name)) return { kind: "unknown" };
  const target = fields.get(name);
  return target === undefined ? { kind: "leaf" } : { kind: "object", type: target };
}

export function isType(name: string): boolean {
  return fieldTexts().has(name);
}

export function fieldNames(type: string): readonly string[] {
  return [...(fieldsOf(type)?.keys() ?? [])];
}

export function typeNames(): readonly string[] {
  return [...fieldTexts().keys()];
}
