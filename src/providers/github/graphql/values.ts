/** Values of arguments, with variables substituted. */
import { type FieldNode, Kind, type OperationDefinitionNode, type ValueNode } from "graphql";
import type { StrictJson } from "../../strict-json.ts";

export type Variables = ReadonlyMap<string, StrictJson>;

/** Returns the value of each variable of an operation: as sent, or else its default. */
export function variablesOf(
  operation: OperationDefinitionNode,
  sent: Readonly<Record<string, StrictJson>>,
): Variables {
  const values = new Map<string, StrictJson>();
  for (const { variable, defaultValue } of operation.variableDefinitions ?? []) {
    const name = variable.name.value;
    const value = Object.hasOwn(sent, name)
      ? sent[name]
      : defaultValue && valueOf(defaultValue, new Map());
    if (value !== undefined) values.set(name, value);
  }
  return values;
}

/** Returns undefined if the argument is missing, duplicated, or a variable without a value. */
export function argumentOf(
  field: FieldNode,
  name: string,
  variables: Variables,
): StrictJson | undefined {
  const [found, ...more] = (field.arguments ?? []).filter(
    (argument) => argument.name.value === name,
  );
  return found === undefined || more.length > 0 ? undefined : valueOf(found.value, variables);
}

function valueOf(node: ValueNode, variables: Variables): StrictJson | undefined {
  switch (node.kind) {
    case Kind.VARIABLE:
      return variables.get(node.name.value);
    case Kind.STRING:
    case Kind.ENUM:
    case Kind.BOOLEAN:
      return node.value;
    case Kind.INT:
    case Kind.FLOAT:
      return Number(node.value);
    case Kind.NULL:
      return null;
    case Kind.LIST:
      return node.values.map((each) => valueOf(each, variables) ?? null);
    case Kind.OBJECT: {
      const names = node.fields.map((field) => field.name.value);
      if (new Set(names).size !== names.length) return undefined;
      return Object.fromEntries(
        node.fields.map((field) => [field.name.value, valueOf(field.value, variables) ?? null]),
      );
    }
  }
}
