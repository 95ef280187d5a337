/** `svc create model-provider`. */
import { Command, Option } from "commander";
import { PROVIDER_KINDS, type ProviderKind } from "../policy/snapshot.ts";
import { API_VERSION } from "../resources/metadata.ts";
import { describe } from "./apply-command.ts";
import type { Context } from "./context.ts";
import { CliError } from "./errors.ts";
import { manifestOf } from "./manifest-of.ts";
import {
  type NamespaceFlags,
  repeatable,
  type TargetFlags,
  withNamespace,
  withTarget,
} from "./options.ts";
import { readSecret } from "./secret-input.ts";

interface Flags extends TargetFlags, NamespaceFlags {
  readonly provider: ProviderKind;
  readonly apiKey?: string;
  readonly apiKeyFile?: string;
  readonly baseUrl?: string;
  readonly allowedModel?: readonly string[];
  readonly externalAccess?: true;
  readonly replace?: true;
}

/** Kinds that work without a key. */
const KEYLESS: ReadonlySet<ProviderKind> = new Set(["mock", "openai-compatible"]);

/** Key in the Secret that is created with the ModelProvider, under the same name. */
const SECRET_KEY = "api-key";

export function createCommand(context: Context): Command {
  const command = new Command("create").description("Create an object from flags.");
  command.addCommand(modelProviderCommand(context));
  return command;
}

function modelProviderCommand(context: Context): Command {
  const command = new Command("model-provider")
    .description("Create a ModelProvider, and the Secret that holds its API key.")
    .argument("<name>", "name of the ModelProvider and its Secret")
    .addOption(
      new Option("--provider <kind>", "kind of the upstream")
        .choices(PROVIDER_KINDS)
        .makeOptionMandatory(),
    )
    .option(
      "--api-key <key>",
      "its API key; - reads it from standard input. As a flag, other users of this machine " +
        "can see it: prefer -, or --api-key-file",
    )
    .option("--api-key-file <file>", "file that holds its API key")
    .option("--base-url <url>", "address of its API (default: the vendor's)")
    .addOption(
      repeatable(
        "--allowed-model <model>",
        "model that it exposes; * as last character is a wildcard (default: every model)",
      ),
    )
    .option("--external-access", "allow AccessKeys to use it through the external gateway")
    .option(
      "--replace",
      "replace a ModelProvider that was applied before, for example to change its key",
    );
  return withTarget(withNamespace(command, "namespace of the ModelProvider"))
    .addHelpText(
      "after",
      `
The key is asked for where no flag gives it and there is a terminal.

Examples:
  svc create model-provider openai --provider openai --api-key-file key.txt
  pass show anthropic | svc create model-provider anthropic --provider anthropic --api-key - --external-access
  svc create model-provider local --provider openai-compatible --base-url http://127.0.0.1:11434/v1`,
    )
    .action(async (name: string, flags: Flags) => {
      const keyless = KEYLESS.has(flags.provider);
      const question = keyless ? undefined : `API key of ${name} (not shown): `;
      const key = await readSecret(
        { flag: "--api-key", value: flags.apiKey, file: flags.apiKeyFile, question },
        context,
      );
      if (key === undefined && !keyless)
        throw CliError.usage(
          `the kind ${flags.provider} needs an API key: --api-key -, or --api-key-file <file>`,
        );
      const metadata = { name, namespace: flags.namespace };
      const objects: object[] = [
        {
          apiVersion: API_VERSION,
          kind: "ModelProvider",
          metadata,
          spec: {
            provider: flags.provider,
            apiKeySecretRef: key === undefined ? undefined : { name, key: SECRET_KEY },
            baseURL: flags.baseUrl,
            allowedModels: flags.allowedModel,
            externalAccess: flags.externalAccess === true ? { enabled: true } : undefined,
          },
        },
      ];
      // As data, not stringData, in which a key of the form ${NAME} would name a variable.
      if (key !== undefined)
        objects.unshift({
          apiVersion: "v1",
          kind: "Secret",
          metadata,
          data: { [SECRET_KEY]: Buffer.from(key.reveal()).toString("base64") },
        });
      const backend = await context.backend(flags);
      for (const result of await backend.apply([manifestOf(objects)], {
        create: flags.replace !== true,
      }))
        context.stdout(`${describe(result)}\n`);
    });
}
