/** `svc run`. */
import { Command, Option } from "commander";
import { createLog } from "../platform/log.ts";
import { runAgent } from "../run/agent-run.ts";
import { StartError } from "../host/errors.ts";
import type { Context } from "./context.ts";
import { CliError } from "./errors.ts";
import { repeatable, withNamespace, withStateDir } from "./options.ts";

interface Flags {
  readonly agent: string;
  readonly namespace: string;
  readonly stateDir?: string;
  readonly user?: string;
  readonly workdir?: string;
  readonly env?: readonly string[];
  readonly hide?: readonly string[];
  readonly envoy?: string;
  readonly caFile?: string;
  readonly logLevel: string;
}

/** As in env(1) and container tools: svc failed, not the command. */
const NOT_RUN = 125;

/**
 * SIGKILL and SIGSTOP cannot be passed on; SIGTSTP and SIGCONT reach the command from the terminal.
 */
const PASSED_ON: readonly NodeJS.Signals[] = [
  "SIGINT",
  "SIGTERM",
  "SIGHUP",
  "SIGQUIT",
  "SIGUSR1",
  "SIGUSR2",
  "SIGWINCH",
];

export function runCommand(context: Context): Command {
  const command = new Command("run")
    .description(
      "Run a command as an agent on this machine: it can reach only its sidecar and the " +
        "gateway. Requires root and Linux.",
    )
    .argument("<command...>", "command and its arguments, after --")
    .requiredOption("--agent <name>", "Agent that the command runs as");
  withStateDir(withNamespace(command, "namespace of the Agent"))
    .option("--user <user>", "user that it runs as, NAME or UID[:GID]; not root (default: 65532)")
    .option("--workdir <dir>", "its working directory (default: the current one)")
    .addOption(
      repeatable(
        "--env <NAME=value>",
        "environment variable for it; NAME alone copies the current value",
      ),
    )
    .addOption(repeatable("--hide <path>", "file or folder to hide from it"))
    .option("--envoy <file>", "absolute path of the Envoy binary (default: searched for)")
    .option(
      "--ca-file <file>",
      "PEM bundle that the services' certificates are verified against (default: the system's)",
    )
    .addOption(
      new Option(
        "--log-level <level>",
        "minimum level of the sidecar's log lines, on standard error",
      )
        .choices(["debug", "info", "warn", "error"])
        .default("warn"),
    )
    .addHelpText(
      "after",
      "\nExample:\n  sudo svc run --state-dir ~/.local/state/svc --agent coder --user " +
        "$USER -- python3 agent.py",
    );
  return command.action(async (words: readonly string[], flags: Flags) => {
    try {
      const exitCode = await runAgent(
        {
          namespace: flags.namespace,
          agent: flags.agent,
          command: words,
          stateDir: flags.stateDir,
          user: flags.user,
          workDir: flags.workdir ?? process.cwd(),
          extraEnv: flags.env ?? [],
          hide: flags.hide ?? [],
          envoy: flags.envoy,
          caFile: flags.caFile,
          logLevel: flags.logLevel,
        },
        {
          root: context.root,
          env: context.env,
          log: createLog({ level: flags.logLevel, name: "svc" }),
          stderr: context.stderr,
          stdinIsTerminal: process.stdin.isTTY,
          onSignal,
        },
      );
      context.setExitCode(exitCode);
    } catch (error) {
      if (error instanceof StartError) throw new CliError(error.message, NOT_RUN);
      throw error;
    }
  });
}

function onSignal(callback: (name: NodeJS.Signals) => void): () => void {
  for (const name of PASSED_ON) process.on(name, callback);
  return () => {
    for (const name of PASSED_ON) process.off(name, callback);
  };
}
