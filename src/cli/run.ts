/** Runs a command line and returns its exit code: 0 success, 1 failure, 2 usage error. */
import { CommanderError } from "commander";
import { StartError } from "../host/errors.ts";
import type { Context } from "./context.ts";
import { CliError } from "./errors.ts";
import { createProgram } from "./program.ts";

/** @param args without the program's own name @returns the exit code */
export async function run(
  args: readonly string[],
  context: Omit<Context, "setExitCode">,
): Promise<number> {
  let exitCode = 0;
  try {
    await createProgram({ ...context, setExitCode: (code) => (exitCode = code) }).parseAsync(
      [...args],
      { from: "user" },
    );
    return exitCode;
  } catch (error) {
    // Commander has already printed the error.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    return tell(error, context);
  }
}

function tell(error: unknown, { stderr, env }: Pick<Context, "stderr" | "env">): number {
  if (error instanceof CliError || error instanceof StartError) {
    for (const line of error.message.split("\n")) stderr(`svc: ${line}\n`);
    return error instanceof CliError ? error.exitCode : 1;
  }
  const message = error instanceof Error ? error.message : String(error);
  stderr(`svc: unexpected: ${message.split("\n")[0]}. SVC_DEBUG=1 shows where.\n`);
  if ((env["SVC_DEBUG"] ?? "") !== "" && error instanceof Error) stderr(`${error.stack}\n`);
  return 1;
}
