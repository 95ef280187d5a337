/**
 * Rules of a schema that concern several fields. Each is declared once: the parser evaluates its
 * test, and the API server its CEL expression, with the same message.
 */
import type * as z from "zod";

/** Keyword of a CRD that holds CEL rules. */
const VALIDATIONS = "x-kubernetes-validations";

export interface Rule<Value> {
  /** Returns whether a value satisfies the rule. */
  readonly test: (value: Value) => boolean;
  /** The same test as an expression of the Common Expression Language; `self` is the value. */
  readonly cel: string;
  /** What is wrong; where it depends on the value, as a function and as a CEL expression. */
  readonly message: string | { readonly of: (value: Value) => string; readonly cel: string };
  /** Name of the member that is at fault. @defaultValue the value as a whole */
  readonly field?: string;
}

/** Adds rules to a schema. */
export function withRules<Schema extends z.ZodType>(
  schema: Schema,
  rules: readonly Rule<z.output<Schema>>[],
): Schema {
  return schema
    .superRefine((value, context) => {
      for (const { test, message, field } of rules) {
        if (!test(value))
          context.addIssue({
            code: "custom",
            path: field === undefined ? [] : [field],
            message: typeof message === "string" ? message : message.of(value),
          });
      }
    })
    .meta({
      [VALIDATIONS]: rules.map(({ cel, message, field }) => ({
        rule: cel,
        ...(typeof message === "string" ? { message } : { messageExpression: message.cel }),
        ...(field === undefined ? {} : { fieldPath: `.${field}` }),
      })),
    });
}

/** CEL expression for the number of the named members that an object has. */
export function countGiven(members: readonly string[]): string {
  const given = members.map((member) => `has(self.${member})`).join(", ");
  return `[${given}].filter(given, given).size()`;
}

/** A text as a literal of CEL. */
export function celString(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

/** A list of texts as a literal of CEL. */
export function celList(texts: readonly string[]): string {
  return `[${texts.map(celString).join(", ")}]`;
}
