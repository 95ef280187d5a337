/**
 * Converts schema issues to messages with a path and a fix, for people. Only runs after an error.
 */
import * as z from "zod";

export interface Explanation {
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly fix: string;
}

/**
 * Explains the issues of one value, with one entry per field. Quotes names of fields, never values.
 */
export function explainIssues(
  issues: readonly z.core.$ZodIssue[],
  value: unknown,
  schema: z.core.$ZodType,
): Explanation[] {
  return issues.flatMap((issue) => {
    switch (issue.code) {
      case "unrecognized_keys":
        return issue.keys.map((key) =>
          explainUnknown([...issue.path, key], key, knownFields(schema, issue.path)),
        );
      case "invalid_type":
        return [explainType(issue, valueAt(value, issue.path))];
      case "invalid_value": {
        const allowed = issue.values.map(String);
        const actual = valueAt(value, issue.path);
        if (actual === undefined) return [required(issue.path, ` (one of: ${allowed.join(", ")})`)];
        const near = typeof actual === "string" ? nearest(actual, allowed) : undefined;
        return [
          {
            path: issue.path,
            message: `must be one of: ${allowed.join(", ")}`,
            fix: near === undefined ? "use one of them" : `did you mean ${near}?`,
          },
        ];
      }
      case "invalid_key":
        return [
          {
            path: issue.path,
            message: `key ${issue.issues[0]?.message ?? "is invalid"}`,
            fix: "rename the key",
          },
        ];
      case "too_small":
      case "too_big":
        return [
          { path: issue.path, message: decapitalise(issue.message), fix: "correct the value" },
        ];
      default:
        return [
          issue.message.startsWith("is required")
            ? {
                path: issue.path,
                message: issue.message,
                fix: `add ${String(issue.path.at(-1) ?? "it")}`,
              }
            : { path: issue.path, message: decapitalise(issue.message), fix: "correct the value" },
        ];
    }
  });
}

/** Value at a path, or undefined. */
export function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let at = value;
  for (const part of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, part)) return undefined;
    at = (at as Record<PropertyKey, unknown>)[part];
  }
  return at;
}

/**
 * Returns the candidate of which `text` is most likely a misspelling; undefined if none is similar.
 */
export function nearest(text: string, candidates: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(text.length / 4)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(text.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance && distance < candidate.length) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

function explainUnknown(
  path: readonly PropertyKey[],
  key: string,
  known: readonly string[],
): Explanation {
  const near = nearest(key, known);
  return near === undefined
    ? {
        path,
        message: "unknown field",
        fix: known.length === 0 ? "remove it" : `remove it; known fields: ${known.join(", ")}`,
      }
    : {
        path,
        message: `unknown field; did you mean ${near}?`,
        fix: `rename it to ${near}, or remove it`,
      };
}

function explainType(issue: z.core.$ZodIssueInvalidType, actual: unknown): Explanation {
  if (actual === undefined) return required(issue.path, "");
  const expected =
    issue.expected === "int" ? "integer" : issue.expected === "record" ? "object" : issue.expected;
  const quote =
    expected === "string" && typeof actual !== "object" ? "put it in quotes" : "correct the value";
  return {
    path: issue.path,
    message: `must be ${article(expected)}, is ${article(typeName(actual))}`,
    fix: quote,
  };
}

function required(path: readonly PropertyKey[], suffix: string): Explanation {
  return { path, message: `is required${suffix}`, fix: `add ${String(path.at(-1) ?? "it")}` };
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function article(type: string): string {
  if (type === "null") return type;
  return /^[aeio]/.test(type) ? `an ${type}` : `a ${type}`;
}

function decapitalise(message: string): string {
  return message.charAt(0).toLowerCase() + message.slice(1);
}

/** Returns the names of a schema's fields at a path. */
function knownFields(schema: z.core.$ZodType, path: readonly PropertyKey[]): readonly string[] {
  let at: z.core.$ZodType | undefined = unwrap(schema);
  for (const part of path) {
    if (at instanceof z.ZodObject) at = at.shape[String(part)] as z.core.$ZodType | undefined;
    else if (at instanceof z.ZodArray) at = at.element;
    else if (at instanceof z.ZodRecord) at = at.valueType;
    else return [];
    if (at === undefined) return [];
    at = unwrap(at);
  }
  return at instanceof z.ZodObject ? Object.keys(at.shape) : [];
}

function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  let at = schema;
  while (
    at instanceof z.ZodOptional ||
    at instanceof z.ZodDefault ||
    at instanceof z.ZodPrefault ||
    at instanceof z.ZodNullable
  ) {
    at = at.unwrap();
  }
  return at;
}

/** Levenshtein distance. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const substitution = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(substitution, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    previous = row;
  }
  return previous[b.length] ?? 0;
}
