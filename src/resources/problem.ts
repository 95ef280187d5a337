/**
 * The reason why an object or a file was not loaded, with the place and the fix. Contains no value
 * of a Secret.
 */

export type ProblemReason =
  /** The text is not YAML or JSON. */
  | "InvalidSyntax"
  /** A field is unknown, missing or has a wrong value. */
  | "InvalidSpec"
  /** A field or kind that is not implemented yet. */
  | "NotSupportedYet"
  /** An earlier object has the same kind, namespace and name. */
  | "DuplicateObject"
  /** The file cannot be read. */
  | "FileUnreadable";

export interface Problem {
  readonly reason: ProblemReason;
  /** Name in the source: a path relative to the watched directory, or an object of the cluster. */
  readonly file: string;
  /** Line in the file, from 1; undefined if the source has no lines. */
  readonly line: number | undefined;
  /** The known parts of the object's identity. */
  readonly kind: string | undefined;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  /**
   * Field from the object's root, e.g. `spec.fallbacks[0].provider`; empty for the whole object.
   */
  readonly path: string;
  readonly message: string;
  /** The fix. */
  readonly fix: string;
}

/** One line for a terminal or a log: `file:line: Kind name: path: message (fix)`. */
export function formatProblem(problem: Problem): string {
  const place = problem.line === undefined ? problem.file : `${problem.file}:${problem.line}`;
  const object =
    problem.kind === undefined
      ? ""
      : `${[problem.kind, problem.name].filter((part) => part !== undefined).join(" ")}: `;
  const field = problem.path === "" ? "" : `${problem.path}: `;
  return `${place}: ${object}${field}${problem.message} (${problem.fix})`;
}

/** `["spec", "fallbacks", 0, "provider"]` -> `spec.fallbacks[0].provider`. */
export function formatPath(path: readonly PropertyKey[]): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else text += text === "" ? String(part) : `.${String(part)}`;
  }
  return text;
}
