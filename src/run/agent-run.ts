/** `svc run`: one command that can reach only its sidecar and the gateway. */
import { realpathSync, statSync } from "node:fs";
import path from "node:path";
import { applyRedirect } from "../interception/redirect.ts";
import type { Logger } from "../platform/log.ts";
import { findCaBundle } from "../host/ca-bundle.ts";
import { StartError } from "../host/errors.ts";
import { envoyOfRun, findEnvoy } from "../host/find-envoy.ts";
import { statePaths } from "../host/state.ts";
import { agentEnvironment } from "./agent-environment.ts";
import { type AgentGrant, askGrant, mcpServersOf } from "./agent-grant.ts";
import { sharesTerminal, startAgent } from "./agent-process.ts";
import { startSidecar } from "./agent-sidecar.ts";
import { type AgentUser, resolveUser } from "./agent-user.ts";
import { assertAuditOwner } from "./audit-owner.ts";
import { closeInherited } from "./inherited-files.ts";
import { createNamespace, type Namespace } from "./namespace.ts";
import { AGENT_TRUST_DIR } from "./namespace-script.ts";
import { makeRunFolder, removeRunFolder, type RunFolder } from "./run-folder.ts";
import { keepSpecFile } from "./spec-file.ts";
import { findTools, type Tools } from "./tools.ts";

export interface AgentRunOptions {
  readonly namespace: string;
  readonly agent: string;
  readonly command: readonly string[];
  readonly stateDir: string | undefined;
  readonly user: string | undefined;
  readonly workDir: string;
  readonly extraEnv: readonly string[];
  /** Additional files and folders to hide from the command. */
  readonly hide: readonly string[];
  /** The Envoy binary; undefined to search for it. */
  readonly envoy: string | undefined;
  /** PEM bundle against which the services are verified; undefined for the system's. */
  readonly caFile: string | undefined;
  readonly logLevel: string;
}

export interface AgentRunEnvironment {
  readonly root: string;
  readonly env: NodeJS.ProcessEnv;
  readonly log: Logger;
  readonly stderr: (text: string) => void;
  readonly stdinIsTerminal: boolean;
  /** Calls back with each signal of this process; the returned function ends that. */
  readonly onSignal: (callback: (name: NodeJS.Signals) => void) => () => void;
}

/** Ports of the sidecar inside the namespace. */
const HTTP_PORT = 8081;
const HTTPS_PORT = 8443;
const DNS_PORT = 8053;
const GATEWAY_PORT = 8000;
const LOOPBACK = "127.0.0.1";
/** Name of the gateway inside the namespace. */
const GATEWAY_NAME = "svc-gateway";
const RUN_BASE = "/run";
/** Interval at which svc up is asked for an edited policy, and the sidecar checks its file. */
const POLICY_POLL_MS = 1_000;
/** With a shared terminal, the kernel sends these signals to the command itself. */
const OF_TERMINAL: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGQUIT", "SIGWINCH"]);
const ENDING: Readonly<Partial<Record<NodeJS.Signals, number>>> = {
  SIGHUP: 129,
  SIGINT: 130,
  SIGQUIT: 131,
  SIGTERM: 143,
};

/** @returns the command's exit code @throws StartError if it was not started */
export async function runAgent(
  options: AgentRunOptions,
  environment: AgentRunEnvironment,
): Promise<number> {
  const { root, env, log, stdinIsTerminal, onSignal } = environment;
  const tools = findTools();
  closeInherited();
  const envoy = findEnvoy(envoyOfRun(options.envoy, root));
  const user = resolveUser(options.user);
  const workDir = folder(options.workDir);
  const state = statePaths(options.stateDir, env);
  const ask = (): Promise<AgentGrant> => askGrant(state, options.namespace, options.agent);
  const grant = await ask();
  if (grant.audit !== undefined) assertAuditOwner(grant.audit, state.dir);
  const hidden = [state.dir, ...grant.private, ...options.hide]
    .map(real)
    .filter((each) => each !== undefined);
  refuseHidden(workDir, hidden);
  const gatewayPort = [HTTP_PORT, HTTPS_PORT, DNS_PORT].includes(grant.gateway.port)
    ? GATEWAY_PORT
    : grant.gateway.port;
  const agentEnv = agentEnvironment({
    env,
    user,
    extra: options.extraEnv,
    trustDir: AGENT_TRUST_DIR,
    gatewayUrl: `http://${LOOPBACK}:${gatewayPort}`,
    token: grant.token.reveal(),
    bindings: mcpServersOf(grant.specs),
  });

  const cleanups: (() => void | Promise<void>)[] = [];
  const cleanUp = async (): Promise<void> => {
    for (const cleanup of cleanups.toReversed()) await cleanup();
  };
  // Until the command runs, this process handles signals.
  let forward: ((name: NodeJS.Signals) => void) | undefined;
  let stopped: number | undefined;
  cleanups.push(
    onSignal((name) => (forward === undefined ? (stopped ??= ENDING[name]) : forward(name))),
  );
  try {
    const files = makeRunFolder(RUN_BASE, grant.hosts);
    cleanups.push(() => removeRunFolder(files));
    const namespace = await makeNamespace(tools, files, workDir, hidden);
    cleanups.push(namespace.end);
    const specs = keepSpecFile({
      file: files.specFile,
      first: grant,
      ask,
      pollMs: POLICY_POLL_MS,
      log,
    });
    cleanups.push(() => specs.close());
    if (stopped !== undefined) return stopped;
    const sidecar = await startSidecar({
      root,
      envoy,
      log,
      onLine: (line) => environment.stderr(`${line}\n`),
      secrets: grant.secrets,
      service: serviceOptions(options, {
        files,
        namespace,
        grant,
        gatewayPort,
        stateDir: state.tokensDir,
        user,
      }),
    });
    cleanups.push(sidecar.stop);
    if (stopped !== undefined) return stopped;
    const terminal = sharesTerminal(stdinIsTerminal);
    const agent = startAgent({
      tools,
      namespace,
      user,
      workDir,
      env: agentEnv,
      command: options.command,
      terminal,
    });
    // Before the sidecar, so that leftover processes make no further calls, and the ends of running
    // calls are recorded.
    cleanups.push(namespace.end);
    forward = (name) => {
      if (!terminal || !OF_TERMINAL.has(name)) agent.signal(name);
    };
    return await agent.exitCode;
  } finally {
    await cleanUp();
  }
}

async function makeNamespace(
  tools: Tools,
  files: RunFolder,
  workDir: string,
  hidden: readonly string[],
): Promise<Namespace> {
  const namespace = await createNamespace({
    tools,
    scratchDir: files.scratchDir,
    trustDir: files.trustDir,
    etcDir: files.etcDir,
    workDir,
    hidden,
  });
  try {
    // No user is exempt, because the sidecar's own calls are made outside of the namespace.
    applyRedirect({ httpsPort: HTTPS_PORT, dnsPort: DNS_PORT }, namespace.run);
  } catch (error) {
    await namespace.end();
    throw new StartError((error as Error).message);
  }
  return namespace;
}

interface ServiceParts {
  readonly files: RunFolder;
  readonly namespace: Namespace;
  readonly grant: AgentGrant;
  readonly gatewayPort: number;
  readonly stateDir: string;
  readonly user: AgentUser;
}

function serviceOptions(
  { namespace, agent, caFile, logLevel }: AgentRunOptions,
  parts: ServiceParts,
): { readonly runDir: string } & Record<string, unknown> {
  const { files, grant, gatewayPort } = parts;
  const { netns } = parts.namespace;
  const { audit } = grant;
  return {
    workload: `${namespace}/${agent}`,
    specFile: files.specFile,
    runDir: files.sidecarDir,
    trustDir: files.trustDir,
    pollMs: POLICY_POLL_MS,
    listen: {
      http: { address: LOOPBACK, port: HTTP_PORT, netns },
      https: { address: LOOPBACK, port: HTTPS_PORT, netns },
      gateway: { address: LOOPBACK, port: gatewayPort, netns, target: grant.gateway },
      dns: { address: LOOPBACK, port: DNS_PORT, netns },
    },
    dnsNames: [{ name: GATEWAY_NAME, addresses: [LOOPBACK] }],
    // A separate writer for each run, because two runs may have the same agent.
    ...(audit === undefined
      ? {}
      : { audit: { ...audit, writer: `run-${path.basename(files.dir)}` } }),
    stateDir: parts.stateDir,
    serverUser: { uid: parts.user.uid, gid: parts.user.gid, home: parts.user.home },
    upstreamCaFile: findCaBundle(
      caFile === undefined ? undefined : { file: caFile, by: "--ca-file" },
      files.sidecarDir,
    ),
    logLevel,
  };
}

function folder(dir: string): string {
  const found = real(dir);
  if (found === undefined || !statSync(found).isDirectory())
    throw new StartError(`${dir} is not a folder. Choose the command's with --workdir.`);
  return found;
}

function refuseHidden(workDir: string, hidden: readonly string[]): void {
  const over = hidden.find((dir) => dir === "/" || `${workDir}/`.startsWith(`${dir}/`));
  if (over !== undefined)
    throw new StartError(
      `${over} is hidden from the command, because it contains secrets, so the command ` +
        `cannot work in ${workDir}. Choose another folder with --workdir.`,
    );
}

/** Resolves links; undefined if the file does not exist. */
function real(file: string): string | undefined {
  try {
    return realpathSync(file);
  } catch {
    return undefined;
  }
}
