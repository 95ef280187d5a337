/** `svc gateway mcp`: the configuration of an MCP client for a server behind the gateway. */
import { Command, Option } from "commander";
import { nameSchema } from "../resources/metadata.ts";
import type { Context } from "./context.ts";
import { CliError } from "./errors.ts";
import { gatewayBase } from "./login-command.ts";
import { configFile, readLogins } from "./login-store.ts";
import {
  KEY_PLACEHOLDER,
  MCP_CLIENT_SETUPS,
  type McpTarget,
  PLAIN_MCP_SETUP,
} from "./mcp-clients.ts";

interface Flags {
  readonly key?: string;
  readonly client?: string;
  readonly url?: string;
}

export function gatewayMcpCommand(context: Context): Command {
  return new Command("mcp")
    .description("Print the configuration of an MCP client for an MCP server behind the gateway.")
    .argument("<provider>", "name of the Provider (MCP server)")
    .option(
      "--key <key-name>",
      "AccessKey that svc login --name has stored (default: the key of svc login)",
    )
    .addOption(
      new Option("--client <client>", "print the form of this client").choices(
        MCP_CLIENT_SETUPS.map(({ client }) => client),
      ),
    )
    .option("--url <base_url>", "address of the gateway (default: that of the login)")
    .addHelpText(
      "after",
      `
Only the configuration goes to standard output; standard error says where it belongs.

Examples:
  svc gateway mcp tracker --key laptop
  svc gateway mcp tracker --client claude > .mcp.json
  svc gateway mcp tracker --client codex --url https://gateway.example.com >> ~/.codex/config.toml`,
    )
    .action(async (provider: string, flags: Flags) => {
      if (!nameSchema.safeParse(provider).success)
        throw CliError.usage(`'${provider}' is not the name of a Provider`);
      const setup =
        MCP_CLIENT_SETUPS.find(({ client }) => client === flags.client) ?? PLAIN_MCP_SETUP;
      const target = await targetOf(context, provider, flags);
      context.stdout(setup.render(target));
      const hints = [...setup.hints];
      if (setup.showsKey && target.accessKey === KEY_PLACEHOLDER) hints.unshift(unknownKey(flags));
      context.stderr(hints.map((hint) => `${hint}\n`).join(""));
    });
}

/** @throws CliError if the gateway is not known */
async function targetOf(context: Context, provider: string, flags: Flags): Promise<McpTarget> {
  const { login, keys } = await readLogins(configFile(context.env));
  const stored = flags.key === undefined ? login : keys.get(flags.key);
  const asked = flags.url === undefined ? undefined : gatewayBase(flags.url);
  const baseURL = asked ?? stored?.baseURL ?? login?.baseURL;
  if (baseURL === undefined)
    throw new CliError(
      "the gateway is not known: run svc login <base_url> first, or name it with --url",
    );
  // A key is for its own gateway.
  const isOwn = stored !== undefined && stored.baseURL === baseURL;
  return { provider, baseURL, accessKey: isOwn ? stored.accessKey : KEY_PLACEHOLDER };
}

function unknownKey({ key }: Flags): string {
  const what = key === undefined ? "No AccessKey is" : `The AccessKey ${key} is not`;
  const name = key === undefined ? "" : ` --name ${key}`;
  return (
    `${what} stored for this gateway: replace ${KEY_PLACEHOLDER} by the key, or store it: ` +
    `svc login <base_url>${name}`
  );
}
