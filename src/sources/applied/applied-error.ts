/**
 * Why a change of an applied object was refused, in words for a person. Holds no value of a Secret.
 */
export type AppliedFault =
  /** What was given is not valid. */
  | "invalid"
  | "not-found"
  /** It was to be created, and is there. */
  | "exists"
  /** Another file defines it, or it changed in the meantime. */
  | "conflict"
  /** The folder cannot be written. */
  | "unwritable";

export class AppliedError extends Error {
  readonly fault: AppliedFault;
  /** One line each. */
  readonly problems: readonly string[];

  constructor(fault: AppliedFault, problems: readonly string[]) {
    super(problems.join("\n"));
    this.name = "AppliedError";
    this.fault = fault;
    this.problems = problems;
  }

  static invalid(problems: readonly string[]): AppliedError {
    return new AppliedError("invalid", problems);
  }
}
