/**
 * Reason why a change of an applied object was refused, for people. Contains no value of a Secret.
 */
export type AppliedFault =
  /** The input is not valid. */
  | "invalid"
  | "not-found"
  /** It should be created, but already exists. */
  | "exists"
  /** Another file defines it, or it changed in the meantime. */
  | "conflict"
  /** The folder cannot be written. */
  | "unwritable";

export class AppliedError extends Error {
  readonly fault: AppliedFault;
  /** One line for each problem. */
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
