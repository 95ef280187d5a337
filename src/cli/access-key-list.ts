/** `svc access-key list`, an alias of `svc get access-keys`. */
import { Command, Option } from "commander";
import type { Context } from "./context.ts";
import { type NamespaceFlags, type TargetFlags, withNamespace, withTarget } from "./options.ts";
import { OUTPUTS, type Output, renderObjects } from "./render-objects.ts";

interface Flags extends TargetFlags, NamespaceFlags {
  readonly allNamespaces?: true;
  readonly output: Output;
}

export function accessKeyList(context: Context): Command {
  const command = new Command("list").description("List AccessKeys with today's usage (UTC).");
  return withTarget(withNamespace(command, "namespace of the AccessKeys"))
    .option("-A, --all-namespaces", "AccessKeys of all namespaces")
    .addOption(
      new Option("-o, --output <format>", "output format").choices(OUTPUTS).default("table"),
    )
    .addHelpText("after", "\nExample:\n  svc access-key list -o wide")
    .action(async (flags: Flags) => {
      const all = flags.allNamespaces === true;
      const backend = await context.backend(flags);
      const keys = await backend.list("AccessKey", all ? undefined : flags.namespace);
      if (keys.length === 0 && (flags.output === "table" || flags.output === "wide")) {
        return context.stderr(
          `No access-keys ${all ? "in any namespace" : `in namespace ${flags.namespace}`}.\n`,
        );
      }
      context.stdout(
        renderObjects("AccessKey", keys, {
          output: flags.output,
          single: false,
          namespaces: all,
          now: context.now(),
        }),
      );
    });
}
