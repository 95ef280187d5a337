/** The command line. */
import { Command, Option } from "commander";
import type { GatewayStatus } from "../gateway/status.ts";
import { unixRequest } from "../platform/unix-http.ts";
import { StartError } from "../up/errors.ts";
import { statePaths } from "../up/state.ts";
import { renderStatus } from "./status.ts";
import { upCommand } from "./up-command.ts";

export function createProgram(root: string, version: string): Command {
  const program = new Command("svc")
    .description("Runs AI agents and mediates all of their traffic through Envoy.")
    .version(version);
  program.addCommand(upCommand(root));
  program
    .command("status")
    .description("Show each object's state in the running svc up.")
    .option("--state-dir <dir>", "folder that svc up was started with")
    .addOption(new Option("-o, --output <format>", "how to print it").choices(["table", "json"]).default("table"))
    .addHelpText("after", "\nExample:\n  svc status -o json")
    .action(async (flags: { stateDir?: string; output: string }) => {
      const status = (await ask(flags.stateDir, "/status")) as GatewayStatus;
      process.stdout.write(`${flags.output === "json" ? JSON.stringify(status, null, 2) : renderStatus(status)}\n`);
      process.exitCode = status.ready && status.problems.length === 0 ? 0 : 1;
    });
  program
    .command("token <agent>")
    .description("Print an agent's workload token: what its SDK sends as API key.")
    .option("-n, --namespace <namespace>", "the agent's namespace", "default")
    .option("--state-dir <dir>", "folder that svc up was started with")
    .addHelpText("after", '\nExample:\n  export OPENAI_API_KEY="$(svc token hello)"')
    .action(async (agent: string, flags: { namespace: string; stateDir?: string }) => {
      const path = `/agents/${encodeURIComponent(flags.namespace)}/${encodeURIComponent(agent)}/token`;
      process.stdout.write(`${((await ask(flags.stateDir, path)) as { token: string }).token}\n`);
    });
  return program;
}

/** @throws StartError when nothing runs, or it says no */
async function ask(stateDir: string | undefined, path: string): Promise<unknown> {
  const state = statePaths(stateDir, process.env);
  const answer = await unixRequest(state.controlSocket, path).catch(() => {
    throw new StartError(`No svc up runs with the state folder ${state.dir}. Start one, or name its folder with --state-dir.`);
  });
  const body = JSON.parse(answer.body) as { error?: string };
  if (answer.status !== 200) throw new StartError(`${body.error ?? "the gateway refused"}.`);
  return body;
}
