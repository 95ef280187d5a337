/** `svc token`. */
import { Command } from "commander";
import type { Context } from "./context.ts";
import { type NamespaceFlags, type TargetFlags, withNamespace, withTarget } from "./options.ts";

export function tokenCommand(context: Context): Command {
  const command = new Command("token")
    .description("Print an agent's workload token, which its SDK sends as the API key.")
    .argument("<agent>", "name of the Agent");
  return withTarget(withNamespace(command, "the agent's namespace"))
    .addHelpText("after", '\nExample:\n  export OPENAI_API_KEY="$(svc token hello)"')
    .action(async (agent: string, flags: TargetFlags & NamespaceFlags) => {
      const backend = await context.backend(flags);
      context.stdout(`${await backend.token(flags.namespace, agent)}\n`);
    });
}
