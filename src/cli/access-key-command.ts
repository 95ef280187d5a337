/**
 * `svc access-key ...`. The command generates keys and shows them once; only their hash is sent to
 * the gateway. Standard output contains only the key, so that it can be piped; everything else goes
 * to standard error.
 */
import { Command } from "commander";
import { newAccessKey, wrapAccessKey } from "../access/access-keys.ts";
import { hashKey } from "../access/credentials.ts";
import { parseDuration } from "../platform/duration.ts";
import { API_VERSION } from "../resources/metadata.ts";
import { trouble } from "./apply-command.ts";
import type { ApplyResult, Backend, ObjectView } from "./backend.ts";
import { accessKeyList } from "./access-key-list.ts";
import type { Context } from "./context.ts";
import { CliError } from "./errors.ts";
import { manifestOf } from "./manifest-of.ts";
import {
  type NamespaceFlags,
  parseCount,
  parseDurationFlag,
  repeatable,
  type TargetFlags,
  withNamespace,
  withTarget,
} from "./options.ts";

type CommonFlags = TargetFlags & NamespaceFlags;

interface CreateFlags extends CommonFlags {
  readonly name: string;
  readonly modelProvider?: string;
  readonly provider?: string;
  readonly allowedModel?: readonly string[];
  readonly allowedCidr?: readonly string[];
  readonly allowedMcpTool?: readonly string[];
  readonly deniedMcpTool?: readonly string[];
  readonly expires?: string;
  readonly maxTokensPerDay?: number;
  readonly maxRequestsPerDay?: number;
  readonly requestsPerMinute?: number;
  readonly wrapped?: true;
}

interface RotateFlags extends CommonFlags {
  readonly grace?: number;
  readonly wrapped?: true;
}

const WRAPPED = [
  "--wrapped",
  "print the key in the form of an Anthropic key, for clients that check it",
] as const;

export function accessKeyCommand(context: Context): Command {
  const command = new Command("access-key").description(
    "Create and manage AccessKeys, with which external people and programs use a provider " +
      "through the gateway.",
  );
  command.addCommand(createCommand(context));
  command.addCommand(rotateCommand(context));
  command.addCommand(accessKeyList(context));
  command.addCommand(revokeCommand(context));
  command.addCommand(deleteCommand(context));
  return command;
}

function createCommand(context: Context): Command {
  const command = new Command("create")
    .description("Create an AccessKey and print its key, once.")
    .requiredOption("--name <name>", "name of the AccessKey");
  return withTarget(withNamespace(command, "namespace of the AccessKey and its provider"))
    .option("--model-provider <name>", "ModelProvider that the key gives access to")
    .option("--provider <name>", "Provider (MCP server) that the key gives access to")
    .addOption(
      repeatable(
        "--allowed-model <model>",
        "model that the key may use; * as last character is a wildcard (default: what the " +
          "provider allows)",
      ),
    )
    .addOption(repeatable("--allowed-cidr <cidr>", "addresses that may use the key (default: any)"))
    .addOption(
      repeatable(
        "--allowed-mcp-tool <tool>",
        "tool the key may call (default: what the provider allows)",
      ),
    )
    .addOption(repeatable("--denied-mcp-tool <tool>", "tool the key may not call"))
    .option(
      "--expires <when>",
      "expiry of the key: a duration such as 30d, or a time (RFC 3339) (default: never)",
    )
    .option("--max-tokens-per-day <number>", "input and output tokens per day (UTC)", parseCount)
    .option("--max-requests-per-day <number>", "requests per day (UTC)", parseCount)
    .option("--requests-per-minute <number>", "requests in any 60 seconds", parseCount)
    .option(...WRAPPED)
    .addHelpText(
      "after",
      `
The key is printed alone on standard output and kept nowhere: the gateway knows its SHA-256.

Examples:
  svc access-key create --name laptop --model-provider anthropic --expires 90d
  svc access-key create --name ci -n team-a --model-provider openai --allowed-model 'gpt-5*' --allowed-cidr 10.0.0.0/8 | gh secret set SVC_ACCESS_KEY
  svc access-key create --name reader --provider tracker --allowed-mcp-tool search --allowed-mcp-tool read`,
    )
    .action(async (flags: CreateFlags) => {
      if ((flags.modelProvider === undefined) === (flags.provider === undefined))
        throw CliError.usage(
          "name the provider of the key with either --model-provider <name> or --provider <name>",
        );
      const expiresAt =
        flags.expires === undefined ? undefined : expiryTime(flags.expires, context.now());
      const raw = newAccessKey(context.random(32));
      const manifest = {
        apiVersion: API_VERSION,
        kind: "AccessKey",
        metadata: { name: flags.name, namespace: flags.namespace },
        spec: {
          modelProvider: flags.modelProvider,
          provider: flags.provider,
          keySHA256: hashKey(raw),
          expiresAt,
          restrictions: {
            allowedModels: flags.allowedModel,
            allowedCIDRs: flags.allowedCidr,
            allowedMcpTools: flags.allowedMcpTool,
            deniedMcpTools: flags.deniedMcpTool,
          },
          limits: {
            maxTokensPerDay: flags.maxTokensPerDay,
            maxRequestsPerDay: flags.maxRequestsPerDay,
            requestsPerMinute: flags.requestsPerMinute,
          },
        },
      };
      // An existing name is refused, so that no other key is lost by mistake.
      const backend = await context.backend(flags);
      const [result] = await backend.apply([manifestOf([manifest])], { create: true });
      show(context, raw, flags.wrapped);
      context.stderr(
        `AccessKey ${flags.name} ` +
          `created${expiresAt === undefined ? "" : `; it expires at ${expiresAt}`}. Its key ` +
          "is not shown again.\n",
      );
      warn(context, result);
    });
}

function rotateCommand(context: Context): Command {
  const command = new Command("rotate")
    .description("Give an AccessKey a new key and print it, once.")
    .argument("<name>", "name of the AccessKey");
  return withTarget(withNamespace(command, "namespace of the AccessKey"))
    .option(
      "--grace <duration>",
      "time for which the old key is still accepted (default: none)",
      parseDurationFlag,
    )
    .option(...WRAPPED)
    .addHelpText(
      "after",
      "\nExamples:\n  svc access-key rotate laptop\n  svc access-key rotate ci -n team-a " +
        "--grace 24h",
    )
    .action(async (name: string, flags: RotateFlags) => {
      const backend = await context.backend(flags);
      const before = await existing(backend, name, flags.namespace);
      if (before.spec?.["revoked"] === true)
        throw new CliError(`AccessKey ${name} is revoked: create another one`);
      const raw = newAccessKey(context.random(32));
      const graceEnd =
        flags.grace === undefined || flags.grace === 0
          ? undefined
          : new Date(context.now() + flags.grace).toISOString();
      const result = await backend.patch("AccessKey", flags.namespace, name, {
        // One of two concurrent rotations fails, so that every printed key is in force.
        metadata: { resourceVersion: before.metadata.resourceVersion },
        spec: {
          keySHA256: hashKey(raw),
          previous:
            graceEnd === undefined
              ? null
              : { keySHA256: before.spec?.["keySHA256"], expiresAt: graceEnd },
        },
      });
      show(context, raw, flags.wrapped);
      context.stderr(
        `AccessKey ${name} has a new key, which is not shown again. The old one is ` +
          `${graceEnd === undefined ? "refused from now on" : `taken until ${graceEnd}`}.\n`,
      );
      warn(context, result);
    });
}

function revokeCommand(context: Context): Command {
  const command = new Command("revoke")
    .description("Refuse an AccessKey's key from now on, and keep its record.")
    .argument("<name>", "name of the AccessKey");
  return withTarget(withNamespace(command, "namespace of the AccessKey"))
    .addHelpText("after", "\nExample:\n  svc access-key revoke laptop")
    .action(async (name: string, flags: CommonFlags) => {
      const backend = await context.backend(flags);
      await existing(backend, name, flags.namespace);
      const { change } = await backend.patch("AccessKey", flags.namespace, name, {
        spec: { revoked: true, previous: null },
      });
      context.stdout(
        `access-key/${name} ${change === "unchanged" ? "was revoked before" : "revoked"}\n`,
      );
    });
}

function deleteCommand(context: Context): Command {
  const command = new Command("delete")
    .description("Delete an AccessKey: its key is refused, and no record is kept.")
    .argument("<name>", "name of the AccessKey");
  return withTarget(withNamespace(command, "namespace of the AccessKey"))
    .addHelpText("after", "\nExample:\n  svc access-key delete laptop")
    .action(async (name: string, flags: CommonFlags) => {
      const backend = await context.backend(flags);
      if (!(await backend.delete("AccessKey", flags.namespace, name)))
        throw missing(name, flags.namespace);
      context.stdout(`access-key/${name} deleted\n`);
    });
}

async function existing(backend: Backend, name: string, namespace: string): Promise<ObjectView> {
  const object = await backend.get("AccessKey", namespace, name);
  if (object === undefined) throw missing(name, namespace);
  return object;
}

function missing(name: string, namespace: string): CliError {
  return new CliError(`there is no AccessKey ${name} in namespace ${namespace}`);
}

function show(context: Context, raw: string, wrapped: true | undefined): void {
  context.stdout(`${wrapped === true ? wrapAccessKey(raw) : raw}\n`);
}

function warn(context: Context, result: ApplyResult | undefined): void {
  const status = result?.object?.status;
  if (status !== undefined && status.reason !== "Ready")
    context.stderr(`It is ${trouble(status)}\n`);
}

/** @returns RFC 3339 @throws CliError, a usage error */
function expiryTime(text: string, now: number): string {
  const duration = parseDuration(text);
  if (duration !== undefined && duration > 0) return new Date(now + duration).toISOString();
  const time = /^\d{4}-\d{2}-\d{2}T.+(?:Z|[+-]\d{2}:\d{2})$/.test(text)
    ? Date.parse(text)
    : Number.NaN;
  if (Number.isNaN(time))
    throw CliError.usage(
      `--expires '${text}' is neither a duration such as 30d nor a time such as ` +
        "2027-01-31T12:00:00Z",
    );
  if (time <= now) throw CliError.usage(`--expires '${text}' is in the past`);
  return text;
}
