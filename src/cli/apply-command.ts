/** `svc apply`. */
import { Command } from "commander";
import type { ApplyResult } from "./backend.ts";
import type { Context } from "./context.ts";
import { readManifestFiles } from "./manifests.ts";
import { repeatable, type TargetFlags, withTarget } from "./options.ts";
import { kindName } from "./kinds.ts";

interface Flags extends TargetFlags {
  readonly filename: readonly string[];
}

export function applyCommand(context: Context): Command {
  return withTarget(
    new Command("apply")
      .description(
        "Create or change objects from YAML or JSON: all of them, or none if one is invalid.",
      )
      .addOption(
        repeatable(
          "-f, --filename <file>",
          "file, folder, or - for standard input",
        ).makeOptionMandatory(),
      ),
  )
    .addHelpText(
      "after",
      `
svc up keeps objects as files in the folder applied/ of its resource folder. An object that another file of that
folder defines is left alone. In a cluster, objects are validated and written by the Kubernetes API.

Examples:
  svc apply -f agent.yaml
  svc apply -f providers/ -f agents/
  kustomize build . | svc apply -f -`,
    )
    .action(async (flags: Flags) => {
      const manifests = await readManifestFiles(flags.filename, context.stdin);
      const backend = await context.backend(flags);
      for (const result of await backend.apply(manifests)) context.stdout(`${describe(result)}\n`);
    });
}

/** Returns `agent/hello created`, with the reason if it is not in use as written. */
export function describe({ kind, namespace, name, change, object }: ApplyResult): string {
  const where = namespace === "default" ? "" : ` in namespace ${namespace}`;
  const text = `${kindName(kind).singular}/${name} ${change}${where}`;
  return object === undefined || object.status.reason === "Ready"
    ? text
    : `${text}: ${trouble(object.status)}`;
}

/** Returns `not in use: UnknownProvider: ...`, or `in use, with a warning: ...`. */
export function trouble({
  ready,
  reason,
  message,
}: {
  readonly ready: boolean;
  readonly reason: string;
  readonly message: string;
}): string {
  return (
    `${ready ? "in use, with a warning" : "not in use"}: ` +
    `${reason}${message === "" ? "" : `: ${message}`}`
  );
}
