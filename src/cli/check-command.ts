/** `svc check`. */
import { Command, Option } from "commander";
import { renderChecks } from "./checks.ts";
import type { Context } from "./context.ts";
import { checkMachine } from "./machine-checks.ts";
import { type TargetFlags, withTarget } from "./options.ts";
import { clusterOf } from "./target.ts";

export function checkCommand(context: Context): Command {
  return withTarget(
    new Command("check").description(
      "Check an installation in a cluster and its surroundings, or this machine.",
    ),
  )
    .addOption(
      new Option("-o, --output <format>", "output format")
        .choices(["table", "json"])
        .default("table"),
    )
    .addHelpText(
      "after",
      "\nExamples:\n  svc check\n  svc check --context prod --system-namespace platform",
    )
    .action(async (flags: TargetFlags & { readonly output: string }) => {
      const cluster = clusterOf(flags, context.env);
      const checks =
        cluster === undefined
          ? await checkMachine({
              root: context.root,
              env: context.env,
              stateDir: flags.stateDir,
            })
          : await (await context.cluster(cluster)).check(context.root);
      context.stdout(
        `${flags.output === "json" ? JSON.stringify(checks, null, 2) : renderChecks(checks)}\n`,
      );
      context.setExitCode(checks.some(({ level }) => level === "FAIL") ? 1 : 0);
    });
}
