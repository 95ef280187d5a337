/** `svc proxy-status`. */
import { Command, Option } from "commander";
import type { Context } from "./context.ts";
import { type TargetFlags, withTarget } from "./options.ts";
import { isInSync, renderProxies } from "./proxies.ts";

export function proxyStatusCommand(context: Context): Command {
  return withTarget(
    new Command("proxy-status").description(
      "Show each Envoy's configuration: its version, and whether Envoy accepted it.",
    ),
  )
    .addOption(
      new Option("-o, --output <format>", "output format")
        .choices(["table", "json"])
        .default("table"),
    )
    .addHelpText("after", "\nExample:\n  svc proxy-status --context prod")
    .action(async (flags: TargetFlags & { readonly output: string }) => {
      const report = await (await context.backend(flags)).proxies();
      context.stdout(
        `${flags.output === "json" ? JSON.stringify(report, null, 2) : renderProxies(report)}\n`,
      );
      context.setExitCode(isInSync(report) ? 0 : 1);
    });
}
