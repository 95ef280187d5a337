/** Error message of a command for people. The exit code is 1, or 2 for a usage error. */
export class CliError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.name = "CliError";
    this.exitCode = exitCode;
  }

  /** Creates an error about the arguments, not about the state of the system. */
  static usage(message: string): CliError {
    return new CliError(message, 2);
  }
}
