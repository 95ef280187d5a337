/** `svc up`. */
import { Command, InvalidArgumentError, Option } from "commander";
import type { SpaceThreshold } from "../audit/writer/volume.ts";
import type { ZodType } from "zod";
import { compileCidrs } from "../platform/cidr.ts";
import { createLog } from "../platform/log.ts";
import { parseSize } from "../platform/size.ts";
import { CLASSIFIER_TYPES, guardEndpointSchema } from "../resources/guard-binding.ts";
import { hostSchema, originSchema } from "../resources/web-origin.ts";
import type { ClassifierType } from "../policy/snapshot.ts";
import type { GuardOptions } from "../up/guard-process.ts";
import { startUp, type Up } from "../up/up.ts";
import { CliError } from "./errors.ts";
import { renderGreeting, tokenCommand, type TokenSource } from "./greeting.ts";

interface Flags {
  readonly resources: string;
  readonly address: string;
  readonly port: number;
  readonly externalPort: number | "off";
  readonly trustedProxy: readonly string[];
  readonly mcpAllowedOrigin: readonly string[];
  readonly mcpAllowedHost: readonly string[];
  readonly redisUrl?: string;
  readonly redisTimeoutMs: number;
  readonly leaseSeconds: number;
  readonly bytesInFlight: number;
  readonly bytesInFlightPerCaller: number;
  readonly uploadIdle: number;
  readonly audit: boolean;
  readonly auditDir?: string;
  readonly auditOnFailure: "refuse" | "continue";
  readonly auditSync: "group" | "none";
  readonly auditLowSpace?: SpaceThreshold;
  readonly auditFullSpace?: SpaceThreshold;
  readonly auditMaxBytes?: number;
  readonly stateDir?: string;
  readonly envoy?: string;
  readonly prices?: string;
  readonly guard?: ClassifierType;
  readonly guardModel?: string;
  readonly guardUpstream?: string;
  readonly guardEndpoint?: string;
  readonly mockPort?: number;
  readonly mockScript?: string;
  readonly envoyHeap: number;
  readonly concurrency?: number;
  readonly logLevel: string;
  readonly drain: number;
}

const MIB = 1024 * 1024;

export function upCommand(root: string): Command {
  return new Command("up")
    .description(
      "Run the gateway on this machine: Envoy and the gateway service, with resources from " +
        "a folder.",
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
      "proxies whose X-Forwarded-For is trusted; may be repeated",
      collectCidr,
      [],
    )
    .option(
      "--mcp-allowed-origin <origin>",
      "origin of web pages that may call MCP servers, such as https://inspector.example.com " +
        "(default: none); may be repeated",
      collect(originSchema),
      [],
    )
    .option(
      "--mcp-allowed-host <host>",
      "host under which the MCP gateway is published; requests that name another one are refused " +
        "(default: any); may be repeated",
      collect(hostSchema),
      [],
    )
    .option(
      "--redis-url <url>",
      "Redis in which gateways share counters (default: $SVC_REDIS_URL, or this process's memory)",
    )
    .option(
      "--redis-timeout-ms <number>",
      "longest wait of a request for Redis, before this process decides by what it knows itself",
      parseCount,
      40,
    )
    .option(
      "--lease-seconds <number>",
      "time for which a request under way still counts after its gateway was killed",
      parseCount,
      30,
    )
    .option(
      "--bytes-in-flight <MiB>",
      "maximum MiB of request bodies held at once; requests above it are refused with 503",
      parseCount,
      256,
    )
    .option(
      "--bytes-in-flight-per-caller <MiB>",
      "the same for one agent or access key; more is refused with 429",
      parseCount,
      64,
    )
    .option(
      "--upload-idle <seconds>",
      "longest pause of an upload; after this time, its average speed must exceed 64 KiB/s",
      parseCount,
      15,
    )
    .option("--audit-dir <dir>", "folder of the audit chain (default: audit in the state folder)")
    .addOption(
      new Option("--audit-on-failure <mode>", "behaviour when the audit chain cannot be written")
        .choices(["refuse", "continue"])
        .default("refuse"),
    )
    .addOption(
      new Option(
        "--audit-sync <mode>",
        "group: records are on the disk before an answer ends; none: they are in the " +
          "kernel's page cache",
      )
        .choices(["group", "none"])
        .default("group"),
    )
    .option(
      "--audit-low-space <size>",
      "free space on the chain's volume below which refusals are only counted, as a size " +
        "or a percentage of the volume (default: 10%, 1GiB at most)",
      parseSpace,
    )
    .option(
      "--audit-full-space <size>",
      "free space below which calls are refused (default: 2%, 256MiB at most)",
      parseSpace,
    )
    .option(
      "--audit-max-bytes <size>",
      "maximum size of all chains in the folder, such as 100GiB; calls are refused from " +
        "98% of it on (default: the volume's size)",
      parseBytes,
    )
    .option("--no-audit", "keep no audit chain")
    .option(
      "--state-dir <dir>",
      "folder of persistent state (default: $SVC_STATE_DIR, or ~/.local/state/svc)",
    )
    .option(
      "--envoy <file>",
      "absolute path of the Envoy binary (default: $ENVOY_PATH, else searched for)",
    )
    .option("--prices <file>", "price overrides (svc-model-prices), read again every 60 s")
    .addOption(
      new Option(
        "--guard <type>",
        "start the guard service, which GuardBindings without an endpoint ask (default: none); " +
          "SVC_GUARD_* variables reach it",
      ).choices(CLASSIFIER_TYPES),
    )
    .option(
      "--guard-model <model>",
      "model of the guard service: its folder (promptGuard), or its name at the upstream",
    )
    .option(
      "--guard-upstream <url>",
      "address of the classifier that the guard service asks (llamaGuard, custom)",
    )
    .addOption(
      new Option(
        "--guard-endpoint <url>",
        "base URL of a guard service that runs elsewhere, in place of --guard",
      )
        .argParser(parseGuardEndpoint)
        .conflicts("guard"),
    )
    .option(
      "--mock-script <file>",
      "YAML of the answers and tool calls of the mock model, to try agents without a key",
    )
    .option(
      "--mock-port <number>",
      "port of the mock model on 127.0.0.1, which speaks every vendor's API (default: any)",
      parsePort,
    )
    .option(
      "--envoy-heap <MiB>",
      "heap size at which Envoy accepts no more requests; it sheds load from 80 % on",
      parseCount,
      1024,
    )
    .option("--concurrency <number>", "Envoy's worker threads (default: one per core)", parseCount)
    .option(
      "--drain <seconds>",
      "time that requests under way have to finish after SIGTERM",
      parseCount,
      30,
    )
    .addOption(
      new Option("--log-level <level>", "minimum level of log lines")
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
      mcpAllowedOrigins: flags.mcpAllowedOrigin,
      mcpAllowedHosts: flags.mcpAllowedHost,
      redisUrl: flags.redisUrl,
      redisTimeoutMs: flags.redisTimeoutMs,
      leaseMs: flags.leaseSeconds * 1000,
      bytesInFlight: {
        total: flags.bytesInFlight * MIB,
        perCaller: flags.bytesInFlightPerCaller * MIB,
      },
      uploadIdleMs: flags.uploadIdle * 1000,
      audit: flags.audit
        ? {
            dir: flags.auditDir,
            onFailure: flags.auditOnFailure,
            sync: flags.auditSync,
            space: {
              low: flags.auditLowSpace,
              full: flags.auditFullSpace,
              maxBytes: flags.auditMaxBytes,
            },
          }
        : undefined,
      stateDir: flags.stateDir,
      envoy: flags.envoy,
      pricesFile: flags.prices,
      guard: guardOf(flags),
      guardEndpoint: flags.guardEndpoint,
      mockPort: flags.mockPort,
      mockScript: flags.mockScript,
      envoyHeapBytes: flags.envoyHeap * MIB,
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
  const named = flags.stateDir !== undefined || (process.env["SVC_STATE_DIR"] ?? "") !== "";
  process.stdout.write(await greeting(up, named ? up.state.dir : undefined));
}

/** @throws CliError if there are settings of a guard service that is not started */
function guardOf({ guard, guardModel, guardUpstream }: Flags): GuardOptions | undefined {
  if (guard !== undefined) return { type: guard, model: guardModel, upstream: guardUpstream };
  if (guardModel !== undefined || guardUpstream !== undefined)
    throw CliError.usage("--guard-model and --guard-upstream need --guard <type>");
  return undefined;
}

async function greeting(up: Up, stateDir: string | undefined): Promise<string> {
  const status = await up.status();
  const { baseUrl, externalUrl } = up;
  const agent = status.objects.find((object) => object.kind === "Agent" && object.ready);
  if (agent === undefined)
    return renderGreeting({ baseUrl, externalUrl, status, trial: undefined });
  const { namespace, name } = agent;
  const token = await up.token(namespace, name);
  const model = (await firstModel(baseUrl, token)) ?? "<provider>/<model>";
  const source: TokenSource = process.stdout.isTTY
    ? { kind: "shown", token }
    : { kind: "asked", command: tokenCommand(process.argv[1] ?? "svc", agent, stateDir) };
  return renderGreeting({
    baseUrl,
    externalUrl,
    status,
    trial: { namespace, name, model, token: source },
  });
}

/** Returns a model that the agent may use; a wildcard grant matches any name. */
async function firstModel(baseUrl: string, token: string): Promise<string | undefined> {
  const response = await fetch(`${baseUrl}/v1/models`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const body = (await response.json()) as { data?: { id: string }[] };
  return body.data?.[0]?.id.replace(/\*$/, "echo");
}

/** `512MiB`, or `5%` of the volume. */
function parseSpace(text: string): SpaceThreshold {
  const percent = /^(\d{1,3}(?:\.\d{1,6})?)%$/.exec(text)?.[1];
  if (percent !== undefined && Number(percent) <= 100)
    return { kind: "fraction", fraction: Number(percent) / 100 };
  const bytes = parseSize(text);
  if (bytes === undefined)
    throw new InvalidArgumentError("expected a size such as 512MiB, or a percentage such as 5%");
  return { kind: "bytes", bytes };
}

function parseBytes(text: string): number {
  const bytes = parseSize(text);
  if (bytes === undefined || bytes === 0)
    throw new InvalidArgumentError("expected a size such as 100GiB");
  return bytes;
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new InvalidArgumentError("a port is a number from 1 to 65535");
  return port;
}

function parseGuardEndpoint(text: string): string {
  const parsed = guardEndpointSchema.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new InvalidArgumentError(parsed.error.issues[0]?.message ?? "it is not valid");
}

function parseExternalPort(text: string): number | "off" {
  return text === "off" ? "off" : parsePort(text);
}

function collectCidr(text: string, before: readonly string[]): readonly string[] {
  try {
    compileCidrs([text]);
  } catch {
    throw new InvalidArgumentError("expected a CIDR block such as 10.0.0.0/8");
  }
  return [...before, text];
}

/** Returns the parser of a flag that may be repeated, each time with a valid text. */
function collect(schema: ZodType<string>) {
  return (text: string, before: readonly string[]): readonly string[] => {
    const parsed = schema.safeParse(text);
    if (parsed.success) return [...before, parsed.data];
    throw new InvalidArgumentError(parsed.error.issues[0]?.message ?? "it is not valid");
  };
}

function parseCount(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1)
    throw new InvalidArgumentError("expected a whole number above 0");
  return count;
}
