/** Runs commands, with what they print in the error. */
import { spawn } from "node:child_process";

/** A command that ended with another code than 0. */
export class CommandError extends Error {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;

  constructor(
    command: readonly string[],
    { code, stdout, stderr }: { code: number | null; stdout: string; stderr: string },
  ) {
    super(`${command.join(" ")} ended with code ${code}: ${stderr.trim() || stdout.trim()}`);
    this.name = "CommandError";
    this.code = code;
    this.stdout = stdout;
    this.stderr = stderr;
  }
}

interface RunOptions {
  readonly input?: string | undefined;
  readonly env?: NodeJS.ProcessEnv;
}

/** @returns the standard output; @throws {@link CommandError} */
export function run(
  command: readonly string[],
  { input, env = process.env }: RunOptions = {},
): Promise<string> {
  const [file = "", ...args] = command;
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { env, stdio: ["pipe", "pipe", "pipe"] });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    child.on("error", reject);
    child.on("close", (code) => {
      if (code === 0) resolve(stdout);
      else reject(new CommandError(command, { code, stdout, stderr }));
    });
    // A command that ends without reading its input has said why.
    child.stdin.on("error", () => {});
    child.stdin.end(input ?? "");
  });
}
