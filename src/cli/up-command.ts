/** `svc up`. */
import { Command, InvalidArgumentError, Option } from "commander";
import { compileCidrs } from "../platform/cidr.ts";
import { createLog } from "../platform/log.ts";
import { startUp, type Up } from "../up/up.ts";
import { renderStatus } from "./status.ts";

interface Flags {
  readonly resources: string;
  readonly address: string;
  readonly port: number;
  readonly externalPort: number | "off";
  readonly trustedProxy: readonly string[];
  readonly redisUrl?: string;
  readonly leaseSeconds: number;
  readonly audit: boolean;
  readonly auditDir?: string;
  readonly auditOnFailure: "refuse" | "continue";
  readonly auditSync: "group" | "none";
  readonly stateDir?: string;
  readonly prices?: string;
  readonly concurrency?: number;
  readonly logLevel: string;
  readonly drain: number;
}

export function upCommand(root: string): Command {
  return new Command("up")
    .description(
      "Run the gateway on this machine: Envoy and the gateway service, with resources from a folder.",
    )
    .option("--resources <dir>", "folder of resource YAML; it is watched", "svc-resources")
    .option("--address <ip>", "address to listen on", "127.0.0.1")
    .option("--port <number>", "port of the LLM gateway", parsePort, 8000)
    .option(
      "--external-port <number>",
      "port of the external gateway (/ext, /webhooks, /agents, /sessions), or off",
      parseExternalPort,
      8080,
    )
    .option(
      "--trusted-proxy <cidr>",
      "proxies whose X-Forwarded-For is believed; may be given several times",
      collectCidr,
      [],
    )
    .option(
      "--redis-url <url>",
      "Redis that gateways share counters in (default: $SVC_REDIS_URL, or this process's memory)",
    )
    .option(
      "--lease-seconds <number>",
      "how long a request under way counts after its gateway was killed",
      parseCount,
      30,
    )
    .option("--audit-dir <dir>", "folder of the audit chain (default: audit in the state folder)")
    .addOption(
      new Option("--audit-on-failure <mode>", "when the audit chain cannot be written")
        .choices(["refuse", "continue"])
        .default("refuse"),
    )
    .addOption(
      new Option(
        "--audit-sync <mode>",
        "group: records are on the disk before an answer ends; none: with the kernel",
      )
        .choices(["group", "none"])
        .default("group"),
    )
    .option("--no-audit", "keep no audit chain")
    .option(
      "--state-dir <dir>",
      "folder of what outlives a run (default: $SVC_STATE_DIR, or ~/.local/state/svc)",
    )
    .option("--prices <file>", "price overrides (svc-model-prices), read again every 60 s")
    .option("--concurrency <number>", "Envoy's worker threads (default: one a core)", parseCount)
    .option(
      "--drain <seconds>",
      "how long requests under way may go on after SIGTERM",
      parseCount,
      30,
    )
    .addOption(
      new Option("--log-level <level>", "least level logged")
        .choices(["debug", "info", "warn", "error"])
        .default("info"),
    )
    .addHelpText("after", "\nExample:\n  svc up --resources examples/quickstart")
    .action(async (flags: Flags) => run(flags, root));
}

async function run(flags: Flags, root: string): Promise<void> {
  const log = createLog({ level: flags.logLevel, name: "svc" });
  const up = await startUp(
    {
      resources: flags.resources,
      address: flags.address,
      port: flags.port,
      externalPort: flags.externalPort === "off" ? undefined : flags.externalPort,
      trustedProxies: flags.trustedProxy,
      redisUrl: flags.redisUrl,
      leaseMs: flags.leaseSeconds * 1000,
      audit: flags.audit
        ? { dir: flags.auditDir, onFailure: flags.auditOnFailure, sync: flags.auditSync }
        : undefined,
      stateDir: flags.stateDir,
      pricesFile: flags.prices,
      concurrency: flags.concurrency,
      logLevel: flags.logLevel,
      drainMs: flags.drain * 1000,
    },
    { root, env: process.env, log },
  );
  let stopping = false;
  const stop = (): void => {
    if (stopping) return;
    stopping = true;
    up.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ error: String(error) }, "stopping failed");
        process.exit(1);
      },
    );
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  await up.ready();
  process.stdout.write(await greeting(up));
}

async function greeting(up: Up): Promise<string> {
  const status = await up.status();
  const agents = status.objects.filter((object) => object.kind === "Agent" && object.ready);
  const agent = agents[0];
  const lines = [`LLM gateway   ${up.baseUrl}`];
  if (up.externalUrl !== undefined) lines.push(`External      ${up.externalUrl}/ext/v1`);
  lines.push(`Metrics       ${up.baseUrl}/metrics`, "", renderStatus(status), "");
  if (agent === undefined) {
    lines.push("No Agent is ready: add one to the folder to get a token.");
  } else {
    const token = await up.token(agent.namespace, agent.name);
    const model = (await firstModel(up.baseUrl, token)) ?? "<provider>/<model>";
    lines.push(
      `Try it, as the agent ${agent.namespace}/${agent.name}:`,
      "",
      `  curl ${up.baseUrl}/v1/chat/completions -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' -d '{"model":"${model}","messages":[{"role":"user","content":"Hello"}]}'`,
    );
  }
  return `${lines.join("\n")}\n\n`;
}

/** A model the agent may use; a wildcard grant stands for any name. */
async function firstModel(baseUrl: string, token: string): Promise<string | undefined> {
  const response = await fetch(`${baseUrl}/v1/models`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const body = (await response.json()) as { data?: { id: string }[] };
  return body.data?.[0]?.id.replace(/\*$/, "echo");
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new InvalidArgumentError("a port is a number from 1 to 65535");
  return port;
}

function parseExternalPort(text: string): number | "off" {
  return text === "off" ? "off" : parsePort(text);
}

function collectCidr(text: string, before: readonly string[]): readonly string[] {
  try {
    compileCidrs([text]);
  } catch {
    throw new InvalidArgumentError("a CIDR block such as 10.0.0.0/8 is wanted");
  }
  return [...before, text];
}

function parseCount(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1)
    throw new InvalidArgumentError("a whole number above 0 is wanted");
  return count;
}
