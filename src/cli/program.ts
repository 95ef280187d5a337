/** The command line: all commands, in the order of the help. */
import { Command } from "commander";
import { accessKeyCommand } from "./access-key-command.ts";
import { applyCommand } from "./apply-command.ts";
import { auditCommand } from "./audit-command.ts";
import { completeCommand, completionCommand } from "./completion-command.ts";
import { checkCommand } from "./check-command.ts";
import type { Context } from "./context.ts";
import { createCommand } from "./create-command.ts";
import { deleteCommand } from "./delete-command.ts";
import { gatewayCommand } from "./gateway-command.ts";
import { getCommand } from "./get-command.ts";
import { guardCommand } from "./guard-command.ts";
import { installCommand } from "./install-command.ts";
import { loginCommand, logoutCommand } from "./login-command.ts";
import { proxyStatusCommand } from "./proxy-status-command.ts";
import { runCommand } from "./run-command.ts";
import { statusCommand } from "./status-command.ts";
import { tokenCommand } from "./token-command.ts";
import { upCommand } from "./up-command.ts";

/** Ends no process: errors are thrown, output goes to the context. */
export function createProgram(context: Context): Command {
  const program = new Command("svc")
    .description("Runs AI agents and mediates all of their traffic through Envoy.")
    .version(context.version)
    // For svc guard, whose subcommand has flags of the same names.
    .enablePositionalOptions()
    .addHelpText(
      "after",
      "\nExamples:\n  svc up --resources examples/quickstart\n  svc apply -f agent.yaml\n  " +
        "svc get agents",
    );
  const commands = [
    upCommand(context.root),
    installCommand(context),
    checkCommand(context),
    runCommand(context),
    statusCommand(context),
    proxyStatusCommand(context),
    applyCommand(context),
    getCommand(context),
    createCommand(context),
    deleteCommand(context),
    accessKeyCommand(context),
    tokenCommand(context),
    auditCommand(context),
    loginCommand(context),
    logoutCommand(context),
    gatewayCommand(context),
    guardCommand(context),
    completionCommand(context),
  ];
  for (const command of commands) program.addCommand(command);
  program.addCommand(completeCommand(context, program), { hidden: true });
  for (const command of everyCommand(program)) {
    command
      .exitOverride()
      .configureOutput({ writeOut: context.stdout, writeErr: context.stderr })
      .showSuggestionAfterError();
  }
  return program;
}

/** Returns a command and all of its subcommands. */
export function everyCommand(command: Command): Command[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}
