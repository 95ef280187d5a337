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
  readonly message: string;
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
            message,
          });
      }
    })
    .meta({
      [VALIDATIONS]: rules.map(({ cel, message, field }) => ({
        rule: cel,
        message,
        ...(field === undefined ? {} : { fieldPath: `.${field}` }),
      })),
    });
}

/** CEL expression for the number of the named members that an object has. */
export function countGiven(members: readonly string[]): string {
  const given = members.map((member) => `has(self.${member})`).join(", ");
  return `[${given}].filter(given, given).size()`;
}
