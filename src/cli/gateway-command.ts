/** `svc gateway ...`: commands for users who are logged in at an external gateway. */
import { Command, Option } from "commander";
import { wrapAccessKey } from "../access/access-keys.ts";
import { CLIENT_SETUPS, clientBaseURL, renderSetup } from "./client-setup.ts";
import type { Context } from "./context.ts";
import { CliError } from "./errors.ts";
import { gatewayMcpCommand } from "./gateway-mcp-command.ts";
import { configFile, type Login, readLogins } from "./login-store.ts";
import { type Shell, SHELLS, setVariable, unsetVariable } from "./shell.ts";

export function gatewayCommand(context: Context): Command {
  const command = new Command("gateway").description(
    "Configure clients for the external gateway of svc login.",
  );
  command.addCommand(envCommand(context));
  command.addCommand(setupCommand(context));
  command.addCommand(gatewayMcpCommand(context));
  return command;
}

function envCommand(context: Context): Command {
  return new Command("env")
    .description(
      "Print shell commands that point Anthropic- and OpenAI-style clients at the gateway. " +
        "They contain the key.",
    )
    .addOption(new Option("--shell <shell>", "shell that reads them").choices(SHELLS).default("sh"))
    .addHelpText(
      "after",
      '\nExamples:\n  eval "$(svc gateway env)"\n  svc gateway env --shell fish | source\n ' +
        " svc gateway env --shell powershell | Out-String | Invoke-Expression",
    )
    .action(async ({ shell }: { readonly shell: Shell }) => {
      const { baseURL, accessKey } = await login(context);
      const lines = [
        setVariable(shell, "ANTHROPIC_BASE_URL", clientBaseURL(baseURL)),
        setVariable(shell, "ANTHROPIC_API_KEY", wrapAccessKey(accessKey)),
        // If both are set, some clients send both, and two different keys are refused.
        unsetVariable(shell, "ANTHROPIC_AUTH_TOKEN"),
        setVariable(shell, "OPENAI_BASE_URL", clientBaseURL(baseURL)),
        setVariable(shell, "OPENAI_API_KEY", accessKey),
      ];
      context.stdout(`${lines.join("\n")}\n`);
    });
}

function setupCommand(context: Context): Command {
  return new Command("setup")
    .description(
      "Show how to point well-known clients at the gateway. Writes nothing, and shows no key.",
    )
    .addOption(
      new Option("--client <client>", "only this client (default: all)").choices(
        CLIENT_SETUPS.map(({ client }) => client),
      ),
    )
    .addHelpText("after", "\nExample:\n  svc gateway setup --client claude-code")
    .action(async (flags: { readonly client?: string }) => {
      const { baseURL } = await login(context);
      const shown = CLIENT_SETUPS.filter(
        ({ client }) => flags.client === undefined || client === flags.client,
      );
      context.stdout(shown.map((setup) => renderSetup(setup, baseURL)).join("\n"));
    });
}

async function login(context: Context): Promise<Login> {
  const { login: found } = await readLogins(configFile(context.env));
  if (found === undefined) throw new CliError("not logged in: run svc login <base_url> first");
  return found;
}
