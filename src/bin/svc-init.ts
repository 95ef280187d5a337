/** The init container's process: applies the redirect in the pod's network namespace, and exits. */
import { runInit } from "../interception/init.ts";
import { runCommand } from "../interception/run-command.ts";

process.exitCode = runInit(process.argv.slice(2), {
  run: runCommand,
  stdout: (text) => void process.stdout.write(text),
  stderr: (text) => void process.stderr.write(text),
});
