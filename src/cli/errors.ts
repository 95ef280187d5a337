/**
 * What a command tells instead of doing its work, in words for a person. The exit code is 1, or 2
 * for a usage error.
 */
export class CliError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.name = "CliError";
    this.exitCode = exitCode;
  }

  /** The command line itself is wrong: what was typed, not what was found. */
  static usage(message: string): CliError {
    return new CliError(message, 2);
  }
}
