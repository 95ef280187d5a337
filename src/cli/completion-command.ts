/** `svc completion`, and the hidden command that its scripts ask. */
import { Argument, Command } from "commander";
import { complete } from "./complete.ts";
import {
  COMPLETION_SCRIPTS,
  COMPLETION_SHELLS,
  type CompletionShell,
} from "./completion-scripts.ts";
import type { Context } from "./context.ts";

export function completionCommand(context: Context): Command {
  return new Command("completion")
    .description("Print a script that completes commands, flags and names of objects.")
    .addArgument(new Argument("<shell>", "shell that reads it").choices(COMPLETION_SHELLS))
    .addHelpText(
      "after",
      `
Examples:
  source <(svc completion bash)
  svc completion zsh > "\${fpath[1]}/_svc"
  svc completion fish > ~/.config/fish/completions/svc.fish`,
    )
    .action((shell: CompletionShell) => context.stdout(COMPLETION_SCRIPTS[shell]));
}

/** Prints one candidate per line; a first line of `:files` makes the shell complete files. */
export function completeCommand(context: Context, program: Command): Command {
  return new Command("__complete")
    .argument("[words...]")
    .helpOption(false)
    .action(async (words: readonly string[]) => {
      const { words: found, files } = await complete(program, words, context);
      context.stdout([...(files ? [":files"] : []), ...found].map((line) => `${line}\n`).join(""));
    });
}
