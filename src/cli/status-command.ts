/** `svc status`. */
import { Command, Option } from "commander";
import type { Context } from "./context.ts";
import { type TargetFlags, withTarget } from "./options.ts";
import { renderStatus } from "./status.ts";

export function statusCommand(context: Context): Command {
  return withTarget(
    new Command("status").description("Show each object's state in the running svc up."),
  )
    .addOption(
      new Option("-o, --output <format>", "output format")
        .choices(["table", "json"])
        .default("table"),
    )
    .addHelpText("after", "\nExample:\n  svc status -o json")
    .action(async (flags: TargetFlags & { readonly output: string }) => {
      const status = await context.backend(flags).status();
      context.stdout(
        `${flags.output === "json" ? JSON.stringify(status, null, 2) : renderStatus(status)}\n`,
      );
      context.setExitCode(status.ready && status.problems.length === 0 ? 0 : 1);
    });
}
