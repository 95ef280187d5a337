/** Runs a program to its end. */
import { spawnSync } from "node:child_process";
import type { CommandResult } from "./redirect.ts";

const TIMEOUT_MS = 30_000;

/** Folders where init containers keep their tools, which are not on every PATH. */
const TOOLS_PATH = "/usr/sbin:/sbin:/usr/bin:/bin:/usr/local/sbin:/usr/local/bin";

export function runCommand(command: string, args: readonly string[], input: string): CommandResult {
  const { status, error, stderr, signal } = spawnSync(command, args, {
    input,
    encoding: "utf8",
    timeout: TIMEOUT_MS,
    env: { PATH: TOOLS_PATH, LC_ALL: "C" },
  });
  const failure: NodeJS.ErrnoException | undefined = error;
  if (failure?.code === "ENOENT") return { code: undefined, stderr: "" };
  return {
    code: status ?? 1,
    stderr: failure?.message ?? (signal === null ? stderr : `${stderr} ended by ${signal}`),
  };
}
