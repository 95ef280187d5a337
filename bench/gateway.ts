/** The gateway as users run it: `svc up` with a folder of resources, and all features on. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { MODEL, UPSTREAM_KEY } from "./answers.ts";
import { MCP_ENDPOINT, mcpResources } from "./mcp-resources.ts";
import { freePort, type Processes, until } from "./processes.ts";
import { findDescendant, type ProcessTree } from "./stats.ts";
import { answers200, type Target } from "./target.ts";

const PROVIDER = "bench";

/** Limits of every kind, none of which is ever reached. */
const ALL_LIMITS = {
  requestsPerMinute: 10_000_000,
  maxConcurrentRequests: 100_000,
  maxTokensPerDay: 1_000_000_000_000,
  maxTokensPerRequest: 10_000_000,
  maxCostPerDayUSD: 1_000_000_000,
};

/** JSON is YAML. */
function resources({
  upstreamPort,
  limited,
  guard,
  more,
}: {
  readonly upstreamPort: number;
  readonly limited: boolean;
  readonly guard: string | undefined;
  readonly more: readonly object[];
}): string {
  const metadata = { name: PROVIDER };
  const objects = [
    { apiVersion: "v1", kind: "Secret", metadata, stringData: { "api-key": UPSTREAM_KEY } },
    {
      apiVersion: "svc.io/v1",
      kind: "ModelProvider",
      metadata,
      spec: {
        provider: "openai",
        baseURL: `http://127.0.0.1:${upstreamPort}/v1`,
        apiKeySecretRef: { name: PROVIDER, key: "api-key" },
      },
    },
    {
      apiVersion: "svc.io/v1",
      kind: "Agent",
      metadata,
      spec: {
        models: [`${PROVIDER}/*`],
        ...(limited && { rateLimits: ALL_LIMITS }),
        ...(guard !== undefined && { guards: [{ binding: guard }] }),
      },
    },
  ];
  return [...objects, ...mcpResources({ port: upstreamPort }), ...more]
    .map((object) => JSON.stringify(object))
    .join("\n---\n");
}

export async function startGateway(options: {
  readonly root: string;
  readonly upstreamPort: number;
  readonly dir: string;
  readonly processes: Processes;
  readonly name?: string;
  /** More of `svc up`'s flags. */
  readonly args?: readonly string[];
  /** Whether the agent has limits. @defaultValue true */
  readonly limited?: boolean;
  /** GuardBinding of the agent; undefined for none. */
  readonly guard?: string;
  /** More resources. */
  readonly more?: readonly object[];
  readonly beside?: ProcessTree["beside"];
  /** Replaces this process's own environment. */
  readonly env?: NodeJS.ProcessEnv;
}): Promise<Target> {
  const {
    root,
    upstreamPort,
    processes,
    name = "gateway",
    args = [],
    limited = true,
    guard,
    more = [],
    beside = [],
    env,
  } = options;
  const port = await freePort();
  const dir = path.join(options.dir, name);
  const folder = path.join(dir, "resources");
  const state = path.join(dir, "state");
  const log = path.join(dir, "gateway.log");
  const svc = path.join(root, "dist/svc.js");
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, "bench.yaml"), resources({ upstreamPort, limited, guard, more }));
  const child = processes.start({
    place: "measured",
    command: process.execPath,
    args: [
      [
        svc,
        "up",
        "--resources",
        folder,
        "--state-dir",
        state,
        "--port",
        String(port),
        "--external-port",
        "off",
      ],
      ["--concurrency", "1", "--drain", "1", "--log-level", "info", ...args],
    ].flat(),
    log,
    ...(env === undefined ? {} : { env }),
  });
  const target = await until(
    async () => {
      // The last output of `svc up` when it serves.
      if (!readFileSync(log, "utf8").includes("LLM gateway  ")) return undefined;
      const printed = await processes.output({
        place: "measuring",
        command: process.execPath,
        args: [svc, "token", PROVIDER, "--state-dir", state],
      });
      const candidate = { port, key: printed.trim(), model: `${PROVIDER}/${MODEL}` };
      return (await answers200(candidate)) === undefined ? undefined : candidate;
    },
    child,
    "the gateway",
  ).catch((error: unknown) => {
    throw new Error(`The gateway did not start. It said:\n${readFileSync(log, "utf8")}`, {
      cause: error,
    });
  });
  const pid = child.pid ?? 0;
  const part = (name: string, commandLine: string): { pid: number; name: string } => {
    const found = findDescendant(pid, commandLine);
    if (found === undefined)
      throw new Error(`no process of the gateway has ${commandLine} in its command line`);
    return { pid: found, name };
  };
  return {
    name,
    ...target,
    mcp: MCP_ENDPOINT,
    tree: {
      pid,
      name: "supervisor",
      beside,
      named: [part("Envoy", "--config-path"), part("Node", "dist/gateway.js")],
    },
  };
}
