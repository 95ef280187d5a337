/** `svc delete`. */
import { Command } from "commander";
import { parseObject } from "../resources/parse.ts";
import { readDocuments } from "../resources/yaml.ts";
import type { ManifestText } from "./backend.ts";
import type { Context } from "./context.ts";
import { CliError } from "./errors.ts";
import { findKind, kindName, type KindName } from "./kinds.ts";
import { readManifestFiles } from "./manifests.ts";
import {
  type NamespaceFlags,
  repeatable,
  type TargetFlags,
  withNamespace,
  withTarget,
} from "./options.ts";
import { objectArguments } from "./object-arguments.ts";

interface Flags extends TargetFlags, NamespaceFlags {
  readonly filename?: readonly string[];
  readonly ignoreNotFound?: true;
}

interface Ref {
  readonly kind: KindName;
  readonly namespace: string;
  readonly name: string;
}

export function deleteCommand(context: Context): Command {
  const command = new Command("delete")
    .description("Delete applied objects, by kind and name or by file.")
    .argument("[kind]", "kind of the objects, or <kind>/<name>")
    .argument("[names...]", "names of the objects")
    .addOption(
      repeatable(
        "-f, --filename <file>",
        "file, folder, or - for standard input, whose objects are deleted",
      ),
    )
    .option("--ignore-not-found", "do not fail if an object does not exist");
  return withTarget(withNamespace(command, "namespace of the objects"))
    .addHelpText(
      "after",
      "\nExamples:\n  svc delete agent hello\n  svc delete access-key laptop -n team-a\n  " +
        "svc delete -f agent.yaml --ignore-not-found",
    )
    .action(async (kind: string | undefined, names: readonly string[], flags: Flags) => {
      const refs = await refsOf(context, kind, names, flags);
      const backend = await context.backend(flags);
      const failed: string[] = [];
      for (const ref of refs) {
        const label = `${ref.kind.singular}/${ref.name}`;
        try {
          if (await backend.delete(ref.kind.kind, ref.namespace, ref.name))
            context.stdout(`${label} deleted\n`);
          else if (flags.ignoreNotFound !== true)
            failed.push(`there is no ${label} in namespace ${ref.namespace}`);
        } catch (error) {
          // Other objects can still be deleted.
          if (!(error instanceof CliError)) throw error;
          failed.push(error.message);
        }
      }
      if (failed.length > 0) throw new CliError(failed.join("\n"));
    });
}

async function refsOf(
  context: Context,
  kind: string | undefined,
  names: readonly string[],
  flags: Flags,
): Promise<readonly Ref[]> {
  if (flags.filename !== undefined) {
    if (kind !== undefined) throw CliError.usage("name objects, or files with -f, not both");
    // The last applied object is deleted first, so that no object refers to a deleted one.
    return (await readManifestFiles(flags.filename, context.stdin)).flatMap(refsIn).toReversed();
  }
  if (kind === undefined)
    throw CliError.usage("name what to delete: svc delete <kind> <name>, or -f <file>");
  const refs = objectArguments(kind, names);
  if (refs.names.length === 0)
    throw CliError.usage(
      `name the ${refs.kind.singular} to delete: svc delete ${refs.kind.singular} <name>`,
    );
  return refs.names.map((name) => ({ kind: refs.kind, namespace: flags.namespace, name }));
}

/** Returns the objects that a file names, also those that could not be applied. */
function refsIn({ source, text }: ManifestText): Ref[] {
  return readDocuments(text).flatMap(({ document, line }) => {
    if (document.errors.length > 0)
      throw new CliError(`${source}:${line}: is not valid YAML or JSON; nothing was deleted`);
    if (document.contents === null) return [];
    const parsed = parseObject(document.toJS({ maxAliasCount: 100 }));
    if (parsed.kind === "ok")
      return [
        {
          kind: kindName(parsed.resource.kind),
          namespace: parsed.resource.namespace,
          name: parsed.resource.name,
        },
      ];
    const { kind = "", namespace, name } = parsed.identity;
    const known = findKind(kind);
    if (known === undefined || namespace === undefined || name === undefined)
      throw new CliError(`${source}:${line}: names no object; nothing was deleted`);
    return [{ kind: known, namespace, name }];
  });
}
